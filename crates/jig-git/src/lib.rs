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

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("jig runs on Linux and macOS");

pub mod attempt_repo;
pub mod base_file;
mod beneath;
mod blobs;
pub mod changes;
mod commit;
mod config_file;
mod conversions;
mod deliver;
mod discover;
pub mod evidence;
mod history;
mod index_file;
pub mod new_repository;
mod objects;
mod parallel;
pub mod pinned_tree;
mod refs;
mod removal;
pub mod repository;
pub mod run;
mod skeleton;
mod staged;
mod tool;
mod tree;

pub use attempt_repo::{AttemptPlan, AttemptRepo, AttemptRepoError, release_pin};
pub use base_file::BaseFile;
pub use commit::{CommitError, DiffEntry, HeadCheck};
pub use conversions::ConvertError;
pub use deliver::Imported;
pub use gix::ObjectId;
pub use objects::ObjectError;
pub use pinned_tree::{PinnedEntry, PinnedKind, PinnedTree};
pub use removal::{RemoveError, remove_tree};
pub use repository::{Base, Head, Repository, RepositoryError};
pub use run::{Git, GitConfig, GitError};
pub use staged::IndexImage;
