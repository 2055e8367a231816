//! Capture, compare and restore of a work tree and of the metadata around it.
//!
//! - `walk` lists a tree, `fingerprint` says what its files hold, and
//!   `capture` puts both together;
//! - `compare` is pure;
//! - `store` keeps content, `restore` brings it back;
//! - `metadata` is everything in a git directory that steers git.

mod capture;
mod compare;
mod copies;
mod entry;
mod fingerprint;
mod guard;
mod metadata;
mod put_back;
mod read_metadata;
mod rebuild;
mod restore;
mod store;
mod walk;

pub(crate) use capture::CaptureData;
pub use capture::{Capture, CaptureError};
pub(crate) use compare::is_below;
pub use compare::{Change, ChangeKind, Changes, Hazard, is_dot_git};
pub(crate) use entry::{Content, FileTime, tree_order};
pub use entry::{Entry, EntryKind};
pub use guard::{GuardOptions, TreeGuard};
pub use metadata::{MetadataChange, MetadataKind, Owner, PutBackError};
pub use restore::{Remains, RestoreError, RestoreReport, Selection};
