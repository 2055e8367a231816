//! The genuine Codex, whose model is scripted on loopback.

mod lab;
mod login;
mod outcomes;
mod sends;
