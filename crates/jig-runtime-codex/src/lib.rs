//! Translates the Codex command line and stream into runtime terms.
//!
//! This crate must never know a chain, another agent or a database, and starts
//! no process itself: the supervision loop of `jig-runtime` does.
//!
//! Start reading at `probe`: which Codex can be used.

#![warn(missing_docs)]

mod probe;

pub use probe::{MINIMUM_VERSION, version_word};
