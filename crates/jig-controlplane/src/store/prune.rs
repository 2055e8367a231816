//! Removing what retention no longer keeps.

use jig_protocol::ids::AttemptId;
use jig_protocol::lifecycle::AttemptState;
use jig_protocol::time::Timestamp;

use super::Db;
use super::decode::{Columns, all};
use super::error::{StoreError, failed};

/// What retention must know of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PruneCandidate {
    pub(crate) id: AttemptId,
    pub(crate) state: AttemptState,
    pub(crate) completed_at: Option<Timestamp>,
    /// Its work tree is kept on disk.
    pub(crate) tree_retained: bool,
    /// It is the newest attempt of a job that is still open.
    pub(crate) job_open: bool,
}

fn read(columns: &Columns<'_>) -> Result<PruneCandidate, StoreError> {
    Ok(PruneCandidate {
        id: columns.word("id")?,
        state: columns.word("state")?,
        completed_at: columns.optional_moment("completed_at")?,
        tree_retained: columns.flag("tree_retained")?,
        job_open: columns.flag("job_open")?,
    })
}

/// Every attempt, newest first.
pub(crate) async fn candidates(db: &mut Db) -> Result<Vec<PruneCandidate>, StoreError> {
    let rows = sqlx::query(
        "SELECT attempts.id, attempts.state, attempts.completed_at,
                EXISTS (SELECT 1 FROM worktrees
                        WHERE worktrees.attempt_id = attempts.id
                          AND worktrees.state = 'retained') AS tree_retained,
                jobs.state IN ('queued', 'active') AS job_open
         FROM attempts JOIN jobs ON jobs.id = attempts.job_id
         ORDER BY attempts.created_at DESC, attempts.id DESC",
    )
    .fetch_all(db)
    .await
    .map_err(failed("list what may be pruned"))?;
    all("attempts", &rows, read)
}

/// Removes an attempt with everything that hangs on it; `false` when it changed
/// in the meantime in a way that keeps it.
pub(crate) async fn remove(db: &mut Db, attempt: AttemptId) -> Result<bool, StoreError> {
    let kept = sqlx::query(
        "SELECT 1 FROM attempts JOIN jobs ON jobs.id = attempts.job_id
         WHERE attempts.id = $1
           AND attempts.state NOT IN ('queued', 'preparing', 'running')
           AND jobs.state NOT IN ('queued', 'active')
           AND NOT EXISTS (SELECT 1 FROM worktrees
                           WHERE worktrees.attempt_id = $1 AND worktrees.state = 'retained')",
    )
    .bind(attempt.to_string())
    .fetch_optional(&mut *db)
    .await
    .map_err(failed("look at what is to be pruned"))?;
    if kept.is_none() {
        return Ok(false);
    }
    for statement in [
        "DELETE FROM events WHERE attempt_id = $1",
        "DELETE FROM gate_results WHERE attempt_id = $1",
        "DELETE FROM envelopes WHERE attempt_id = $1",
        "DELETE FROM claim_requests WHERE attempt_id = $1",
        "DELETE FROM leases WHERE attempt_id = $1",
        "DELETE FROM worktrees WHERE attempt_id = $1",
        "DELETE FROM attempts WHERE id = $1",
    ] {
        sqlx::query(statement)
            .bind(attempt.to_string())
            .execute(&mut *db)
            .await
            .map_err(failed("prune an attempt"))?;
    }
    Ok(true)
}

/// Removes jobs and runs that have nothing left.
pub(crate) async fn remove_orphans(db: &mut Db) -> Result<(), StoreError> {
    for statement in [
        "DELETE FROM job_requirements WHERE job_id NOT IN (SELECT job_id FROM attempts)",
        "DELETE FROM jobs WHERE id NOT IN (SELECT job_id FROM attempts)",
        "DELETE FROM runs WHERE id NOT IN (SELECT run_id FROM jobs)",
    ] {
        sqlx::query(statement)
            .execute(&mut *db)
            .await
            .map_err(failed("prune what has nothing left"))?;
    }
    Ok(())
}
