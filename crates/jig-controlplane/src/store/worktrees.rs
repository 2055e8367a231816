//! `worktrees`: the ledger of work trees that are kept on disk.

use std::fmt;
use std::str::FromStr;

use jig_protocol::ids::AttemptId;
use jig_protocol::time::Timestamp;
use serde::Serialize;

use super::Db;
use super::decode::{Columns, all, one};
use super::error::{StoreError, failed};

/// What is known of a kept work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorktreeState {
    /// It lies on disk.
    Retained,
    /// Someone confirmed that it may go.
    Released,
    /// It was not found where it should lie.
    Lost,
}

/// A word that is no state of a kept work tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no state of a kept work tree")]
pub struct UnknownWorktreeState(String);

impl WorktreeState {
    /// The state as it is stored and sent.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retained => "retained",
            Self::Released => "released",
            Self::Lost => "lost",
        }
    }
}

impl fmt::Display for WorktreeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for WorktreeState {
    type Err = UnknownWorktreeState;

    fn from_str(text: &str) -> Result<Self, UnknownWorktreeState> {
        match text {
            "retained" => Ok(Self::Retained),
            "released" => Ok(Self::Released),
            "lost" => Ok(Self::Lost),
            other => Err(UnknownWorktreeState(other.to_owned())),
        }
    }
}

/// One kept work tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorktreeRecord {
    /// The attempt it is of.
    pub attempt_id: AttemptId,
    /// Who keeps it.
    pub holder_id: String,
    /// The repository it is of.
    pub repository: String,
    /// Where it lies.
    pub path: String,
    /// Why it is kept.
    pub reason: String,
    /// What is known of it.
    pub state: WorktreeState,
    /// When it was kept.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
}

fn read(columns: &Columns<'_>) -> Result<WorktreeRecord, StoreError> {
    Ok(WorktreeRecord {
        attempt_id: columns.word("attempt_id")?,
        holder_id: columns.text("holder_id")?,
        repository: columns.text("repository")?,
        path: columns.text("path")?,
        reason: columns.text("reason")?,
        state: columns.word("state")?,
        created_at: columns.moment("created_at")?,
        updated_at: columns.moment("updated_at")?,
    })
}

/// A tree that was lost and is there again is retained; a released one stays so.
pub(crate) async fn retain(db: &mut Db, tree: &WorktreeRecord) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO worktrees (attempt_id, holder_id, repository, path, reason, state,
                                created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, 'retained', $6, $6)
         ON CONFLICT (attempt_id) DO UPDATE SET
             path = $4, reason = $5, state = 'retained', updated_at = $6
         WHERE worktrees.state <> 'released'",
    )
    .bind(tree.attempt_id.to_string())
    .bind(&tree.holder_id)
    .bind(&tree.repository)
    .bind(&tree.path)
    .bind(&tree.reason)
    .bind(tree.created_at.as_micros())
    .execute(db)
    .await
    .map_err(failed("record a kept work tree"))?;
    Ok(())
}

pub(crate) async fn by_attempt(
    db: &mut Db,
    attempt: AttemptId,
) -> Result<Option<WorktreeRecord>, StoreError> {
    let row = sqlx::query("SELECT * FROM worktrees WHERE attempt_id = $1")
        .bind(attempt.to_string())
        .fetch_optional(db)
        .await
        .map_err(failed("read a kept work tree"))?;
    one("worktrees", row.as_ref(), read)
}

/// Oldest first.
pub(crate) async fn retained(db: &mut Db) -> Result<Vec<WorktreeRecord>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM worktrees WHERE state = 'retained' ORDER BY created_at, attempt_id",
    )
    .fetch_all(db)
    .await
    .map_err(failed("list the kept work trees"))?;
    all("worktrees", &rows, read)
}

/// Whether the tree was still in the state before.
pub(crate) async fn advance(
    db: &mut Db,
    attempt: AttemptId,
    from: WorktreeState,
    to: WorktreeState,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let changed = sqlx::query(
        "UPDATE worktrees SET state = $3, updated_at = $4 WHERE attempt_id = $1 AND state = $2",
    )
    .bind(attempt.to_string())
    .bind(from.as_str())
    .bind(to.as_str())
    .bind(now.as_micros())
    .execute(db)
    .await
    .map_err(failed("change a kept work tree's state"))?;
    Ok(changed.rows_affected() == 1)
}
