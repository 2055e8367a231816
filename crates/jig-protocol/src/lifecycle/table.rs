//! Writes `docs/lifecycle.txt`: every state of every machine against every event.

use std::fmt::{Debug, Write as _};
use std::path::Path;
use std::time::Duration;

use super::attempt::{self, AttemptEvent, CompletionFacts};
use super::job::{self, JobEvent};
use super::lease::{self, LeaseEvent};
use super::run::{self, JobTally, RunEvent};
use super::{AttemptState, IllegalTransition, JobState, LeaseState, Outcome, RunState, Step};
use crate::time::Timestamp;

/// The moment all steps of the table happen at; times in effects read `now+…`.
const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);

pub(super) const NO_FACTS: CompletionFacts = CompletionFacts {
    proven: false,
    cancellation_delivered: false,
    publishing_begun: false,
};

pub(super) fn attempt_events() -> Vec<(String, AttemptEvent)> {
    let until = NOW.saturating_add(lease::LENGTH);
    let mut events = vec![
        AttemptEvent::Claim { until },
        AttemptEvent::Release,
        AttemptEvent::Start,
    ];
    events.extend(
        Outcome::ALL[1..]
            .iter()
            .map(|outcome| AttemptEvent::Complete(*outcome, NO_FACTS)),
    );
    events.extend([AttemptEvent::Cancel, AttemptEvent::Lose]);
    let mut named: Vec<_> = events
        .into_iter()
        .map(|event| (event.name().to_owned(), event))
        .collect();
    for bits in 0..8_u8 {
        let facts = CompletionFacts {
            proven: bits & 1 != 0,
            cancellation_delivered: bits & 2 != 0,
            publishing_begun: bits & 4 != 0,
        };
        let event = AttemptEvent::Complete(Outcome::Accepted, facts);
        let said = [
            (facts.proven, "proven"),
            (facts.cancellation_delivered, "cancellation delivered"),
            (facts.publishing_begun, "publishing begun"),
        ];
        let said: Vec<_> = said.iter().filter(|(on, _)| *on).map(|(_, s)| *s).collect();
        let said = if said.is_empty() {
            "no facts".to_owned()
        } else {
            said.join(", ")
        };
        named.push((format!("{} ({said})", event.name()), event));
    }
    named
}

pub(super) fn job_events() -> Vec<JobEvent> {
    let mut events = vec![JobEvent::Claim, JobEvent::Release];
    events.extend(Outcome::ALL.iter().map(|outcome| JobEvent::End(*outcome)));
    events.extend([JobEvent::Retry, JobEvent::Cancel, JobEvent::Discard]);
    events
}

fn lease_states() -> Vec<(&'static str, LeaseState)> {
    let before = |seconds: i64| Timestamp::from_millis(NOW.as_millis() - seconds * 1_000);
    vec![
        (
            "held",
            LeaseState::Held {
                until: NOW.saturating_add(Duration::from_secs(5)),
            },
        ),
        ("held, expired", LeaseState::Held { until: before(5) }),
        (
            "missed once",
            LeaseState::Missed {
                until: before(15),
                first_missed: before(10),
            },
        ),
        (
            "missed thrice",
            LeaseState::Missed {
                until: before(25),
                first_missed: before(20),
            },
        ),
        ("lost", LeaseState::Lost),
        ("closed", LeaseState::Closed),
    ]
}

fn lease_events() -> Vec<(&'static str, LeaseEvent)> {
    vec![
        ("renew", LeaseEvent::Renew { superseded: false }),
        ("renew superseded", LeaseEvent::Renew { superseded: true }),
        (
            "tick (just up)",
            LeaseEvent::Tick {
                listening_for: Duration::ZERO,
            },
        ),
        (
            "tick (long up)",
            LeaseEvent::Tick {
                listening_for: lease::SWEEP_AFTER,
            },
        ),
        ("holder died", LeaseEvent::HolderDied),
        ("close", LeaseEvent::Close),
    ]
}

fn run_events() -> Vec<(&'static str, RunEvent)> {
    let tally = |open, good, failed, cancelled| {
        RunEvent::Aggregate(JobTally {
            open,
            good,
            failed,
            cancelled,
        })
    };
    vec![
        ("no jobs", tally(0, 0, 0, 0)),
        ("some open", tally(1, 1, 1, 1)),
        ("all good", tally(0, 2, 0, 0)),
        ("all failed", tally(0, 0, 2, 0)),
        ("all cancelled", tally(0, 0, 0, 2)),
        ("good, failed", tally(0, 1, 1, 0)),
        ("good, cancelled", tally(0, 1, 0, 1)),
        ("failed, cancelled", tally(0, 0, 1, 1)),
        ("good, failed, cancelled", tally(0, 1, 1, 1)),
    ]
}

/// `Debug` of an effect or state, with moments told relative to [`NOW`].
fn say(value: &impl Debug) -> String {
    let mut text = format!("{value:?}");
    for seconds in -30..=30_i64 {
        let moment = Timestamp::from_millis(NOW.as_millis() + seconds * 1_000);
        let relative = match seconds {
            0 => "now".to_owned(),
            _ => format!("now{seconds:+}s"),
        };
        text = text.replace(&format!("{moment:?}"), &relative);
    }
    text
}

fn row<S: Debug, E: Debug>(
    out: &mut String,
    state: &str,
    event: &str,
    same: &str,
    name: impl Fn(&S) -> String,
    result: Result<Step<S, E>, IllegalTransition>,
) {
    let answer = match result {
        Err(refused) => format!("refused: {}", refused.refusal),
        Ok(step) => {
            let next = name(&step.next);
            let next = if next == same {
                "unchanged".to_owned()
            } else {
                format!("-> {next}")
            };
            let effects: Vec<String> = step.effects.iter().map(say).collect();
            if effects.is_empty() {
                next
            } else {
                format!("{next}  [{}]", effects.join(", "))
            }
        }
    };
    writeln!(out, "  {state:<22}{event:<71}{answer}").unwrap();
}

fn table() -> String {
    let mut out = String::from(
        "The states of attempt, job, run and lease, and what every event does in each.\n\
         Written by a test of jig-protocol (JIG_BLESS=1 renews it); do not edit.\n",
    );
    out.push_str("\nattempt\n");
    for state in AttemptState::ALL {
        for (name, event) in attempt_events() {
            let result = attempt::step(*state, event, NOW);
            row(
                &mut out,
                state.as_str(),
                &name,
                state.as_str(),
                |s| s.to_string(),
                result,
            );
        }
    }
    out.push_str("\njob\n");
    for state in JobState::ALL {
        for event in job_events() {
            let result = job::step(*state, event, NOW);
            row(
                &mut out,
                state.as_str(),
                event.name(),
                state.as_str(),
                |s| s.to_string(),
                result,
            );
        }
    }
    out.push_str("\nrun\n");
    for state in RunState::ALL {
        for (name, event) in run_events() {
            let result = run::step(*state, event, NOW);
            row(
                &mut out,
                state.as_str(),
                name,
                state.as_str(),
                |s| s.to_string(),
                result,
            );
        }
    }
    out.push_str("\nlease\n");
    for (label, state) in lease_states() {
        for (name, event) in lease_events() {
            let result = lease::step(state, event, NOW);
            row(&mut out, label, name, &say(&state), say, result);
        }
    }
    out
}

#[test]
fn generated_lifecycle_table_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lifecycle.txt");
    let table = table();
    if std::env::var_os("JIG_BLESS").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &table).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == table,
        "docs/lifecycle.txt is not what the transition functions do; \
         look at the difference after JIG_BLESS=1 cargo test -p jig-protocol generated_"
    );
}
