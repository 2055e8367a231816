//! Translates the Codex command line and stream into runtime terms.
//!
//! This crate must never know a chain, another agent or a database, and starts
//! no process itself: the supervision loop of `jig-runtime` does.
//!
//! Start reading at [`CodexRuntime`]; then `command_line` (what is started),
//! `settings` (the configuration it is started with), [`operator`] (what of the
//! operator's configuration that holds), `translate` (what each line says),
//! `classify` (how a send ended), `login` (what a role receives of the
//! operator's login) and `probe`.

#![warn(missing_docs)]

mod classify;
mod command_line;
mod login;
pub mod operator;
mod probe;
mod runtime;
mod settings;
mod translate;

pub use operator::Operator;
pub use probe::MINIMUM_VERSION;
pub use runtime::{CodexConfig, CodexRuntime};
pub use translate::CodexDialect;
