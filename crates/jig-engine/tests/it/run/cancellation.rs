//! Cancelled at every event: one proper end, nothing left running.

use std::sync::Arc;

use jig_process::StopReason;
use jig_protocol::event::{Event, EventKind};
use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::outcome::AttemptEnd;
use jig_testkit::processes::{assert_none_marked, wait_none_marked};

use super::world::{Ran, Watch, World};

fn road() -> World {
    World::new(
        &[("src/a", "bad\n")],
        "
name: road
roster:
  builder: {model: m, system_prompt: s, user_prompt: u, writes: [\"src/**\"]}
phases:
  - name: build
    kind: agent
    owner: builder
    gates: [{name: tests_pass, command: 'sleep 0.05; test -e src/b'}]
  - name: test
    kind: code
    command: 'sleep 600 & grep -q good src/a'
    on_fail: {run: build, then: rerun-self, budget: 1}
",
        r#"
roles:
  builder:
    - {write: {src/a: "torn\n"}, text: [to, rn], end: crash}
    - {write: {src/b: "x\n"}, tools: [{name: Edit, input: {file: src/b}}], spawn: sleep 600, emit: {status: success, summary: b}}
    - {write: {src/a: "good\n"}, delay: 50ms, emit: {status: success, summary: b}}
"#,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_at_every_event() {
    let whole = road().run().await;
    assert_eq!(
        whole.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        whole.error()
    );
    let judged = whole.named("acceptance")[0].seq;
    for at in 1..=whole.events.len() as u64 {
        let mut world = road();
        let cancel = world.cancel.clone();
        world.sink = Arc::new(Watch(move |event: &Event| {
            if event.seq == at {
                cancel.raise(StopReason::Cancelled);
            }
        }));
        let ran = world.run().await;
        assert_none_marked(&world.data.path().to_string_lossy());
        if at < judged {
            assert_eq!(
                ran.outcome.end,
                AttemptEnd::Cancelled,
                "{at}: {}: {}",
                ran.error(),
                ran.shape()
            );
            assert_eq!(ran.outcome.state, AttemptState::Cancelled);
            assert_eq!(ran.named("attempt_cancelled").len(), 1);
        }
        // A dead entry's work never stays; a cancelled one's stays where it was
        // permitted.
        let died = !ran.of(EventKind::PhaseDeath).is_empty();
        assert!(
            !died || ran.file("src/a").as_deref() != Some("torn\n"),
            "{at}: {}",
            ran.shape()
        );
        // The result document is there, with the phases so far.
        let ended = ran.of(EventKind::PhaseEnd).len() + ran.of(EventKind::PhaseDeath).len();
        assert_eq!(ran.outcome.result.phases.len(), ended, "{at}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_reaches_gates_and_commands() {
    for phase in [
        "{name: build, kind: code, command: ': > \"$JIG_HANDOFF/begun\"; sleep 600'}",
        "{name: build, kind: code, command: 'true', gates: [{name: tests_pass, command: ': > \"$JIG_HANDOFF/begun\"; sleep 600'}]}",
    ] {
        let world = World::new(
            &[("src/a", "1\n")],
            &format!("name: one\nroster: {{}}\nphases:\n  - {phase}\n"),
            "roles: {}",
        );
        let input = world.input().await;
        let begun = input.prepared.dirs.handoff().join("begun");
        let cancel = world.cancel.clone();
        let canceller = std::thread::spawn(move || {
            jig_testkit::wait_until("the command", || begun.exists());
            cancel.raise(StopReason::Cancelled);
        });
        let ran = Ran::read(world.engine().run(input).await);
        canceller.join().unwrap();
        assert_eq!(ran.outcome.end, AttemptEnd::Cancelled, "{}", ran.error());
        assert_eq!(ran.entries(), ["build/fail"]);
        assert_none_marked(&world.data.path().to_string_lossy());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_future_leaves_nothing_running() {
    for (script, phase) in [
        (
            "roles: {dev: [{spawn: sleep 600, setsid: true, text: here, end: hang}]}",
            "{name: build, kind: agent, owner: dev}",
        ),
        (
            "roles: {dev: []}",
            "{name: build, kind: code, command: 'setsid sleep 600 & : > \"$JIG_HANDOFF/begun\"; sleep 600'}",
        ),
    ] {
        let world = World::new(
            &[("src/a", "1\n")],
            &format!("name: one\n{}\nphases:\n  - {phase}\n", super::world::DEV),
            script,
        );
        let input = world.input().await;
        let (trace, begun) = (
            input.prepared.dirs.trace(),
            input.prepared.dirs.handoff().join("begun"),
        );
        let engine = world.engine();
        let running = tokio::spawn(async move { engine.run(input).await });
        jig_testkit::wait_until_async("something to run", || {
            let said = std::fs::read_to_string(&trace).unwrap_or_default();
            begun.exists() || said.contains("agent_text")
        })
        .await;
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
        wait_none_marked(&world.data.path().to_string_lossy());
    }
}
