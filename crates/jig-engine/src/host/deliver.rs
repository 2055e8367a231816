//! From an accepted attempt to a branch in the operator's repository.

use jig_git::CommitError;
use jig_protocol::outcome::PublishMarker;
use jig_protocol::repo_path::RepoPath;

use super::notes::commit_message;
use super::prepare::{HostConfig, PreparedAttempt};
use crate::boundary::{Boundary, BoundaryError};
use crate::redact::Redactor;

/// What was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// For the result document. Whether a person must look first is not known
    /// here: a held result has a branch too.
    pub marker: PublishMarker,
    /// The branch in the operator's repository, its short name.
    pub branch: Option<String>,
    /// Its commit, in hex.
    pub commit: Option<String>,
}

impl Delivery {
    /// Nothing was delivered.
    #[must_use]
    pub const fn none() -> Self {
        Self::with(PublishMarker::NotAttempted)
    }

    const fn with(marker: PublishMarker) -> Self {
        Self {
            marker,
            branch: None,
            commit: None,
        }
    }
}

/// Why an accepted result could not be delivered. The tree must then be kept.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// git's metadata was tampered with, so git is not run with it.
    #[error("nothing is delivered from a repository whose metadata was tampered with")]
    Tampered,
    /// The result could not be committed or imported.
    #[error("the result could not be delivered")]
    Commit(#[from] CommitError),
    /// What the result would hold cannot be known.
    #[error("the result could not be looked at")]
    Look(#[from] BoundaryError),
    /// The commit is not what is in the tree.
    #[error(
        "the result's commit is not what was judged: {} path{} differ",
        .paths.len(),
        if .paths.len() == 1 { "" } else { "s" }
    )]
    Differs {
        /// The paths that differ, at least one.
        paths: Vec<RepoPath>,
    },
}

/// Commits what is uncommitted and imports the result into the lender, as
/// `jig/<job>/<attempt number>`. In place there is nothing to do.
///
/// To be called for an accepted attempt only. Doing it again after it was
/// interrupted is the same as doing it once.
///
/// # Errors
/// When the result cannot be committed or imported; nothing of the lender but
/// unused objects was then changed.
pub async fn deliver(
    config: &HostConfig,
    prepared: &PreparedAttempt,
    boundary: &Boundary,
    redactor: &Redactor,
    title: &str,
) -> Result<Delivery, DeliverError> {
    if prepared.is_in_place() {
        return Ok(Delivery::none());
    }
    if boundary.is_tampered() {
        return Err(DeliverError::Tampered);
    }
    let (repo, guard, capture) = (boundary.repo(), boundary.guard(), boundary.latest());
    let message = commit_message(&prepared.dirs.handoff(), redactor, title);
    let result = repo
        .commit_result(guard, capture, &message, config.clock.now())
        .await?;
    let Some(commit) = result else {
        return Ok(Delivery::with(PublishMarker::NothingToPublish));
    };
    let check = repo.check_commit(guard, capture, commit).await?;
    let never = boundary
        .undeliverable(prepared.base.commit(), commit)
        .await?;
    let mut paths = check.differing;
    paths.extend(check.uncommitted);
    paths.extend(never.into_keys());
    if !paths.is_empty() {
        return Err(DeliverError::Differs { paths });
    }
    let imported = repo.import(commit).await?;
    Ok(Delivery {
        marker: PublishMarker::LocalBranch,
        branch: Some(imported.branch),
        commit: Some(imported.commit.to_string()),
    })
}
