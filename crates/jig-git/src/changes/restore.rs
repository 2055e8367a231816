//! Bringing a tree back to what a capture recorded, and saying what is on disk.

use std::collections::BTreeSet;

use jig_protocol::repo_path::RepoPath;

use super::capture::{Capture, CaptureError};

/// Which paths to restore.
#[derive(Debug, Clone, Copy)]
pub enum Selection<'a> {
    /// Everything that differs.
    All,
    /// These paths, and whatever lies below them.
    Only(&'a BTreeSet<RepoPath>),
}

/// A selected path that is still not what it was.
#[derive(Debug, Clone)]
pub struct Remains {
    /// The path.
    pub path: RepoPath,
    /// Why, and what is there now.
    pub why: String,
}

/// What a restore did, by the capture that was taken after it.
#[derive(Debug, Clone)]
pub struct RestoreReport {
    /// Paths that are again what they were.
    pub restored: Vec<RepoPath>,
    /// Paths that are not.
    pub remaining: Vec<Remains>,
    /// The tree as it is now.
    pub capture: Capture,
}

impl RestoreReport {
    /// Whether every selected path is again what it was.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.remaining.is_empty()
    }
}

/// Why a restore could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The tree could not be captured afterwards.
    #[error("could not capture the tree after restoring it")]
    Capture(#[from] CaptureError),
}
