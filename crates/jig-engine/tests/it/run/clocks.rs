//! Deaths, clocks, sessions. Time is moved by hand.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_engine::fault::{Fault, FaultPoint, Step};
use jig_protocol::event::{Event, EventKind};
use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::outcome::{AttemptEnd, Cause};
use jig_testkit::ManualClock;
use serde_json::json;

use super::world::{DEV, Ran, Watch, World};

fn one_phase(rest: &str) -> String {
    format!("name: one\n{DEV}\nphases:\n  - {{name: build, kind: agent, owner: dev}}\n{rest}")
}

/// Whether time is being moved.
#[derive(Clone, Copy, PartialEq)]
enum Time {
    Waits,
    Runs,
    Stopped,
}

/// Runs the attempt on a clock that is moved by `step` again and again while an
/// agent that said something goes on; `once` moves it only once.
async fn run_on_moved_time(world: &mut World, step: Duration, once: bool) -> Ran {
    let clock = ManualClock::new();
    let time = Arc::new(Mutex::new(Time::Waits));
    world.clock = Arc::new(clock.clone());
    let seen = Arc::clone(&time);
    world.sink = Arc::new(Watch(move |event: &Event| {
        let mut time = seen.lock().unwrap();
        *time = match *time {
            Time::Waits if says_something(event) => Time::Runs,
            Time::Runs if event.kind == EventKind::AgentEnd => Time::Waits,
            same => same,
        };
    }));
    let mover = std::thread::spawn({
        let time = Arc::clone(&time);
        move || {
            loop {
                {
                    let mut time = time.lock().unwrap();
                    match *time {
                        Time::Waits => {}
                        Time::Runs => {
                            clock.advance(step);
                            if once {
                                *time = Time::Stopped;
                            }
                        }
                        Time::Stopped => return,
                    }
                }
                std::thread::sleep(Duration::from_millis(3));
            }
        }
    });
    let ran = world.run().await;
    *time.lock().unwrap() = Time::Stopped;
    mover.join().unwrap();
    ran
}

fn says_something(event: &Event) -> bool {
    event.name.as_deref() == Some("agent_text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_send_dies_is_undone_and_tried_in_a_fresh_session() {
    let mut world = World::new(
        &[("src/a", "1\n")],
        &one_phase("limits: {silence_timeout: 1s, attempt_ceiling: 24h}"),
        r#"
roles:
  dev:
    - write: {src/a: "half\n", src/new: "half\n", stray: "x\n"}
      text: wrote
      end: hang
    - expect_absent: [wrote]
      write: {src/b: "whole\n"}
      emit: {status: success, summary: x}
      usage: {input_tokens: 3, output_tokens: 4, cost_usd: 0.25}
"#,
    );
    let step = Duration::from_secs(2);
    let ran = run_on_moved_time(&mut world, step, false).await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(ran.of(EventKind::PhaseStart).len(), 2);
    assert_eq!(ran.of(EventKind::PhaseDeath).len(), 1);
    assert_eq!(ran.file("src/a").as_deref(), Some("1\n"));
    assert_eq!(ran.file("src/new"), None);
    assert_eq!(ran.file("stray"), None);
    let calls = world.runtime.calls();
    assert_ne!(calls[0].session, calls[1].session);
    assert!(calls[1].session.ends_with("-r1"), "{}", calls[1].session);
    assert_eq!(calls[1].sends_before, 0);
    let (died, passed) = (
        ran.payload(0, EventKind::AgentEnd),
        ran.payload(1, EventKind::AgentEnd),
    );
    assert_eq!(died["outcome"], json!("died"));
    assert_eq!(died["class"], json!("killed_by_clock"));
    assert_eq!(
        (&died["unmetered_sends"], &died["cost"]),
        (&json!(1), &json!(0.0))
    );
    assert_eq!(
        (&passed["unmetered_sends"], &passed["cost"]),
        (&json!(0), &json!(0.25))
    );
    assert_eq!(passed["tokens"], json!(7));
    let order: Vec<_> = ran.events.iter().map(|event| event.kind).collect();
    let died = order.iter().position(|kind| *kind == EventKind::AgentEnd);
    let death = order.iter().position(|kind| *kind == EventKind::PhaseDeath);
    assert!(died < death);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_phase_clock_is_a_death_and_deaths_are_counted() {
    let hang = "{text: here, end: hang}";
    let mut world = World::new(
        &[("src/a", "1\n")],
        &one_phase("limits: {phase_timeout: 5m, silence_timeout: 1h, attempt_ceiling: 24h}"),
        &format!("roles: {{dev: [{hang}, {hang}, {hang}]}}"),
    );
    let ran = run_on_moved_time(&mut world, Duration::from_secs(6), false).await;
    assert_eq!(ran.outcome.cause, Some(Cause::Death), "{}", ran.error());
    assert_eq!(ran.of(EventKind::PhaseDeath).len(), 3);
    assert!(ran.error().contains("died 3 times"), "{}", ran.error());
    assert_eq!(ran.outcome.result.budgets.deaths, 3);
    assert_eq!(ran.outcome.result.spend.unmetered_sends, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ceiling_ends_the_attempt_and_judges_what_was_done() {
    for (write, end) in [
        ("{src/ok: x}", AttemptEnd::Ceiling),
        ("{src/ok: x, stray: x}", AttemptEnd::Breach),
    ] {
        let mut world = World::new(
            &[("src/a", "1\n")],
            &one_phase("limits: {attempt_ceiling: 2m}"),
            &format!("roles: {{dev: [{{write: {write}, text: wrote, end: hang}}]}}"),
        );
        let step = Duration::from_secs(121);
        let ran = run_on_moved_time(&mut world, step, true).await;
        assert_eq!(ran.outcome.end, end, "{}", ran.error());
        assert!(ran.error().contains("ceiling"), "{}", ran.error());
        assert_eq!(ran.file("src/ok").as_deref(), Some("x"));
        assert_eq!(ran.file("stray"), None);
        let told = ran.named("attempt_ceiling_exceeded");
        if end == AttemptEnd::Ceiling {
            assert_eq!(told[0].payload, Some(json!({"ceiling_ms": 120_000})));
            assert_eq!(
                ran.payload(0, EventKind::AgentEnd)["outcome"],
                json!("ceiling")
            );
        }
        assert_eq!(
            ran.payload(0, EventKind::AgentEnd)["unmetered_sends"],
            json!(1)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_command_ends_at_the_ceiling_and_so_does_a_gate() {
    for phase in [
        "{name: build, kind: code, command: 'echo begun > \"$JIG_HANDOFF/begun\"; sleep 600'}",
        "{name: build, kind: code, command: 'true', gates: [{name: tests_pass, command: 'echo begun > \"$JIG_HANDOFF/begun\"; sleep 600'}]}",
    ] {
        let mut world = World::new(
            &[("src/a", "1\n")],
            &format!("name: one\n{DEV}\nphases:\n  - {phase}\nlimits: {{attempt_ceiling: 2m}}"),
            "roles: {dev: []}",
        );
        let clock = ManualClock::new();
        world.clock = Arc::new(clock.clone());
        let input = world.input().await;
        let begun = input.prepared.dirs.handoff().join("begun");
        let mover = std::thread::spawn(move || {
            jig_testkit::wait_until("the command", || begun.exists());
            clock.advance(Duration::from_secs(121));
        });
        let ran = Ran::read(world.engine().run(input).await);
        mover.join().unwrap();
        assert_eq!(ran.outcome.end, AttemptEnd::Ceiling, "{}", ran.error());
        assert_eq!(ran.entries(), ["build/fail"]);
        jig_testkit::processes::assert_none_marked(&world.data.path().to_string_lossy());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_without_a_memory_is_reminded_under_a_new_key() {
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase(""),
        r#"
can_resume: false
roles:
  dev:
    - emit: first words
    - expect: [first words, "Task: Do it.", "could not be read"]
      emit: second words
    - expect: [first words, second words]
      emit: {status: success, summary: x}
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    let calls = world.runtime.calls();
    let sessions: std::collections::BTreeSet<_> = calls.iter().map(|call| &call.session).collect();
    assert_eq!(sessions.len(), 3);
    assert!(calls.iter().all(|call| call.sends_before == 0));
    assert_eq!(ran.named("degraded_correction").len(), 2);
    // Digests do not hold earlier digests.
    let times = calls[2].prompt.matches("first words").count();
    assert_eq!(times, 1, "{}", calls[2].prompt);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_keeps_its_session_over_phases() {
    let world = World::new(
        &[("src/a", "1\n")],
        &format!(
            "name: two\n{DEV}\nphases:\n  - {{name: one, kind: agent, owner: dev}}\n  - {{name: two, kind: agent, owner: dev}}\n"
        ),
        "roles: {dev: [{emit: {status: success, summary: x}}, {emit: {status: success, summary: z}}]}",
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Completed);
    let calls = world.runtime.calls();
    assert_eq!(calls[0].session, calls[1].session);
    assert_eq!((calls[0].sends_before, calls[1].sends_before), (0, 1));
}

/// Steps that take their time.
#[derive(Debug)]
struct Slow {
    clock: ManualClock,
    steps: [(Step, Duration); 2],
}

impl FaultPoint for Slow {
    fn reach(&self, reached: Step) -> Result<(), Fault> {
        for (step, takes) in self.steps {
            if step == reached {
                self.clock.advance(takes);
            }
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_left_to_do_after_the_end_has_one_clock() {
    let script = "roles: {dev: [{write: {src/a: \"2\\n\"}, emit: {status: success, summary: x}}]}";
    for (takes, delivered) in [(20, true), (40, false)] {
        let mut world = World::new(&[("src/a", "1\n")], &one_phase(""), script);
        let clock = ManualClock::new();
        world.clock = Arc::new(clock.clone());
        world.faults = Some(Arc::new(Slow {
            clock,
            steps: [(Step::FinalCheck, 90), (Step::Deliver, takes)]
                .map(|(step, seconds)| (step, Duration::from_secs(seconds))),
        }));
        let ran = world.run().await;
        assert_eq!(ran.outcome.delivery.branch.is_some(), delivered);
        let expected = if delivered {
            AttemptEnd::Completed
        } else {
            AttemptEnd::Infrastructure
        };
        assert_eq!(ran.outcome.end, expected, "{}", ran.error());
    }
}
