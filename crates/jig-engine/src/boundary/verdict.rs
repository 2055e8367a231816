//! What the boundary says of an entry, and why it could say nothing.

use jig_git::changes::{CaptureError, PutBackError, RestoreError};
use jig_git::{AttemptRepoError, CommitError};
use jig_protocol::event::Breach;
use jig_protocol::repo_path::RepoPath;

/// What an entry did, and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Permitted changes that a commit can hold.
    pub touched: Vec<RepoPath>,
    /// Changes inside build output grants.
    pub outputs: Vec<RepoPath>,
    /// Permitted changes of ignored paths.
    pub ignored: Vec<RepoPath>,
    /// Written and written back.
    pub transient: Vec<RepoPath>,
    /// Git metadata that was changed without harm, and put back.
    pub metadata_restored: Vec<String>,
    /// Everything that was not permitted, with what is on disk now.
    pub breaches: Vec<Breach>,
    /// Whether the branch went forward.
    pub head_moved: bool,
}

/// What undoing a dead entry came to. The tree is exactly what it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// Paths that were undone.
    pub restored: Vec<RepoPath>,
    /// Metadata that could steer git was changed: a breach, also by the dead.
    pub breaches: Vec<Breach>,
}

/// Why the boundary could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum BoundaryError {
    /// The tree could not be captured.
    #[error("the work tree could not be captured")]
    Capture(#[from] CaptureError),
    /// The tree could not be restored.
    #[error("the work tree could not be restored")]
    Restore(#[from] RestoreError),
    /// Undoing a dead entry left something changed.
    #[error("{} of the dead entry's paths could not be undone, the first is {path}: {why}", .count)]
    NotRestored {
        /// How many paths.
        count: usize,
        /// The first of them.
        path: RepoPath,
        /// What is there, and why.
        why: String,
    },
    /// Metadata could not be put back.
    #[error(transparent)]
    PutBack(#[from] PutBackError),
    /// A commit could not be made or checked.
    #[error("a commit of the work tree could not be made or checked")]
    Commit(#[from] CommitError),
    /// The attempt's repository cannot be used.
    #[error(transparent)]
    Repository(#[from] AttemptRepoError),
    /// An agent changed metadata that steers git, so git is not run any more.
    #[error("git's metadata was tampered with; git is not run with it")]
    Tampered,
}
