//! `runs`: what was invoked, frozen, and the sum of its jobs.

use std::collections::BTreeMap;

use jig_protocol::ids::RunId;
use jig_protocol::lifecycle::RunState;
use jig_protocol::time::Timestamp;
use serde::Serialize;

use super::Db;
use super::decode::{Columns, all, one};
use super::error::{StoreError, failed};

/// One invocation of a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// The definition it was admitted from.
    pub definition_id: String,
    /// Which generation that was.
    pub definition_generation: u32,
    /// The digest of the text that runs.
    pub snapshot_digest: String,
    /// The frozen parameters.
    pub parameters: BTreeMap<String, String>,
    /// The sum of its jobs' states.
    pub state: RunState,
    /// For a direct run its liveness marker, relative to the data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<String>,
    /// When it was admitted.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
}

fn read(columns: &Columns<'_>) -> Result<RunRecord, StoreError> {
    Ok(RunRecord {
        id: columns.word("id")?,
        definition_id: columns.text("definition_id")?,
        definition_generation: columns.number("definition_generation")?,
        snapshot_digest: columns.text("snapshot_digest")?,
        parameters: columns.json("parameters")?,
        state: columns.word("state")?,
        marker: columns.optional_text("marker")?,
        created_at: columns.moment("created_at")?,
        updated_at: columns.moment("updated_at")?,
    })
}

/// What identifies a request to admit a run, so that a repeat finds the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestKey {
    pub(crate) key: String,
    /// A digest of everything that was asked for.
    pub(crate) digest: String,
}

pub(crate) async fn insert(
    db: &mut Db,
    run: &RunRecord,
    request: Option<&RequestKey>,
) -> Result<(), StoreError> {
    let parameters = super::encode(&run.parameters);
    sqlx::query(
        "INSERT INTO runs (id, definition_id, definition_generation, snapshot_digest, parameters,
                           state, marker, request_key, request_digest, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(run.id.to_string())
    .bind(&run.definition_id)
    .bind(i64::from(run.definition_generation))
    .bind(&run.snapshot_digest)
    .bind(parameters)
    .bind(run.state.as_str())
    .bind(run.marker.as_deref())
    .bind(request.map(|request| request.key.as_str()))
    .bind(request.map(|request| request.digest.as_str()))
    .bind(run.created_at.as_micros())
    .bind(run.updated_at.as_micros())
    .execute(db)
    .await
    .map_err(failed("store a run"))?;
    Ok(())
}

pub(crate) async fn by_id(db: &mut Db, id: RunId) -> Result<Option<RunRecord>, StoreError> {
    let row = sqlx::query("SELECT * FROM runs WHERE id = $1")
        .bind(id.to_string())
        .fetch_optional(db)
        .await
        .map_err(failed("read a run"))?;
    one("runs", row.as_ref(), read)
}

/// The run that a request made, with the digest of what it asked for.
pub(crate) async fn by_request(
    db: &mut Db,
    key: &str,
) -> Result<Option<(RunRecord, String)>, StoreError> {
    let row = sqlx::query("SELECT * FROM runs WHERE request_key = $1")
        .bind(key)
        .fetch_optional(db)
        .await
        .map_err(failed("look up a request"))?;
    one("runs", row.as_ref(), |columns| {
        Ok((read(columns)?, columns.text("request_digest")?))
    })
}

pub(crate) async fn active(db: &mut Db) -> Result<Vec<RunRecord>, StoreError> {
    let rows = sqlx::query("SELECT * FROM runs WHERE state = 'active' ORDER BY created_at, id")
        .fetch_all(db)
        .await
        .map_err(failed("list the active runs"))?;
    all("runs", &rows, read)
}

/// Whether the run was still in the state before.
pub(crate) async fn advance(
    db: &mut Db,
    id: RunId,
    from: RunState,
    to: RunState,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let changed =
        sqlx::query("UPDATE runs SET state = $3, updated_at = $4 WHERE id = $1 AND state = $2")
            .bind(id.to_string())
            .bind(from.as_str())
            .bind(to.as_str())
            .bind(now.as_micros())
            .execute(db)
            .await
            .map_err(failed("change a run's state"))?;
    Ok(changed.rows_affected() == 1)
}
