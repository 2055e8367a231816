//! `claim_requests`: which request took which attempt, so that a repeated
//! request finds it again.

use jig_protocol::ids::AttemptId;
use jig_protocol::time::Timestamp;

use super::Db;
use super::decode::one;
use super::error::{StoreError, failed};

/// What a request took, and the digest of the token it came with.
pub(crate) async fn find(
    db: &mut Db,
    holder: &str,
    request: &str,
) -> Result<Option<(AttemptId, String)>, StoreError> {
    let row = sqlx::query(
        "SELECT attempt_id, token_digest FROM claim_requests
         WHERE holder_id = $1 AND request_id = $2",
    )
    .bind(holder)
    .bind(request)
    .fetch_optional(db)
    .await
    .map_err(failed("look up a claim"))?;
    one("claim_requests", row.as_ref(), |columns| {
        Ok((columns.word("attempt_id")?, columns.text("token_digest")?))
    })
}

pub(crate) async fn insert(
    db: &mut Db,
    holder: &str,
    request: &str,
    token_digest: &str,
    attempt: AttemptId,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO claim_requests (holder_id, request_id, token_digest, attempt_id, created_at)
         VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(holder)
    .bind(request)
    .bind(token_digest)
    .bind(attempt.to_string())
    .bind(now.as_micros())
    .execute(db)
    .await
    .map_err(failed("record a claim"))?;
    Ok(())
}

/// The requests of an attempt that is no longer leased are of no more use.
pub(crate) async fn forget(db: &mut Db, attempt: AttemptId) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM claim_requests WHERE attempt_id = $1")
        .bind(attempt.to_string())
        .execute(db)
        .await
        .map_err(failed("forget a claim"))?;
    Ok(())
}
