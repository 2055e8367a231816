//! The sweep: attempts whose holder has been silent for too long are lost.
//!
//! `Plan::new` decides from a snapshot without I/O; [`sweep`] applies the plan,
//! each lease in its own transaction and under the machine's own guard, so a
//! holder that was heard from in between keeps its lease.

use std::time::Duration;

use jig_protocol::ids::AttemptId;
use jig_protocol::lifecycle::LeaseState;
use jig_protocol::lifecycle::attempt::AttemptEvent;
use jig_protocol::lifecycle::lease::{self, LeaseEvent};
use jig_protocol::time::Timestamp;

use super::transition::{self, Details, TransitionError};
use crate::store::{Store, leases, runs};

/// Which leases a look would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// In the order of their expiry.
    pub due: Vec<AttemptId>,
}

impl Plan {
    /// Decides from every live lease, at `now`, by someone who has been
    /// listening without a gap for `listening_for`.
    #[must_use]
    pub fn new(live: &[(AttemptId, LeaseState)], listening_for: Duration, now: Timestamp) -> Self {
        let event = LeaseEvent::Tick { listening_for };
        let changes =
            |state: LeaseState| lease::step(state, event, now).is_ok_and(|step| step.next != state);
        let due = live.iter().filter(|(_, state)| changes(*state));
        Self {
            due: due.map(|(attempt, _)| *attempt).collect(),
        }
    }
}

/// Looks at every live lease once; the attempts that are lost now.
///
/// # Errors
///
/// [`TransitionError`]; what was lost before the failure stays lost.
pub async fn sweep(
    store: &Store,
    listening_for: Duration,
) -> Result<Vec<AttemptId>, TransitionError> {
    let live = leases::live(store.reader().await?.db()).await?;
    let live: Vec<_> = live
        .into_iter()
        // The life of a direct run is told by its marker.
        .filter(|lease| lease.holder_id != crate::direct::HOLDER)
        .map(|lease| (lease.attempt_id, lease.state))
        .collect();
    let now = store.clock().now();
    let mut lost = Vec::new();
    for attempt in Plan::new(&live, listening_for, now).due {
        let mut tx = store.begin("sweep a lease").await?;
        let step =
            transition::lease(&mut tx, attempt, LeaseEvent::Tick { listening_for }, now).await?;
        if step.lose_attempt {
            let details = Details {
                error: Some("its holder was not heard from for three heartbeats"),
                ..Details::default()
            };
            transition::attempt(&mut tx, attempt, AttemptEvent::Lose, details, now).await?;
            lost.push(attempt);
        }
        tx.commit().await?;
    }
    Ok(lost)
}

/// Computes the state of every active run anew: the start-up pass.
///
/// # Errors
///
/// [`TransitionError`].
pub async fn aggregate_active_runs(store: &Store) -> Result<(), TransitionError> {
    let now = store.clock().now();
    let mut tx = store.begin("aggregate the active runs").await?;
    for run in runs::active(tx.db()).await? {
        transition::aggregate(&mut tx, run.id, now).await?;
    }
    tx.commit().await?;
    Ok(())
}
