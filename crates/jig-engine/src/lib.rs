//! Drives one attempt through its chain: guards, agent and code phases, gates,
//! boundary, repair edges, acceptance. Embeddable.
//!
//! The engine decides nothing about what to run and keeps no record of its own
//! beyond the attempt's directory: it has never heard of a database, a server
//! or a particular agent. It has no globals, reads no environment, asks no
//! system clock, and leaves no process behind, whichever way it ends.
//!
//! Start reading at [`Engine`]; then `chain` (the order of things), `entry`
//! (one entry of a phase, from its first event to its one record),
//! `agent_phase` and `code_phase`. What decides is pure and lies apart from
//! what does: `fields`, `repair`, `acceptance`, `budget`, `summary`,
//! [`redact`], [`mod@boundary::judge`] and the prompts are functions of their
//! arguments. What is on disk around an attempt is in [`host`].

#![warn(missing_docs)]

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("jig-engine runs on Linux and macOS");

mod acceptance;
mod agent_phase;
mod attempt;
mod beneath;
pub mod boundary;
mod breach;
mod budget;
mod chain;
mod code_phase;
pub mod command;
mod ending;
mod entry;
pub mod fault;
mod fields;
mod finish;
mod gate_round;
pub mod gates;
pub mod home;
pub mod host;
mod live;
pub mod redact;
mod repair;
mod start;
mod state;
mod summary;
#[cfg(test)]
mod testing;
mod trace;
mod unwind;

pub use attempt::{AttemptInput, AttemptOutcome, Engine, EngineConfig, RandomSource};
pub use trace::{EventSink, NoSink, SinkError};
