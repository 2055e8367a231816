//! Plays a scripted agent as a real child process and translates its stream
//! into runtime terms.
//!
//! For rehearsals, demonstrations and tests: everything around the agent is
//! real, only what it says and does comes from a [`Script`]. The adapter hands
//! each send one step; the process ([`scripted_agent_main`], a hidden mode of
//! the host program) plays it where a real agent would run.
//!
//! This crate must never know another agent, a chain or a database.
//!
//! Start reading at [`script`]; then `runtime` (the adapter), `agent` (the
//! process) and `wire` (what passes between the two).

#![warn(missing_docs)]

mod agent;
mod barrier;
mod dialect;
mod runtime;
pub mod script;
mod wire;

pub use agent::scripted_agent_main;
pub use runtime::ScriptedRuntime;
pub use script::{Script, ScriptError};
