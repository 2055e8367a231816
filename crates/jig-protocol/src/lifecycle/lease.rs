//! The right to work on an attempt, for as long as its holder is heard from.
//!
//! The clock alone never takes work away: an expired lease can be renewed until
//! it was swept. It is swept when it stayed expired for [`SWEEP_AFTER`] *and*
//! whoever sweeps has been listening without a gap for that long, so that a host
//! that slept or restarted never ends work it could not have heard from.

use std::time::Duration;

use super::{IllegalTransition, Refusal, Step};
use crate::time::Timestamp;

/// How long a lease runs from its last renewal.
pub const LENGTH: Duration = Duration::from_secs(30);
/// How often its holder renews it.
pub const RENEW_EVERY: Duration = Duration::from_secs(10);
/// How often leases are looked at.
pub const TICK_EVERY: Duration = Duration::from_secs(10);
/// How long a lease must have been missed: three looks in a row.
pub const SWEEP_AFTER: Duration = Duration::from_secs(20);

/// The state of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// It runs.
    Held {
        /// Until then.
        until: Timestamp,
    },
    /// It was found expired.
    Missed {
        /// It ran until then.
        until: Timestamp,
        /// When it was first found expired; stored, so it outlives a restart.
        first_missed: Timestamp,
    },
    /// It was taken away.
    Lost,
    /// Its attempt ended, or was handed back.
    Closed,
}

impl LeaseState {
    /// The state's name, without its times.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held { .. } => "held",
            Self::Missed { .. } => "missed",
            Self::Lost => "lost",
            Self::Closed => "closed",
        }
    }
}

/// What can happen to a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEvent {
    /// Its holder was heard from.
    Renew {
        /// A later attempt of the same job exists.
        superseded: bool,
    },
    /// Someone looks at it.
    Tick {
        /// For how long the looker has been up without a gap.
        listening_for: Duration,
    },
    /// Its holder is proven dead.
    HolderDied,
    /// Its attempt ended or was handed back.
    Close,
}

impl LeaseEvent {
    /// The event's name in refusals and in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Renew { superseded: false } => "renew",
            Self::Renew { superseded: true } => "renew superseded",
            Self::Tick { .. } => "tick",
            Self::HolderDied => "holder died",
            Self::Close => "close",
        }
    }
}

/// What a step of a lease asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEffect {
    /// Store the new expiry and forget that it was missed.
    StoreExpiry(Timestamp),
    /// Store when it was first found expired.
    StoreFirstMissed(Timestamp),
    /// Let the attempt step: its holder is gone.
    LoseAttempt,
}

/// Decides what `event` does to a lease in `state`.
///
/// # Errors
///
/// [`IllegalTransition`] when a lease that is gone is renewed; the code is a
/// definite verdict for its holder.
pub fn step(
    state: LeaseState,
    event: LeaseEvent,
    now: Timestamp,
) -> Result<Step<LeaseState, LeaseEffect>, IllegalTransition> {
    use LeaseState as S;
    let refuse = |refusal| {
        Err(IllegalTransition {
            machine: "lease",
            from: state.name(),
            event: event.name(),
            refusal,
        })
    };
    match (state, event) {
        (_, LeaseEvent::Renew { superseded: true }) => refuse(Refusal::LeaseSuperseded),
        (S::Held { .. } | S::Missed { .. }, LeaseEvent::Renew { .. }) => {
            let until = now.saturating_add(LENGTH);
            Ok(Step::to(
                S::Held { until },
                [LeaseEffect::StoreExpiry(until)],
            ))
        }
        (S::Lost | S::Closed, LeaseEvent::Renew { .. }) => refuse(Refusal::AttemptTransitioned),
        (S::Held { until }, LeaseEvent::Tick { .. }) if until <= now => Ok(Step::to(
            S::Missed {
                until,
                first_missed: now,
            },
            [LeaseEffect::StoreFirstMissed(now)],
        )),
        (S::Missed { first_missed, .. }, LeaseEvent::Tick { listening_for })
            if now.saturating_since(first_missed) >= SWEEP_AFTER
                && listening_for >= SWEEP_AFTER =>
        {
            Ok(Step::to(S::Lost, [LeaseEffect::LoseAttempt]))
        }
        (_, LeaseEvent::Tick { .. }) => Ok(Step::unchanged(state)),
        (S::Held { .. } | S::Missed { .. }, LeaseEvent::HolderDied) => {
            Ok(Step::to(S::Lost, [LeaseEffect::LoseAttempt]))
        }
        (S::Held { .. } | S::Missed { .. }, LeaseEvent::Close) => Ok(Step::to(S::Closed, [])),
        (S::Lost | S::Closed, LeaseEvent::HolderDied | LeaseEvent::Close) => {
            Ok(Step::unchanged(state))
        }
    }
}
