//! `holders` and `holder_capabilities`: who may claim, and what they offer.

use jig_protocol::time::Timestamp;

use super::Db;
use super::decode::{Columns, one};
use super::error::{StoreError, failed};

/// What a claim needs to know of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HolderRecord {
    pub(crate) capacity: u32,
    pub(crate) last_heard_at: Timestamp,
    /// How many attempts it has leased now.
    pub(crate) leased: u32,
}

pub(crate) async fn by_id(db: &mut Db, id: &str) -> Result<Option<HolderRecord>, StoreError> {
    let row = sqlx::query(
        "SELECT capacity, last_heard_at,
                (SELECT COUNT(*) FROM attempts
                 WHERE holder_id = $1 AND state IN ('preparing', 'running')) AS leased
         FROM holders WHERE id = $1",
    )
    .bind(id)
    .fetch_optional(db)
    .await
    .map_err(failed("read a holder"))?;
    one("holders", row.as_ref(), |columns: &Columns<'_>| {
        Ok(HolderRecord {
            capacity: columns.number("capacity")?,
            last_heard_at: columns.moment("last_heard_at")?,
            leased: columns.number("leased")?,
        })
    })
}

/// The first registration is kept, the rest replaced.
pub(crate) async fn register(
    db: &mut Db,
    id: &str,
    capacity: u32,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO holders (id, capacity, registered_at, last_heard_at)
         VALUES ($1, $2, $3, $3)
         ON CONFLICT (id) DO UPDATE SET capacity = $2, last_heard_at = $3",
    )
    .bind(id)
    .bind(i64::from(capacity))
    .bind(now.as_micros())
    .execute(db)
    .await
    .map_err(failed("register a holder"))?;
    Ok(())
}

pub(crate) async fn heard_from(db: &mut Db, id: &str, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query("UPDATE holders SET last_heard_at = $2 WHERE id = $1")
        .bind(id)
        .bind(now.as_micros())
        .execute(db)
        .await
        .map_err(failed("record that a holder was heard from"))?;
    Ok(())
}

pub(crate) async fn forget_capabilities(db: &mut Db, id: &str) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM holder_capabilities WHERE holder_id = $1")
        .bind(id)
        .execute(db)
        .await
        .map_err(failed("replace what a holder offers"))?;
    Ok(())
}

/// `kind` is `env` or `runtime`.
pub(crate) async fn offer(
    db: &mut Db,
    id: &str,
    kind: &'static str,
    name: &str,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO holder_capabilities (holder_id, kind, name) VALUES ($1, $2, $3)
         ON CONFLICT (holder_id, kind, name) DO NOTHING",
    )
    .bind(id)
    .bind(kind)
    .bind(name)
    .execute(db)
    .await
    .map_err(failed("record what a holder offers"))?;
    Ok(())
}
