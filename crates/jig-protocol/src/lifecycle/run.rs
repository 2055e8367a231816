//! One invocation of a definition: its state is the sum of its jobs' states.

use super::job::JobState;
use super::step::words;
use super::{IllegalTransition, Step};
use crate::time::Timestamp;

words! {
    /// The state of a run.
    RunState, "a run" {
        /// A job is still open.
        Active = "active",
        /// Every job's work was judged good, delivered or not.
        Accepted = "accepted",
        /// Every job failed.
        Failed = "failed",
        /// The jobs ended differently.
        Mixed = "mixed",
        /// Every job was cancelled.
        Cancelled = "cancelled",
    }
}

/// How many jobs of a run are in which kind of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobTally {
    /// Queued or active.
    pub open: u32,
    /// Accepted or accepted_unpublished.
    pub good: u32,
    /// Failed.
    pub failed: u32,
    /// Cancelled.
    pub cancelled: u32,
}

impl FromIterator<JobState> for JobTally {
    fn from_iter<I: IntoIterator<Item = JobState>>(jobs: I) -> Self {
        let mut tally = Self::default();
        for job in jobs {
            let count = match job {
                JobState::Queued | JobState::Active => &mut tally.open,
                JobState::Accepted | JobState::AcceptedUnpublished => &mut tally.good,
                JobState::Failed => &mut tally.failed,
                JobState::Cancelled => &mut tally.cancelled,
            };
            *count = count.saturating_add(1);
        }
        tally
    }
}

impl JobTally {
    /// The state of a run with these jobs; `None` for a run without any.
    #[must_use]
    pub const fn state(self) -> Option<RunState> {
        Some(match (self.open, self.good, self.failed, self.cancelled) {
            (0, 0, 0, 0) => return None,
            (1.., _, _, _) => RunState::Active,
            (0, _, 0, 0) => RunState::Accepted,
            (0, 0, _, 0) => RunState::Failed,
            (0, 0, 0, _) => RunState::Cancelled,
            _ => RunState::Mixed,
        })
    }
}

/// What can happen to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEvent {
    /// Its jobs were counted anew.
    Aggregate(JobTally),
}

/// What a step of a run asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEffect {
    /// Record when the state changed.
    RecordChange(Timestamp),
}

/// Decides what `event` does to a run in `state`.
///
/// # Errors
///
/// None today: a retry may open a finished run again, so every change is legal.
/// The type leaves room for an event that is not.
pub fn step(
    state: RunState,
    event: RunEvent,
    now: Timestamp,
) -> Result<Step<RunState, RunEffect>, IllegalTransition> {
    let RunEvent::Aggregate(tally) = event;
    Ok(match tally.state() {
        Some(next) if next != state => Step::to(next, [RunEffect::RecordChange(now)]),
        _ => Step::unchanged(state),
    })
}
