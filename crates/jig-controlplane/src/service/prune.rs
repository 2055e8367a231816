//! Retention: which finished attempts the store no longer keeps.

use jig_protocol::ids::AttemptId;
use jig_protocol::limits::Retention;
use jig_protocol::time::Timestamp;

use crate::store::prune::{self, PruneCandidate};
use crate::store::{Store, StoreError};

/// Which attempts go. Never one that is open, belongs to an open job, or whose
/// work tree is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrunePlan {
    /// Newest first.
    pub attempts: Vec<AttemptId>,
}

impl PrunePlan {
    /// Decides from all attempts, newest first.
    fn new(candidates: &[PruneCandidate], retention: Retention, now: Timestamp) -> Self {
        let mut kept = 0;
        let mut attempts = Vec::new();
        for candidate in candidates {
            let Some(completed_at) = candidate.completed_at else {
                continue;
            };
            if !candidate.state.is_terminal() || candidate.tree_retained || candidate.job_open {
                continue;
            }
            if kept < retention.attempts && now.saturating_since(completed_at) <= retention.age {
                kept += 1;
            } else {
                attempts.push(candidate.id);
            }
        }
        Self { attempts }
    }
}

/// What retention would remove now.
///
/// # Errors
///
/// [`StoreError`].
pub async fn plan_prune(store: &Store, retention: Retention) -> Result<PrunePlan, StoreError> {
    let candidates = prune::candidates(store.reader().await?.db()).await?;
    Ok(PrunePlan::new(&candidates, retention, store.clock().now()))
}

/// Removes what the plan names, with everything that hangs on it; the attempts
/// that were removed. One that changed since the plan was made stays.
///
/// # Errors
///
/// [`StoreError`]; nothing was removed then.
pub async fn apply_prune(store: &Store, plan: &PrunePlan) -> Result<Vec<AttemptId>, StoreError> {
    let mut removed = Vec::new();
    let mut tx = store.begin("prune old attempts").await?;
    for attempt in &plan.attempts {
        if prune::remove(tx.db(), *attempt).await? {
            removed.push(*attempt);
        }
    }
    prune::remove_orphans(tx.db()).await?;
    tx.commit().await?;
    Ok(removed)
}
