//! `attempts`: each try at a job.

use jig_protocol::event::RuntimeInUse;
use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::lifecycle::AttemptState;
use jig_protocol::outcome::ResultDocument;
use jig_protocol::time::Timestamp;
use serde::Serialize;

use super::Db;
use super::decode::{Columns, all, one};
use super::error::{StoreError, failed};

/// One try at a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttemptRecord {
    /// Its id.
    pub id: AttemptId,
    /// Its job.
    pub job_id: JobId,
    /// Which try it is, from 1.
    pub number: u32,
    /// Its state.
    pub state: AttemptState,
    /// Who claimed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder_id: Option<String>,
    /// What it runs on, known once it started.
    pub runtimes: Vec<RuntimeInUse>,
    /// The result document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultDocument>,
    /// Why it was not accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When the engine started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// When it was queued.
    pub created_at: Timestamp,
}

fn read(columns: &Columns<'_>) -> Result<AttemptRecord, StoreError> {
    Ok(AttemptRecord {
        id: columns.word("id")?,
        job_id: columns.word("job_id")?,
        number: columns.number("number")?,
        state: columns.word("state")?,
        holder_id: columns.optional_text("holder_id")?,
        runtimes: columns.json("runtimes")?,
        result: columns.optional_json("result")?,
        error: columns.optional_text("error")?,
        started_at: columns.optional_moment("started_at")?,
        completed_at: columns.optional_moment("completed_at")?,
        created_at: columns.moment("created_at")?,
    })
}

/// Adds the attempt, queued.
pub(crate) async fn insert(
    db: &mut Db,
    id: AttemptId,
    job: JobId,
    number: u32,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO attempts (id, job_id, number, state, created_at)
         VALUES ($1, $2, $3, 'queued', $4)",
    )
    .bind(id.to_string())
    .bind(job.to_string())
    .bind(i64::from(number))
    .bind(now.as_micros())
    .execute(db)
    .await
    .map_err(failed("store an attempt"))?;
    Ok(())
}

pub(crate) async fn by_id(db: &mut Db, id: AttemptId) -> Result<Option<AttemptRecord>, StoreError> {
    let row = sqlx::query("SELECT * FROM attempts WHERE id = $1")
        .bind(id.to_string())
        .fetch_optional(db)
        .await
        .map_err(failed("read an attempt"))?;
    one("attempts", row.as_ref(), read)
}

/// Up to two attempts whose id starts with `prefix`, which holds no wildcard.
pub(crate) async fn by_prefix(db: &mut Db, prefix: &str) -> Result<Vec<AttemptRecord>, StoreError> {
    let rows = sqlx::query("SELECT * FROM attempts WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 2")
        .bind(prefix)
        // `g` sorts after every digit and hyphen an id may go on with.
        .bind(format!("{prefix}g"))
        .fetch_all(db)
        .await
        .map_err(failed("look for an attempt"))?;
    all("attempts", &rows, read)
}

pub(crate) async fn newest(db: &mut Db, limit: u32) -> Result<Vec<AttemptRecord>, StoreError> {
    let rows = sqlx::query("SELECT * FROM attempts ORDER BY created_at DESC, id DESC LIMIT $1")
        .bind(i64::from(limit))
        .fetch_all(db)
        .await
        .map_err(failed("list the newest attempts"))?;
    all("attempts", &rows, read)
}

/// Oldest first.
pub(crate) async fn of_job(db: &mut Db, job: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
    let rows = sqlx::query("SELECT * FROM attempts WHERE job_id = $1 ORDER BY number")
        .bind(job.to_string())
        .fetch_all(db)
        .await
        .map_err(failed("list a job's attempts"))?;
    all("attempts", &rows, read)
}

/// Oldest first.
pub(crate) async fn of_run(db: &mut Db, run: RunId) -> Result<Vec<AttemptRecord>, StoreError> {
    let rows = sqlx::query(
        "SELECT attempts.* FROM attempts JOIN jobs ON jobs.id = attempts.job_id
         WHERE jobs.run_id = $1 ORDER BY attempts.created_at, attempts.id",
    )
    .bind(run.to_string())
    .fetch_all(db)
    .await
    .map_err(failed("list a run's attempts"))?;
    all("attempts", &rows, read)
}

/// Whether the attempt was still in the state before.
pub(crate) async fn advance(
    db: &mut Db,
    id: AttemptId,
    from: AttemptState,
    to: AttemptState,
) -> Result<bool, StoreError> {
    let changed = sqlx::query("UPDATE attempts SET state = $3 WHERE id = $1 AND state = $2")
        .bind(id.to_string())
        .bind(from.as_str())
        .bind(to.as_str())
        .execute(db)
        .await
        .map_err(failed("change an attempt's state"))?;
    Ok(changed.rows_affected() == 1)
}

pub(crate) async fn set_holder(
    db: &mut Db,
    id: AttemptId,
    holder: Option<&str>,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE attempts SET holder_id = $2 WHERE id = $1")
        .bind(id.to_string())
        .bind(holder)
        .execute(db)
        .await
        .map_err(failed("record who holds an attempt"))?;
    Ok(())
}

pub(crate) async fn record_start(
    db: &mut Db,
    id: AttemptId,
    runtimes: &[RuntimeInUse],
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE attempts SET started_at = $2, runtimes = $3 WHERE id = $1")
        .bind(id.to_string())
        .bind(at.as_micros())
        .bind(super::encode(runtimes))
        .execute(db)
        .await
        .map_err(failed("record an attempt's start"))?;
    Ok(())
}

pub(crate) async fn record_end(
    db: &mut Db,
    id: AttemptId,
    result: Option<&ResultDocument>,
    error: Option<&str>,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE attempts SET completed_at = $2, result = $3, error = $4 WHERE id = $1")
        .bind(id.to_string())
        .bind(at.as_micros())
        .bind(result.map(super::encode))
        .bind(error)
        .execute(db)
        .await
        .map_err(failed("record an attempt's end"))?;
    Ok(())
}
