//! Child processes for jig: nothing that is started here outlives what started it.
//!
//! Commands that may do anything (agents, code phases, gates) run below a
//! small supervisor process ([`Supervised`], [`run_command`]); trusted helpers
//! such as git run directly ([`tool`]). Around these two: what a child's
//! environment holds ([`environment`]), who a process is ([`identity`]), what
//! is kept of its output ([`capture`]), and the one object that ends every
//! wait ([`deadline`]).
//!
//! The supervisor is a hidden mode of the host executable, see [`Host`]:
//! an embedder calls [`supervisor_main`] first in `main`.
//!
//! This crate must never know what an agent, a repository or a definition is.
//! It never reads the environment of its own process.
//!
//! Start reading at [`Supervised`]; the supervisor itself is in `supervisor/`.
//!
//! # Platforms
//!
//! Linux is whole. On macOS there is no child subreaper, no pidfd and no
//! parent-death signal: descendants are found by process group, session and
//! parentage at the time of the look, so a process that leaves all three
//! between two looks escapes.

#![warn(missing_docs)]

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("jig runs on Linux and macOS only");

pub mod beneath;
pub mod capture;
mod clock;
pub mod command;
pub mod deadline;
pub mod environment;
mod fork;
mod host;
pub mod identity;
mod poll;
mod reclaim;
mod supervised;
mod supervisor;
mod table;
pub mod tool;

pub use clock::SystemClock;
pub use command::{CommandEnd, CommandOutcome, CommandSpec, run_command};
pub use deadline::{Deadline, StopReason, StopSignal};
pub use environment::Environment;
pub use host::{Host, HostError, hidden_mode, supervisor_main};
pub use identity::{GroupId, Liveness, ProcessIdentity};
pub use reclaim::{Reclaimed, stop_by_home, stop_by_identity};
pub use supervised::{
    Exit, LiveSupervisors, Program, RemoveAtEnd, Spec, StartError, StartStage, Stdin,
    SuperviseError, Supervised, Teardown, all_stopped,
};
pub use supervisor::Confinement;
pub use table::{FoundProcess, processes_inside};
