//! Drives one attempt through its chain: guards, agent and code phases, gates,
//! boundary, repair edges, acceptance. Embeddable.
//!
//! The engine decides nothing about what to run and keeps no record of its own
//! beyond the attempt's directory: it has never heard of a database, a server
//! or a particular agent. It has no globals, reads no environment, asks no
//! system clock, and leaves no process behind, whichever way it ends.
//!
//! What decides is pure and lies apart from what does: `fields`, `repair`,
//! `acceptance`, `budget`, `summary`, [`redact`], [`boundary::judge`] and the
//! prompts are functions of their arguments. What is on disk around an attempt
//! is in [`host`].

#![warn(missing_docs)]

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("jig-engine runs on Linux and macOS");

mod acceptance;
mod beneath;
pub mod boundary;
pub mod command;
mod fields;
pub mod gates;
pub mod home;
pub mod host;
pub mod redact;
mod repair;
mod summary;
#[cfg(test)]
mod testing;
mod trace;

pub use trace::{EventSink, NoSink, OpenTraceError, SinkError};
