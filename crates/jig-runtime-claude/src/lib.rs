//! Translates the Claude Code command line and stream into runtime terms.
//!
//! This crate must never know a chain, another agent or a database, and starts
//! no process itself: the supervision loop of `jig-runtime` does.
//!
//! Start reading at [`ClaudeRuntime`]; then `command_line` (what is started),
//! `translate` (what each line says), `classify` (how a send ended), `login`
//! (what a role receives of the operator's login) and `probe`.

#![warn(missing_docs)]

mod classify;
mod command_line;
mod login;
mod probe;
mod runtime;
mod translate;

pub use probe::MINIMUM_VERSION;
pub use runtime::{ClaudeConfig, ClaudeRuntime};
pub use translate::ClaudeDialect;
