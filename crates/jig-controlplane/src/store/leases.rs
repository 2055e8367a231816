//! `leases`: who may work on an attempt, until when.

use jig_protocol::ids::AttemptId;
use jig_protocol::lifecycle::LeaseState;
use jig_protocol::time::Timestamp;

use super::Db;
use super::decode::{Columns, all, one};
use super::error::{StoreError, failed};

/// A lease with what proves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseRecord {
    pub(crate) attempt_id: AttemptId,
    pub(crate) holder_id: String,
    pub(crate) token_digest: String,
    pub(crate) state: LeaseState,
}

fn read(columns: &Columns<'_>) -> Result<LeaseRecord, StoreError> {
    let until = columns.moment("expires_at")?;
    let missed = columns.optional_moment("first_missed_at")?;
    let word = columns.text("state")?;
    let state = match (word.as_str(), missed) {
        ("held", _) => LeaseState::Held { until },
        ("missed", Some(first_missed)) => LeaseState::Missed {
            until,
            first_missed,
        },
        ("lost", _) => LeaseState::Lost,
        ("closed", _) => LeaseState::Closed,
        _ => {
            return Err(StoreError::Decode {
                table: "leases",
                column: "state",
                source: format!("{word:?} is no state of a lease with these times").into(),
            });
        }
    };
    Ok(LeaseRecord {
        attempt_id: columns.word("attempt_id")?,
        holder_id: columns.text("holder_id")?,
        token_digest: columns.text("token_digest")?,
        state,
    })
}

/// A lease replaces the one of a claim that was handed back.
pub(crate) async fn open(
    db: &mut Db,
    attempt: AttemptId,
    holder: &str,
    token_digest: &str,
    until: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO leases (attempt_id, holder_id, token_digest, state, expires_at)
         VALUES ($1, $2, $3, 'held', $4)
         ON CONFLICT (attempt_id) DO UPDATE SET
             holder_id = $2, token_digest = $3, state = 'held', expires_at = $4,
             first_missed_at = NULL
         WHERE leases.state = 'closed'",
    )
    .bind(attempt.to_string())
    .bind(holder)
    .bind(token_digest)
    .bind(until.as_micros())
    .execute(db)
    .await
    .map_err(failed("open a lease"))?;
    Ok(())
}

pub(crate) async fn of_attempt(
    db: &mut Db,
    attempt: AttemptId,
) -> Result<Option<LeaseRecord>, StoreError> {
    let row = sqlx::query("SELECT * FROM leases WHERE attempt_id = $1")
        .bind(attempt.to_string())
        .fetch_optional(db)
        .await
        .map_err(failed("read a lease"))?;
    one("leases", row.as_ref(), read)
}

/// Every lease that is held or missed.
pub(crate) async fn live(db: &mut Db) -> Result<Vec<LeaseRecord>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM leases WHERE state IN ('held', 'missed') ORDER BY expires_at, attempt_id",
    )
    .fetch_all(db)
    .await
    .map_err(failed("list the live leases"))?;
    all("leases", &rows, read)
}

/// Whether the lease was still in the state before, times included.
pub(crate) async fn advance(
    db: &mut Db,
    attempt: AttemptId,
    from: LeaseState,
    to: LeaseState,
) -> Result<bool, StoreError> {
    let (before_until, _) = times(from);
    let (until, missed) = times(to);
    let changed = sqlx::query(
        "UPDATE leases SET state = $4, expires_at = COALESCE($5, expires_at), first_missed_at = $6
         WHERE attempt_id = $1 AND state = $2 AND expires_at = COALESCE($3, expires_at)",
    )
    .bind(attempt.to_string())
    .bind(from.name())
    .bind(before_until.map(Timestamp::as_micros))
    .bind(to.name())
    .bind(until.map(Timestamp::as_micros))
    .bind(missed.map(Timestamp::as_micros))
    .execute(db)
    .await
    .map_err(failed("change a lease"))?;
    Ok(changed.rows_affected() == 1)
}

const fn times(state: LeaseState) -> (Option<Timestamp>, Option<Timestamp>) {
    match state {
        LeaseState::Held { until } => (Some(until), None),
        LeaseState::Missed {
            until,
            first_missed,
        } => (Some(until), Some(first_missed)),
        LeaseState::Lost | LeaseState::Closed => (None, None),
    }
}
