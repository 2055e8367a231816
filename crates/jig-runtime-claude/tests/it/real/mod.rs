//! The genuine Claude Code, whose model is scripted on loopback.

mod cost;
mod lab;
mod outcomes;
mod sends;
