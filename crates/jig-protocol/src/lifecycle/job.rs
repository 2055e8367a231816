//! The work of one run in one repository, over all its attempts.
//!
//! Every step that changes a job's state asks for the run to be aggregated, so
//! no run can stay open behind a finished job.

use super::attempt::Outcome;
use super::step::words;
use super::{IllegalTransition, Refusal, Step};
use crate::time::Timestamp;

words! {
    /// The state of a job.
    JobState, "a job" {
        /// Waits for a claim.
        Queued = "queued",
        /// An attempt at it is under way.
        Active = "active",
        /// Its last attempt was accepted and delivered.
        Accepted = "accepted",
        /// Its last attempt was accepted; the result was not delivered.
        AcceptedUnpublished = "accepted_unpublished",
        /// Its last attempt failed or was lost.
        Failed = "failed",
        /// It was cancelled, or its accepted result was discarded.
        Cancelled = "cancelled",
    }
}

impl JobState {
    /// Whether work is still to come.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Active)
    }

    /// Whether its work was judged good.
    #[must_use]
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Accepted | Self::AcceptedUnpublished)
    }
}

/// What can happen to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEvent {
    /// Its queued attempt was claimed.
    Claim,
    /// The claim was handed back.
    Release,
    /// Its attempt ended.
    End(Outcome),
    /// Someone wants another attempt.
    Retry,
    /// Someone wants it to stop.
    Cancel,
    /// Someone gives up an accepted result that waits for delivery.
    Discard,
}

impl JobEvent {
    /// The event's name in refusals and in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Release => "release",
            Self::End(Outcome::Accepted) => "end accepted",
            Self::End(Outcome::AcceptedUnpublished) => "end accepted_unpublished",
            Self::End(Outcome::Failed) => "end failed",
            Self::End(Outcome::Cancelled) => "end cancelled",
            Self::Retry => "retry",
            Self::Cancel => "cancel",
            Self::Discard => "discard",
        }
    }
}

/// What a step of a job asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEffect {
    /// Compute the run's state anew.
    AggregateRun,
    /// Forget an earlier wish to cancel.
    ClearCancellation,
    /// Record the wish to cancel; the holder learns of it with its next renewal.
    RequestCancellation,
    /// Let the waiting attempt step with a cancellation.
    CancelQueuedAttempt,
    /// Put it at the end of the queue, as of then.
    Enqueue(Timestamp),
    /// Add the next attempt, queued, at the same base commit.
    AddAttempt,
}

/// Decides what `event` does to a job in `state`.
///
/// # Errors
///
/// [`IllegalTransition`] when the state does not allow the event.
pub fn step(
    state: JobState,
    event: JobEvent,
    now: Timestamp,
) -> Result<Step<JobState, JobEffect>, IllegalTransition> {
    use JobState as S;
    let refusal = match (state, event) {
        (S::Queued, JobEvent::Claim) => {
            let effects = [JobEffect::ClearCancellation, JobEffect::AggregateRun];
            return Ok(Step::to(S::Active, effects));
        }
        (S::Active, JobEvent::Release) => {
            return Ok(Step::to(S::Queued, [JobEffect::AggregateRun]));
        }
        // A waiting attempt can be lost with its owner; its job then fails too.
        (S::Active, JobEvent::End(outcome))
        | (S::Queued, JobEvent::End(outcome @ Outcome::Failed)) => {
            return Ok(Step::to(ended(outcome), [JobEffect::AggregateRun]));
        }
        (S::Failed | S::Cancelled, JobEvent::Retry) => {
            let effects = [
                JobEffect::AddAttempt,
                JobEffect::ClearCancellation,
                JobEffect::Enqueue(now),
                JobEffect::AggregateRun,
            ];
            return Ok(Step::to(S::Queued, effects));
        }
        (S::Queued, JobEvent::Cancel) => {
            let effects = [JobEffect::CancelQueuedAttempt, JobEffect::AggregateRun];
            return Ok(Step::to(S::Cancelled, effects));
        }
        (S::Active, JobEvent::Cancel) => {
            return Ok(Step::to(S::Active, [JobEffect::RequestCancellation]));
        }
        (_, JobEvent::Cancel) => return Ok(Step::unchanged(state)),
        (S::AcceptedUnpublished, JobEvent::Discard) => {
            return Ok(Step::to(S::Cancelled, [JobEffect::AggregateRun]));
        }
        (_, JobEvent::Claim) => Refusal::ClaimConflict,
        (_, JobEvent::Retry) => Refusal::RetryNotAllowed,
        (_, JobEvent::Discard) => Refusal::DiscardNotAllowed,
        (_, JobEvent::Release | JobEvent::End(_)) => Refusal::InvalidTransition,
    };
    Err(IllegalTransition {
        machine: "job",
        from: state.as_str(),
        event: event.name(),
        refusal,
    })
}

const fn ended(outcome: Outcome) -> JobState {
    match outcome {
        Outcome::Accepted => JobState::Accepted,
        Outcome::AcceptedUnpublished => JobState::AcceptedUnpublished,
        Outcome::Failed => JobState::Failed,
        Outcome::Cancelled => JobState::Cancelled,
    }
}
