//! Registration: who may claim, and what they offer.

use std::collections::BTreeSet;

use crate::store::{Store, StoreError, holders};

/// What a holder offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Its id.
    pub id: String,
    /// How many attempts it may hold at once, 1 to 100.
    pub capacity: u32,
    /// Environment names that it can provide.
    pub environment_names: BTreeSet<String>,
    /// Runtimes that it has.
    pub runtimes: BTreeSet<String>,
}

/// Records the holder as heard from now, with what it offers now.
///
/// # Errors
///
/// [`StoreError`]; also for a capacity out of range.
pub async fn register_holder(store: &Store, registration: &Registration) -> Result<(), StoreError> {
    let now = store.clock().now();
    let mut tx = store.begin("register a holder").await?;
    let id = &registration.id;
    holders::register(tx.db(), id, registration.capacity, now).await?;
    holders::forget_capabilities(tx.db(), id).await?;
    for name in &registration.environment_names {
        holders::offer(tx.db(), id, "env", name.trim()).await?;
    }
    for name in &registration.runtimes {
        holders::offer(tx.db(), id, "runtime", name).await?;
    }
    tx.commit().await
}
