//! `jobs` and `job_requirements`: the work of a run in one repository, and what
//! a holder must offer to claim it.

use jig_protocol::ids::{JobId, RunId};
use jig_protocol::lifecycle::JobState;
use jig_protocol::time::Timestamp;
use serde::Serialize;

use super::Db;
use super::decode::{Columns, all, one};
use super::error::{StoreError, failed};

/// The work of one run in one repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JobRecord {
    /// Its id.
    pub id: JobId,
    /// Its run.
    pub run_id: RunId,
    /// The repository.
    pub repository: String,
    /// What was resolved to the base, where that was not a commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_ref: Option<String>,
    /// The pinned base commit of all its attempts.
    pub base_sha: String,
    /// Its state.
    pub state: JobState,
    /// Someone wants it to stop.
    pub cancellation_requested: bool,
    /// When its holder was told so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancellation_delivered_at: Option<Timestamp>,
    /// The only holder that may claim it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_for: Option<String>,
    /// Since when it waits for its current attempt.
    pub queued_at: Timestamp,
    /// When it was admitted.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
}

fn read(columns: &Columns<'_>) -> Result<JobRecord, StoreError> {
    Ok(JobRecord {
        id: columns.word("id")?,
        run_id: columns.word("run_id")?,
        repository: columns.text("repository")?,
        base_ref: columns.optional_text("base_ref")?,
        base_sha: columns.text("base_sha")?,
        state: columns.word("state")?,
        cancellation_requested: columns.flag("cancellation_requested")?,
        cancellation_delivered_at: columns.optional_moment("cancellation_delivered_at")?,
        reserved_for: columns.optional_text("reserved_for")?,
        queued_at: columns.moment("queued_at")?,
        created_at: columns.moment("created_at")?,
        updated_at: columns.moment("updated_at")?,
    })
}

pub(crate) async fn insert(db: &mut Db, job: &JobRecord) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO jobs (id, run_id, repository, base_ref, base_sha, state, reserved_for,
                           queued_at, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(job.id.to_string())
    .bind(job.run_id.to_string())
    .bind(&job.repository)
    .bind(job.base_ref.as_deref())
    .bind(&job.base_sha)
    .bind(job.state.as_str())
    .bind(job.reserved_for.as_deref())
    .bind(job.queued_at.as_micros())
    .bind(job.created_at.as_micros())
    .bind(job.updated_at.as_micros())
    .execute(db)
    .await
    .map_err(failed("store a job"))?;
    Ok(())
}

/// `kind` is `env` or `runtime`.
pub(crate) async fn require(
    db: &mut Db,
    job: JobId,
    kind: &'static str,
    name: &str,
) -> Result<(), StoreError> {
    sqlx::query("INSERT INTO job_requirements (job_id, kind, name) VALUES ($1, $2, $3)")
        .bind(job.to_string())
        .bind(kind)
        .bind(name)
        .execute(db)
        .await
        .map_err(failed("store what a job requires"))?;
    Ok(())
}

pub(crate) async fn by_id(db: &mut Db, id: JobId) -> Result<Option<JobRecord>, StoreError> {
    let row = sqlx::query("SELECT * FROM jobs WHERE id = $1")
        .bind(id.to_string())
        .fetch_optional(db)
        .await
        .map_err(failed("read a job"))?;
    one("jobs", row.as_ref(), read)
}

/// In the order they were admitted.
pub(crate) async fn of_run(db: &mut Db, run: RunId) -> Result<Vec<JobRecord>, StoreError> {
    let rows = sqlx::query("SELECT * FROM jobs WHERE run_id = $1 ORDER BY created_at, id")
        .bind(run.to_string())
        .fetch_all(db)
        .await
        .map_err(failed("list a run's jobs"))?;
    all("jobs", &rows, read)
}

/// The oldest waiting job that anyone may claim, whose requirements the holder
/// offers, and in whose repository the holder keeps fewer than `retained_cap`
/// work trees.
pub(crate) async fn next_for(
    db: &mut Db,
    holder: &str,
    retained_cap: u32,
) -> Result<Option<JobRecord>, StoreError> {
    let row = sqlx::query(NEXT_FOR)
        .bind(holder)
        .bind(i64::from(retained_cap))
        .fetch_optional(db)
        .await
        .map_err(failed("look for a job to claim"))?;
    one("jobs", row.as_ref(), read)
}

pub(super) const NEXT_FOR: &str = "
    SELECT * FROM jobs
    WHERE state = 'queued' AND reserved_for IS NULL
      AND NOT EXISTS (
        SELECT 1 FROM job_requirements needed
        WHERE needed.job_id = jobs.id AND NOT EXISTS (
          SELECT 1 FROM holder_capabilities offered
          WHERE offered.holder_id = $1
            AND offered.kind = needed.kind AND offered.name = needed.name))
      AND (
        SELECT COUNT(*) FROM worktrees kept
        WHERE kept.holder_id = $1 AND kept.repository = jobs.repository
          AND kept.state = 'retained') < $2
    ORDER BY queued_at, id
    LIMIT 1";

/// Whether the job was still in the state before.
pub(crate) async fn advance(
    db: &mut Db,
    id: JobId,
    from: JobState,
    to: JobState,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let changed =
        sqlx::query("UPDATE jobs SET state = $3, updated_at = $4 WHERE id = $1 AND state = $2")
            .bind(id.to_string())
            .bind(from.as_str())
            .bind(to.as_str())
            .bind(now.as_micros())
            .execute(db)
            .await
            .map_err(failed("change a job's state"))?;
    Ok(changed.rows_affected() == 1)
}

pub(crate) async fn request_cancellation(db: &mut Db, id: JobId) -> Result<(), StoreError> {
    sqlx::query("UPDATE jobs SET cancellation_requested = 1 WHERE id = $1")
        .bind(id.to_string())
        .execute(db)
        .await
        .map_err(failed("record a cancellation"))?;
    Ok(())
}

/// Keeps the first moment.
pub(crate) async fn deliver_cancellation(
    db: &mut Db,
    id: JobId,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE jobs SET cancellation_delivered_at = COALESCE(cancellation_delivered_at, $2)
         WHERE id = $1 AND cancellation_requested = 1",
    )
    .bind(id.to_string())
    .bind(now.as_micros())
    .execute(db)
    .await
    .map_err(failed("record that a cancellation was delivered"))?;
    Ok(())
}

pub(crate) async fn clear_cancellation(db: &mut Db, id: JobId) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE jobs SET cancellation_requested = 0, cancellation_delivered_at = NULL
         WHERE id = $1",
    )
    .bind(id.to_string())
    .execute(db)
    .await
    .map_err(failed("forget a cancellation"))?;
    Ok(())
}

pub(crate) async fn enqueue(db: &mut Db, id: JobId, at: Timestamp) -> Result<(), StoreError> {
    sqlx::query("UPDATE jobs SET queued_at = $2 WHERE id = $1")
        .bind(id.to_string())
        .bind(at.as_micros())
        .execute(db)
        .await
        .map_err(failed("put a job at the end of the queue"))?;
    Ok(())
}
