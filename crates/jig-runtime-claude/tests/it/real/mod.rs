//! The genuine Claude Code, whose model is scripted on loopback.

mod cost;
mod lab;
mod login;
mod outcomes;
mod sends;
