//! The guard of one tree: the one way to capture, compare and restore it.

use jig_protocol::definition::PathPattern;
use jig_protocol::repo_path::RepoPath;

use super::capture::{Capture, CaptureError};
use super::compare::Changes;
use super::metadata::Owner;
use super::restore::{RestoreError, RestoreReport, Selection};

/// What a guard has to know besides the attempt's repository.
#[derive(Debug, Clone, Default)]
pub struct GuardOptions {
    /// Directories that commands may fill: never part of a commit.
    pub build_outputs: Vec<PathPattern>,
}

/// Captures, compares and restores one work tree. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TreeGuard {}

impl TreeGuard {
    /// Captures the tree and the metadata around it; `previous` is the latest
    /// earlier capture, if any, and makes unchanged files cheap.
    ///
    /// # Errors
    /// When the tree cannot be listed or content cannot be kept.
    pub async fn capture(&self, previous: Option<&Capture>) -> Result<Capture, CaptureError> {
        let _ = previous;
        Err(CaptureError::Interrupted)
    }

    /// What differs between two captures of this tree.
    #[must_use]
    pub fn compare(&self, before: &Capture, after: &Capture) -> Changes {
        super::compare::compare(before, after, &std::collections::BTreeSet::new())
    }

    /// Makes the selected paths what they were in `to`, then captures again and
    /// reports what is on disk. `now` is the latest capture.
    ///
    /// # Errors
    /// When the tree cannot be captured. A path that could not be restored is no
    /// error but part of the report.
    pub async fn restore(
        &self,
        to: &Capture,
        now: &Capture,
        what: Selection<'_>,
    ) -> Result<RestoreReport, RestoreError> {
        let _ = (to, now, what);
        Err(RestoreError::Capture(CaptureError::Interrupted))
    }

    /// Puts one owner's metadata back byte for byte, jig's own references aside.
    ///
    /// # Errors
    /// When a file cannot be written; the capture must then be taken anew.
    pub async fn put_back_metadata(
        &self,
        to: &Capture,
        now: &Capture,
        owner: Owner,
    ) -> Result<(), super::metadata::PutBackError> {
        let _ = (to, now, owner);
        Ok(())
    }

    /// Whether the ignore files of the base commit ignore `path`, which is not
    /// tracked there.
    #[must_use]
    pub fn is_ignored(&self, path: &RepoPath, is_directory: bool) -> bool {
        let _ = (path, is_directory);
        false
    }

    /// Whether the base commit has a file at `path`, or anything below it.
    #[must_use]
    pub fn is_tracked_in_base(&self, path: &RepoPath) -> bool {
        let _ = path;
        false
    }

    /// Whether `path` is a build output: granted, and not tracked in the base.
    #[must_use]
    pub fn is_build_output(&self, path: &RepoPath) -> bool {
        let _ = path;
        false
    }
}
