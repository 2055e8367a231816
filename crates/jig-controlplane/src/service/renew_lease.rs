//! Heartbeats: a holder keeps its lease and learns whether to stop.

use jig_protocol::ids::AttemptId;
use jig_protocol::lifecycle::lease::LeaseEvent;
use jig_protocol::lifecycle::{IllegalTransition, LeaseState, Refusal};
use jig_protocol::time::Timestamp;
use jig_protocol::token::TokenDigest;

use super::transition::{self, TransitionError};
use crate::store::{Store, WriteTx, attempts, holders, jobs, leases};

/// What a holder learns when it renews its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewal {
    /// The lease runs until then.
    pub expires_at: Timestamp,
    /// Someone wants the job to stop.
    pub cancellation_requested: bool,
}

/// Renews a lease, also one that expired and was not swept.
///
/// # Errors
///
/// [`TransitionError`]; a refusal is a definite verdict: stop at once.
pub async fn renew_lease(
    store: &Store,
    attempt: AttemptId,
    token: &TokenDigest,
) -> Result<Renewal, TransitionError> {
    let now = store.clock().now();
    let mut tx = store.begin("renew a lease").await?;
    let record = transition::load_attempt(&mut tx, attempt).await?;
    let holder = check_owner(&mut tx, attempt, token).await?;
    let newest = attempts::of_job(tx.db(), record.job_id).await?;
    let superseded = newest.iter().any(|other| other.number > record.number);
    let step = transition::lease(&mut tx, attempt, LeaseEvent::Renew { superseded }, now).await?;
    let Some(LeaseState::Held { until }) = step.state else {
        return Err(TransitionError::not_found("lease of attempt", attempt));
    };
    holders::heard_from(tx.db(), &holder, now).await?;
    let job = transition::load_job(&mut tx, record.job_id).await?;
    if job.cancellation_requested {
        jobs::deliver_cancellation(tx.db(), job.id, now).await?;
    }
    tx.commit().await?;
    Ok(Renewal {
        expires_at: until,
        cancellation_requested: job.cancellation_requested,
    })
}

/// Whether the token proves the attempt's lease; who holds it.
pub(crate) async fn check_owner(
    tx: &mut WriteTx,
    attempt: AttemptId,
    token: &TokenDigest,
) -> Result<String, TransitionError> {
    match leases::of_attempt(tx.db(), attempt).await? {
        Some(lease) if lease.token_digest == token.as_str() => Ok(lease.holder_id),
        lease => Err(IllegalTransition {
            machine: "lease",
            from: lease.map_or("absent", |lease| lease.state.name()),
            event: "present token",
            refusal: Refusal::LeaseNotOwner,
        }
        .into()),
    }
}
