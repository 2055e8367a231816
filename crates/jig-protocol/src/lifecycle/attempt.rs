//! One try at a job.
//!
//! A claim makes it `preparing`, a start `running`; it ends once, by its
//! holder's word, by a cancellation while it still waits, or because its holder
//! is gone. The first ending stands: a repeated completion is answered with
//! what is stored.

use super::job;
use super::step::words;
use super::{IllegalTransition, Refusal, Step};
use crate::outcome::AttemptEnd;
use crate::time::Timestamp;

words! {
    /// The state of an attempt.
    AttemptState, "an attempt" {
        /// Waits for a claim.
        Queued = "queued",
        /// Claimed; its work tree is being made.
        Preparing = "preparing",
        /// The engine works on it.
        Running = "running",
        /// Accepted and delivered, with proof.
        Accepted = "accepted",
        /// Accepted; the result lies where it was made.
        AcceptedUnpublished = "accepted_unpublished",
        /// It ended without being accepted.
        Failed = "failed",
        /// Someone asked to stop.
        Cancelled = "cancelled",
        /// Its holder vanished; never said by a holder itself.
        Lost = "lost",
    }
}

impl AttemptState {
    /// Whether it can still change; at most one such attempt exists per job.
    #[must_use]
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Queued | Self::Preparing | Self::Running)
    }

    /// Whether someone holds a lease on it.
    #[must_use]
    pub const fn is_leased(self) -> bool {
        matches!(self, Self::Preparing | Self::Running)
    }

    /// Whether it has ended for good.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !self.is_active()
    }
}

words! {
    /// How a holder may report the end of its attempt.
    Outcome, "an outcome" {
        /// Accepted and delivered.
        Accepted = "accepted",
        /// Accepted; not delivered (every direct run, and every held result).
        AcceptedUnpublished = "accepted_unpublished",
        /// Not accepted, or no verdict.
        Failed = "failed",
        /// Stopped on request.
        Cancelled = "cancelled",
    }
}

impl Outcome {
    /// What an engine's end means for its attempt, before anything is
    /// published. `accepted` says whether the acceptance predicate held; it
    /// only matters for a chain that completed.
    #[must_use]
    pub const fn of_end(end: AttemptEnd, accepted: bool) -> Self {
        match end {
            AttemptEnd::Completed if accepted => Self::AcceptedUnpublished,
            AttemptEnd::Cancelled => Self::Cancelled,
            AttemptEnd::Completed
            | AttemptEnd::Failed
            | AttemptEnd::Breach
            | AttemptEnd::Ceiling
            | AttemptEnd::SendBudget
            | AttemptEnd::SpendCeiling
            | AttemptEnd::Infrastructure => Self::Failed,
        }
    }

    /// The attempt's state after it.
    #[must_use]
    pub const fn attempt_state(self) -> AttemptState {
        match self {
            Self::Accepted => AttemptState::Accepted,
            Self::AcceptedUnpublished => AttemptState::AcceptedUnpublished,
            Self::Failed => AttemptState::Failed,
            Self::Cancelled => AttemptState::Cancelled,
        }
    }
}

/// What is known about a completion besides its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompletionFacts {
    /// The delivery was recorded step by step, the last proof included.
    pub proven: bool,
    /// A cancellation was delivered to the holder.
    pub cancellation_delivered: bool,
    /// The first publishing step was authorized before that.
    pub publishing_begun: bool,
}

/// What can happen to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEvent {
    /// Someone takes it; the lease runs until then.
    Claim {
        /// When the lease expires.
        until: Timestamp,
    },
    /// The holder hands it back before anything ran.
    Release,
    /// The engine starts.
    Start,
    /// The holder reports its end.
    Complete(Outcome, CompletionFacts),
    /// It is cancelled while it waits.
    Cancel,
    /// Its holder is known to be gone.
    Lose,
}

impl AttemptEvent {
    /// The event's name in refusals and in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claim { .. } => "claim",
            Self::Release => "release",
            Self::Start => "start",
            Self::Complete(Outcome::Accepted, _) => "complete accepted",
            Self::Complete(Outcome::AcceptedUnpublished, _) => "complete accepted_unpublished",
            Self::Complete(Outcome::Failed, _) => "complete failed",
            Self::Complete(Outcome::Cancelled, _) => "complete cancelled",
            Self::Cancel => "cancel",
            Self::Lose => "lose",
        }
    }
}

/// What a step of an attempt asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEffect {
    /// Give out a lease that runs until then.
    OpenLease(Timestamp),
    /// Close the lease; its token's digest stays, late evidence is judged by it.
    CloseLease,
    /// Record when the engine started.
    RecordStart(Timestamp),
    /// Record when it ended.
    RecordEnd(Timestamp),
    /// Let the job step too.
    Job(job::JobEvent),
    /// Change nothing and answer with what is stored.
    AnswerStored,
}

/// Decides what `event` does to an attempt in `state`.
///
/// # Errors
///
/// [`IllegalTransition`] when the state does not allow the event, with the code
/// that tells a holder whether to stop.
pub fn step(
    state: AttemptState,
    event: AttemptEvent,
    now: Timestamp,
) -> Result<Step<AttemptState, AttemptEffect>, IllegalTransition> {
    use AttemptState as S;
    let refuse = |refusal| {
        Err(IllegalTransition {
            machine: "attempt",
            from: state.as_str(),
            event: event.name(),
            refusal,
        })
    };
    match (state, event) {
        (S::Queued, AttemptEvent::Claim { until }) => Ok(Step::to(
            S::Preparing,
            [
                AttemptEffect::OpenLease(until),
                AttemptEffect::Job(job::JobEvent::Claim),
            ],
        )),
        (_, AttemptEvent::Claim { .. }) => refuse(Refusal::ClaimConflict),
        (S::Preparing, AttemptEvent::Release) => Ok(Step::to(
            S::Queued,
            [
                AttemptEffect::CloseLease,
                AttemptEffect::Job(job::JobEvent::Release),
            ],
        )),
        (S::Preparing, AttemptEvent::Start) => {
            Ok(Step::to(S::Running, [AttemptEffect::RecordStart(now)]))
        }
        (S::Running, AttemptEvent::Start) => Ok(Step::unchanged(state)),
        (_, AttemptEvent::Complete(outcome, facts)) => {
            match judge_completion(state, outcome, facts) {
                Ok(Completion::Ends) => Ok(Step::to(outcome.attempt_state(), ending(outcome, now))),
                Ok(Completion::Repeats) => Ok(Step::to(state, [AttemptEffect::AnswerStored])),
                Err(refusal) => refuse(refusal),
            }
        }
        (S::Queued, AttemptEvent::Cancel) => {
            Ok(Step::to(S::Cancelled, [AttemptEffect::RecordEnd(now)]))
        }
        (S::Queued | S::Preparing | S::Running, AttemptEvent::Lose) => {
            Ok(Step::to(S::Lost, ending(Outcome::Failed, now)))
        }
        (_, AttemptEvent::Lose) => refuse(Refusal::AttemptTransitioned),
        (_, AttemptEvent::Release | AttemptEvent::Start | AttemptEvent::Cancel) => {
            refuse(Refusal::InvalidTransition)
        }
    }
}

enum Completion {
    Ends,
    Repeats,
}

/// Whether a completion ends the attempt, repeats an ending, or is refused.
fn judge_completion(
    state: AttemptState,
    outcome: Outcome,
    facts: CompletionFacts,
) -> Result<Completion, Refusal> {
    match state {
        // A lost attempt was taken away: its holder must not believe otherwise.
        AttemptState::Lost | AttemptState::Queued => return Err(Refusal::LeaseNotOwner),
        AttemptState::Accepted
        | AttemptState::AcceptedUnpublished
        | AttemptState::Failed
        | AttemptState::Cancelled => return Ok(Completion::Repeats),
        AttemptState::Preparing
            if matches!(outcome, Outcome::Accepted | Outcome::AcceptedUnpublished) =>
        {
            return Err(Refusal::InvalidTransition);
        }
        AttemptState::Preparing | AttemptState::Running => {}
    }
    if outcome == Outcome::Accepted {
        if facts.cancellation_delivered && !facts.publishing_begun {
            return Err(Refusal::CancelledByOperator);
        }
        if !facts.proven {
            return Err(Refusal::PublishProofRequired);
        }
    }
    Ok(Completion::Ends)
}

fn ending(outcome: Outcome, now: Timestamp) -> [AttemptEffect; 3] {
    [
        AttemptEffect::RecordEnd(now),
        AttemptEffect::CloseLease,
        AttemptEffect::Job(job::JobEvent::End(outcome)),
    ]
}
