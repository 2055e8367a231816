//! Properties of the machines, alone and together.

use proptest::prelude::*;

use super::attempt::{self, AttemptEffect, AttemptEvent, CompletionFacts};
use super::job::{self, JobEffect, JobEvent};
use super::lease::{self, LeaseEvent};
use super::run::JobTally;
use super::*;
use crate::outcome::AttemptEnd;
use crate::time::Timestamp;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

/// A job and its attempts, moved only by the machines' answers, as a store does.
#[derive(Debug)]
struct World {
    job: JobState,
    attempts: Vec<AttemptState>,
    aggregated: bool,
}

impl World {
    fn new() -> Self {
        Self {
            job: JobState::Queued,
            attempts: vec![AttemptState::Queued],
            aggregated: true,
        }
    }

    fn attempt(&mut self, index: usize, event: AttemptEvent) -> Result<(), IllegalTransition> {
        let step = attempt::step(self.attempts[index], event, at(0))?;
        let mut job = None;
        for effect in &step.effects {
            if let AttemptEffect::Job(event) = effect {
                job = Some(*event);
            }
        }
        // One transaction: the job's refusal undoes the attempt's step.
        let before = (self.job, self.attempts.clone());
        self.attempts[index] = step.next;
        if let Some(event) = job
            && let Err(refused) = self.job(event)
        {
            (self.job, self.attempts) = before;
            return Err(refused);
        }
        Ok(())
    }

    fn job(&mut self, event: JobEvent) -> Result<(), IllegalTransition> {
        let step = job::step(self.job, event, at(0))?;
        self.aggregated = step.next == self.job;
        self.job = step.next;
        for effect in step.effects {
            match effect {
                JobEffect::AggregateRun => self.aggregated = true,
                JobEffect::AddAttempt => self.attempts.push(AttemptState::Queued),
                JobEffect::CancelQueuedAttempt => {
                    let last = self.attempts.len() - 1;
                    self.attempt(last, AttemptEvent::Cancel)?;
                }
                JobEffect::ClearCancellation
                | JobEffect::RequestCancellation
                | JobEffect::Enqueue(_) => {}
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone)]
enum Any {
    Attempt(usize, AttemptEvent),
    Job(JobEvent),
}

/// What may come from outside. A job's claim, release and end only ever follow
/// its attempt.
fn any_event() -> impl Strategy<Value = Any> {
    let facts =
        (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(a, b, c)| CompletionFacts {
            proven: a,
            cancellation_delivered: b,
            publishing_begun: c,
        });
    let attempt = prop_oneof![
        Just(AttemptEvent::Claim { until: at(30) }),
        Just(AttemptEvent::Release),
        Just(AttemptEvent::Start),
        (proptest::sample::select(Outcome::ALL), facts)
            .prop_map(|(outcome, facts)| AttemptEvent::Complete(outcome, facts)),
        Just(AttemptEvent::Lose),
    ];
    prop_oneof![
        3 => (any::<proptest::sample::Index>(), attempt)
            .prop_map(|(index, event)| Any::Attempt(index.index(64), event)),
        1 => proptest::sample::select(vec![JobEvent::Retry, JobEvent::Cancel, JobEvent::Discard])
            .prop_map(Any::Job),
    ]
}

proptest! {
    #[test]
    fn no_sequence_breaks_a_job_and_its_attempts(
        events in proptest::collection::vec(any_event(), 0..60)
    ) {
        let mut world = World::new();
        for event in events {
            let before = world.attempts.clone();
            let _refusals_change_nothing = match event {
                Any::Attempt(index, event) => world.attempt(index % before.len(), event),
                Any::Job(event) => world.job(event),
            };
            let active: Vec<_> = world.attempts.iter().filter(|a| a.is_active()).collect();
            prop_assert!(active.len() <= 1, "two active attempts: {world:?}");
            prop_assert_eq!(active.len() == 1, world.job.is_open(), "{:?}", world);
            let leased = active.first().is_some_and(|a| a.is_leased());
            prop_assert_eq!(leased, world.job == JobState::Active, "{:?}", world);
            prop_assert!(world.aggregated, "the job changed without its run: {world:?}");
            for (old, new) in before.iter().zip(&world.attempts) {
                prop_assert!(old.is_active() || old == new, "{old} became {new}");
            }
        }
    }

    #[test]
    fn a_run_is_open_exactly_while_a_job_is(jobs in proptest::collection::vec(
        proptest::sample::select(JobState::ALL), 1..8)
    ) {
        let state = jobs.iter().copied().collect::<JobTally>().state().unwrap();
        prop_assert_eq!(state == RunState::Active, jobs.iter().any(|job| job.is_open()));
        prop_assert_eq!(state == RunState::Accepted, jobs.iter().all(|job| job.is_good()));
    }

    #[test]
    fn the_clock_alone_never_takes_a_lease_that_is_renewed_in_time(
        looks in proptest::collection::vec((1_i64..40, any::<bool>()), 1..40)
    ) {
        // Looks at any distance, by a looker that may just have woken up; the
        // holder renews whenever it was heard from at most 20 s of listening ago.
        let (mut now, mut state) = (0_i64, LeaseState::Held { until: at(30) });
        let mut listening = 0_i64;
        let mut unheard = 0_i64;
        for (gap, woke) in looks {
            now += gap;
            listening = if woke { 0 } else { listening + gap };
            unheard = if woke { 0 } else { unheard + gap };
            if unheard >= 20 {
                state = lease::step(state, LeaseEvent::Renew { superseded: false }, at(now)).unwrap().next;
                unheard = 0;
            }
            let listening_for = std::time::Duration::from_secs(listening.unsigned_abs());
            state = lease::step(state, LeaseEvent::Tick { listening_for }, at(now)).unwrap().next;
            prop_assert!(state != LeaseState::Lost, "swept at {now}");
        }
    }
}

#[test]
fn a_silent_lease_is_swept_after_three_looks_and_then_stays_lost() {
    let mut state = LeaseState::Held { until: at(30) };
    let tick = |seconds| LeaseEvent::Tick {
        listening_for: std::time::Duration::from_secs(seconds),
    };
    let mut names = Vec::new();
    for now in [20, 30, 40, 50, 60] {
        state = lease::step(state, tick(now), at(now.cast_signed()))
            .unwrap()
            .next;
        names.push(state.name());
    }
    assert_eq!(names, ["held", "missed", "missed", "lost", "lost"]);
    let refused = lease::step(state, LeaseEvent::Renew { superseded: false }, at(61)).unwrap_err();
    assert_eq!(refused.refusal, Refusal::AttemptTransitioned);
}

#[test]
fn a_lease_missed_before_a_restart_is_swept_only_after_listening_long_enough() {
    let missed = LeaseState::Missed {
        until: at(30),
        first_missed: at(31),
    };
    let look = |up, now| {
        let listening_for = std::time::Duration::from_secs(up);
        lease::step(missed, LeaseEvent::Tick { listening_for }, at(now))
            .unwrap()
            .next
    };
    assert_eq!(look(0, 500), missed);
    assert_eq!(look(19, 519), missed);
    assert_eq!(look(20, 520), LeaseState::Lost);
}

#[test]
fn the_first_completion_stands() {
    for outcome in Outcome::ALL {
        let event = AttemptEvent::Complete(*outcome, CompletionFacts::default());
        let step = attempt::step(AttemptState::Failed, event, at(0)).unwrap();
        assert_eq!(step.next, AttemptState::Failed);
        assert_eq!(step.effects, [AttemptEffect::AnswerStored]);
        let refused = attempt::step(AttemptState::Lost, event, at(0)).unwrap_err();
        assert_eq!(refused.refusal, Refusal::LeaseNotOwner);
    }
}

#[test]
fn only_a_completed_and_accepted_chain_is_accepted() {
    let ends = [
        AttemptEnd::Completed,
        AttemptEnd::Failed,
        AttemptEnd::Breach,
        AttemptEnd::Cancelled,
        AttemptEnd::Ceiling,
        AttemptEnd::SendBudget,
        AttemptEnd::SpendCeiling,
        AttemptEnd::Infrastructure,
    ];
    for end in ends {
        for accepted in [true, false] {
            let good = Outcome::of_end(end, accepted) == Outcome::AcceptedUnpublished;
            assert_eq!(
                good,
                accepted && end == AttemptEnd::Completed,
                "{end:?} {accepted}"
            );
        }
    }
}

#[test]
fn words_have_one_spelling() {
    for state in AttemptState::ALL {
        assert_eq!(state.as_str().parse::<AttemptState>().unwrap(), *state);
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
    assert!("Failed".parse::<AttemptState>().is_err());
    assert!("".parse::<JobState>().is_err());
}
