//! Clocks, moved by hand.

use std::sync::Arc;
use std::time::Duration;

use jig_process::{Program, StopReason};
use jig_protocol::limits;
use jig_protocol::outcome::FailureClass;
use jig_runtime::{SendEnd, Stopped};
use jig_testkit::ManualClock;

use crate::bench::{Bench, Words, is_alive};

const SILENCE: Duration = Duration::from_secs(300);
const SECOND: Duration = Duration::from_secs(1);

fn bench() -> (Bench, ManualClock) {
    let clock = ManualClock::new();
    (Bench::with_clock(Arc::new(clock.clone())), clock)
}

fn answered() -> SendEnd {
    SendEnd::Answered { text: "yes".into() }
}

/// A shell loop until a file is there.
fn until(file: &str) -> String {
    format!("while [ ! -e {file} ]; do sleep 0.02; done")
}

#[tokio::test]
async fn silence_stops_a_send_also_when_stdout_is_closed() {
    for close in ["", "exec >&-;"] {
        let (bench, clock) = bench();
        let mut running = bench.start(&format!(
            "echo $$ > pid; echo text ready; {close} sleep 600"
        ));
        running.until_text("ready").await;
        clock.wait_for_sleeper_within(SILENCE).await;
        clock.advance(SILENCE - SECOND);
        assert!(!running.task.is_finished());
        clock.wait_for_sleeper_within(SECOND).await;
        clock.advance(SECOND);
        let done = running.done().await;
        assert_eq!(done.report.end, SendEnd::Stopped(Stopped::Silence));
        assert!(!is_alive(&bench.tree().join("pid")));
    }
}

#[tokio::test]
async fn a_byte_on_stderr_breaks_the_silence() {
    let (bench, clock) = bench();
    let script = format!(
        "echo text ready; {}; printf . >&2; {}; echo result yes",
        until("go"),
        until("end")
    );
    let mut running = bench.start(&script);
    running.until_text("ready").await;
    clock.wait_for_sleeper_within(SILENCE).await;
    clock.advance(SILENCE - SECOND);
    clock.wait_for_sleeper_within(SECOND).await;
    bench.touch("go");
    // The byte was taken once nothing ends within the second any more.
    clock.wait_for_no_sleeper_within(SECOND).await;
    clock.advance(SILENCE - SECOND);
    assert!(!running.task.is_finished());
    bench.touch("end");
    assert_eq!(running.done().await.report.end, answered());
}

#[tokio::test]
async fn an_open_tool_call_may_be_silent_until_the_phase_ends() {
    let (mut bench, clock) = bench();
    bench.deadline = bench
        .deadline
        .and_within(SILENCE * 10, StopReason::PhaseTimeout);
    let script = format!(
        "echo open a; echo text ready; {}; echo close a; echo text closed; {}; echo result yes",
        until("go"),
        until("end")
    );
    let mut running = bench.start(&script);
    running.until_text("ready").await;
    clock.wait_for_no_sleeper_within(SILENCE * 9).await;
    clock.advance(SILENCE * 9);
    bench.touch("go");
    running.until_text("closed").await;
    // Closed: silence counts again, from here.
    clock.wait_for_sleeper_within(SILENCE).await;
    clock.advance(SILENCE - SECOND);
    bench.touch("end");
    assert_eq!(running.done().await.report.end, answered());

    let mut running = bench.start("echo open a; echo text ready; sleep 600");
    running.until_text("ready").await;
    clock.wait_for_sleepers(1).await;
    clock.advance(SILENCE * 2);
    assert_eq!(
        running.done().await.report.end,
        SendEnd::Stopped(Stopped::PhaseClock)
    );
}

#[tokio::test]
async fn an_agent_that_answered_but_stays_is_stopped_after_a_grace() {
    let (bench, clock) = bench();
    let mut running = bench.start("echo $$ > pid; echo text ready; echo result yes; sleep 600");
    running.until_text("ready").await;
    clock.wait_for_sleeper_within(limits::DRAIN_GRACE).await;
    clock.advance(limits::DRAIN_GRACE);
    let done = running.done().await;
    assert_eq!(done.report.end, answered());
    assert_eq!(
        done.session.native_id.as_deref(),
        Some("ended by jig after its result")
    );
    assert!(!is_alive(&bench.tree().join("pid")));
}

#[tokio::test]
async fn a_result_that_is_there_when_the_clock_fires_wins() {
    let (mut bench, clock) = bench();
    bench.deadline = bench.deadline.and_within(SILENCE, StopReason::Ceiling);
    bench.capacity = 1;
    // The consumer stands still, so the result stays in the pipe.
    let running = bench.start(
        "echo text one; echo text two; echo text three; echo result yes; touch said; sleep 600",
    );
    bench.wait_for_file("said").await;
    clock.wait_for_sleepers(1).await;
    clock.advance(SILENCE);
    let done = running.done().await;
    assert_eq!(done.report.end, answered());
    assert_eq!(done.texts(), ["one", "two", "three"]);
}

#[tokio::test]
async fn a_flood_does_not_hold_the_clock_off() {
    let (mut bench, clock) = bench();
    bench.deadline = bench.deadline.and_within(SILENCE, StopReason::Ceiling);
    let mut running = bench.start("while :; do echo text ready; done");
    running.until_text("ready").await;
    clock.wait_for_sleepers(1).await;
    clock.advance(SILENCE);
    assert_eq!(
        running.done().await.report.end,
        SendEnd::Stopped(Stopped::Ceiling)
    );
}

#[tokio::test]
async fn a_consumer_that_never_comes_is_not_waited_for_beyond_the_deadline() {
    let (mut bench, clock) = bench();
    bench.deadline = bench.deadline.and_within(SILENCE, StopReason::Ceiling);
    bench.capacity = 1;
    let running = bench.start("echo text one; echo text two; echo result yes; touch said");
    bench.wait_for_file("said").await;
    clock.wait_for_sleepers(1).await;
    clock.advance(SILENCE);
    clock.wait_for_sleeper_within(limits::DRAIN_GRACE).await;
    clock.advance(limits::DRAIN_GRACE);
    let (report, _) = tokio::time::timeout(jig_testkit::BOUND, running.task)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(report.end, answered());
}

#[tokio::test]
async fn what_a_dialect_waits_for_has_its_own_time_also_under_a_flood() {
    for act in ["sleep 600", "while :; do echo text more; done"] {
        let (bench, clock) = bench();
        let script = format!("echo $$ > pid; echo text ready; {act}");
        let words = Words::waiting(SECOND * 10);
        let mut running = bench.start_program(Program::Shell(script.into()), words);
        running.until_text("ready").await;
        clock.wait_for_sleeper_within(SECOND * 10).await;
        clock.advance(SECOND * 10);
        let done = running.done().await;
        // Not stopped from outside: the dialect says what was missing.
        assert!(
            matches!(
                &done.report.end,
                SendEnd::Failed {
                    class: FailureClass::Crashed,
                    exit_code: None,
                    ..
                }
            ),
            "{:?}",
            done.report.end
        );
        assert_eq!(
            done.session.native_id.as_deref(),
            Some("ended by jig for want of an answer")
        );
        assert!(!is_alive(&bench.tree().join("pid")));
    }
}

#[tokio::test]
async fn a_time_to_wait_is_moved_and_taken_back() {
    let (bench, clock) = bench();
    let script = format!(
        "echo within 100; echo text moved; {}; echo within never; echo text free; {}; echo result yes",
        until("go"),
        until("end")
    );
    let words = Words::waiting(SECOND * 10);
    let mut running = bench.start_program(Program::Shell(script.into()), words);
    running.until_text("moved").await;
    clock.wait_for_no_sleeper_within(SECOND * 99).await;
    clock.advance(SECOND * 99);
    bench.touch("go");
    running.until_text("free").await;
    clock.wait_for_no_sleeper_within(SECOND * 2).await;
    clock.advance(SECOND * 2);
    bench.touch("end");
    assert_eq!(running.done().await.report.end, answered());
}

#[tokio::test]
async fn a_chatty_agent_that_answered_ends_when_its_time_is_up() {
    let (bench, clock) = bench();
    let script =
        "echo result yes; echo within 10; echo text ready; while :; do echo text more; done";
    let mut running = bench.start(script);
    running.until_text("ready").await;
    clock.wait_for_sleeper_within(SECOND * 10).await;
    clock.advance(SECOND * 10);
    assert_eq!(running.done().await.report.end, answered());
}
