//! Git for jig: hardened git runs, attempt repositories, pinned trees, capture
//! / compare / restore of a work tree, tree merge.
//!
//! It knows nothing of agents, phases, allowlists or databases: it says what is
//! on disk and what changed, the engine judges. It reads no environment, asks no
//! clock, and never runs git with a configuration that an agent could have
//! written.
//!
//! Start reading at [`repository`] (what the operator's repository is), then
//! [`attempt_repo`] (where an attempt works), then [`changes`] (capture, compare,
//! restore).

#![warn(missing_docs)]

mod beneath;
pub mod changes;
mod config_file;
mod objects;
mod refs;
pub mod repository;
pub mod run;
mod tool;

pub use gix::ObjectId;
pub use objects::ObjectError;
pub use run::{Git, GitConfig, GitError};
