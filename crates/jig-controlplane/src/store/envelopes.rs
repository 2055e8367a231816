//! `envelopes`: what the agents answered, the accepted and the invalid.

use jig_protocol::ids::AttemptId;
use jig_protocol::time::Timestamp;
use serde::Serialize;

use super::Db;
use super::decode::{Columns, all};
use super::error::{StoreError, failed};

/// One answer of an agent or a reporting command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnvelopeRecord {
    /// The phase.
    pub phase: String,
    /// For an invalid one the seq of its event, for a valid one which entry of
    /// the phase it is of.
    pub emission: u64,
    /// Whether it was accepted.
    pub valid: bool,
    /// The envelope as JSON; for an invalid one the text that was answered.
    pub body: String,
    /// What was wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parse_error: Option<String>,
    /// When it was answered.
    pub recorded_at: Timestamp,
}

fn read(columns: &Columns<'_>) -> Result<EnvelopeRecord, StoreError> {
    Ok(EnvelopeRecord {
        phase: columns.text("phase")?,
        emission: columns.number("emission")?,
        valid: columns.flag("valid")?,
        body: columns.text("body")?,
        parse_error: columns.optional_text("parse_error")?,
        recorded_at: columns.moment("recorded_at")?,
    })
}

pub(crate) async fn insert(
    db: &mut Db,
    attempt: AttemptId,
    envelope: &EnvelopeRecord,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO envelopes (attempt_id, phase, emission, valid, body, parse_error, recorded_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (attempt_id, phase, valid, emission) DO NOTHING",
    )
    .bind(attempt.to_string())
    .bind(&envelope.phase)
    .bind(i64::try_from(envelope.emission).unwrap_or(i64::MAX))
    .bind(i64::from(envelope.valid))
    .bind(&envelope.body)
    .bind(envelope.parse_error.as_deref())
    .bind(envelope.recorded_at.as_micros())
    .execute(db)
    .await
    .map_err(failed("store an envelope"))?;
    Ok(())
}

/// In the order they were answered.
pub(crate) async fn of_attempt(
    db: &mut Db,
    attempt: AttemptId,
) -> Result<Vec<EnvelopeRecord>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM envelopes WHERE attempt_id = $1
         ORDER BY recorded_at, phase, valid, emission",
    )
    .bind(attempt.to_string())
    .fetch_all(db)
    .await
    .map_err(failed("read an attempt's envelopes"))?;
    all("envelopes", &rows, read)
}
