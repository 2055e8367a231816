//! `events`: every event of every attempt, as in its trace file.

use jig_protocol::event::Event;
use jig_protocol::ids::AttemptId;
use jig_protocol::time::Timestamp;

use super::Db;
use super::decode::all;
use super::error::{StoreError, failed};

/// Whether the event was new; an event that is stored already stays as it is.
pub(crate) async fn insert(
    db: &mut Db,
    attempt: AttemptId,
    event: &Event,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let seq = i64::try_from(event.seq).map_err(|error| StoreError::Decode {
        table: "events",
        column: "seq",
        source: error.into(),
    })?;
    let inserted = sqlx::query(
        "INSERT INTO events (attempt_id, seq, kind, phase, body, stored_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (attempt_id, seq) DO NOTHING",
    )
    .bind(attempt.to_string())
    .bind(seq)
    .bind(event.kind.as_str())
    .bind(event.phase.as_deref())
    .bind(super::encode(event))
    .bind(now.as_micros())
    .execute(db)
    .await
    .map_err(failed("store an event"))?;
    Ok(inserted.rows_affected() == 1)
}

/// How many events are stored, and the highest seq among them (0 for none).
/// Both are equal exactly when nothing is missing below the highest.
pub(crate) async fn extent(db: &mut Db, attempt: AttemptId) -> Result<(u64, u64), StoreError> {
    let row = sqlx::query(
        "SELECT COUNT(*) AS stored, COALESCE(MAX(seq), 0) AS highest
         FROM events WHERE attempt_id = $1",
    )
    .bind(attempt.to_string())
    .fetch_one(db)
    .await
    .map_err(failed("count an attempt's events"))?;
    let columns = super::decode::Columns {
        table: "events",
        row: &row,
    };
    Ok((columns.number("stored")?, columns.number("highest")?))
}

/// Events with a seq above `after`, ascending.
pub(crate) async fn after(
    db: &mut Db,
    attempt: AttemptId,
    after: u64,
    limit: u32,
) -> Result<Vec<Event>, StoreError> {
    let rows = sqlx::query(
        "SELECT body FROM events WHERE attempt_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
    )
    .bind(attempt.to_string())
    .bind(i64::try_from(after).unwrap_or(i64::MAX))
    .bind(i64::from(limit))
    .fetch_all(db)
    .await
    .map_err(failed("read an attempt's events"))?;
    all("events", &rows, |columns| columns.json("body"))
}
