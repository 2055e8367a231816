//! `gate_results`: every check of every gate's round.

use jig_protocol::ids::AttemptId;
use jig_protocol::time::Timestamp;
use serde::Serialize;

use super::Db;
use super::decode::{Columns, all};
use super::error::{StoreError, failed};

/// One check of one round of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateRecord {
    /// The event that said it.
    pub seq: u64,
    /// The check's place in that event, from 1.
    pub item_number: u32,
    /// The phase.
    pub phase: String,
    /// The gate.
    pub gate: String,
    /// The gate's round, from 1.
    pub round: u32,
    /// Whether the whole round passed.
    pub passed: bool,
    /// What was checked.
    pub item: String,
    /// Whether it held.
    pub ok: bool,
    /// What was found.
    pub note: String,
    /// When it was judged.
    pub recorded_at: Timestamp,
}

fn read(columns: &Columns<'_>) -> Result<GateRecord, StoreError> {
    Ok(GateRecord {
        seq: columns.number("seq")?,
        item_number: columns.number("item_number")?,
        phase: columns.text("phase")?,
        gate: columns.text("gate")?,
        round: columns.number("round")?,
        passed: columns.flag("passed")?,
        item: columns.text("item")?,
        ok: columns.flag("ok")?,
        note: columns.text("note")?,
        recorded_at: columns.moment("recorded_at")?,
    })
}

pub(crate) async fn insert(
    db: &mut Db,
    attempt: AttemptId,
    gate: &GateRecord,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO gate_results (attempt_id, seq, item_number, phase, gate, round, passed,
                                   item, ok, note, recorded_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (attempt_id, seq, item_number) DO NOTHING",
    )
    .bind(attempt.to_string())
    .bind(i64::try_from(gate.seq).unwrap_or(i64::MAX))
    .bind(i64::from(gate.item_number))
    .bind(&gate.phase)
    .bind(&gate.gate)
    .bind(i64::from(gate.round))
    .bind(i64::from(gate.passed))
    .bind(&gate.item)
    .bind(i64::from(gate.ok))
    .bind(&gate.note)
    .bind(gate.recorded_at.as_micros())
    .execute(db)
    .await
    .map_err(failed("store a gate's check"))?;
    Ok(())
}

/// In the order they were judged.
pub(crate) async fn of_attempt(
    db: &mut Db,
    attempt: AttemptId,
) -> Result<Vec<GateRecord>, StoreError> {
    let rows =
        sqlx::query("SELECT * FROM gate_results WHERE attempt_id = $1 ORDER BY seq, item_number")
            .bind(attempt.to_string())
            .fetch_all(db)
            .await
            .map_err(failed("read an attempt's gates"))?;
    all("gate_results", &rows, read)
}
