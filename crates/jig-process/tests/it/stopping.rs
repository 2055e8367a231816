//! Commands that are stopped, and what resists it.

use std::sync::Arc;
use std::time::Duration;

use jig_process::{CommandEnd, Deadline, Exit, StopReason, StopSignal, Supervised, run_command};
use jig_testkit::processes::{assert_none_marked, marked, unique_marker, wait_none_marked};
use jig_testkit::{ManualClock, host, repeat};
use rustix::process::Signal;

use crate::support::{NEVER, SHORT, command, forever, shell, signal, wait_marked};

async fn start(line: &str, marker: &str) -> Supervised {
    Supervised::start(&host(), shell(line, marker))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_tree_that_ends_on_term_costs_no_grace() {
    for _ in 0..repeat() {
        let marker = unique_marker("willing");
        let mut supervised = start("sleep 600 & setsid sleep 601 & wait", &marker).await;
        wait_marked(&marker, 3).await;
        let teardown = supervised.stop(NEVER).await;
        assert_eq!(teardown.leftovers.len(), 3, "{teardown:?}");
        assert_none_marked(&marker);
        assert_eq!(supervised.wait_exit().await, Exit::Signal(15));
        // A dead tree costs none either.
        assert_eq!(supervised.stop(NEVER).await, teardown);
    }
}

#[tokio::test]
async fn what_ignores_term_is_killed() {
    for _ in 0..repeat() {
        let marker = unique_marker("deaf");
        let line = "trap '' TERM; (trap '' TERM; setsid sleep 600) & \
                    python3 -c 'import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(600)' & \
                    sleep 600";
        let mut supervised = start(line, &marker).await;
        wait_marked(&marker, 4).await;
        let teardown = supervised.stop(SHORT).await;
        assert!(teardown.is_clean(), "{teardown:?}");
        assert_none_marked(&marker);
        assert_eq!(supervised.wait_exit().await, Exit::Signal(9));
    }
}

#[tokio::test]
async fn the_grace_is_for_cleaning_up() {
    let dir = tempfile::tempdir().unwrap();
    let marker = unique_marker("grace");
    // The cleaning starts a process of its own, which must not get a TERM.
    let line = "trap 'sleep 0.3; echo done > cleaned; exit 5' TERM; touch ready; \
                while :; do sleep 0.05; done";
    let mut spec = shell(line, &marker);
    spec.cwd = dir.path().to_owned();
    let mut supervised = Supervised::start(&host(), spec).await.unwrap();
    let ready = dir.path().join("ready");
    jig_testkit::wait_until_async("the trap", || ready.exists()).await;
    supervised.stop(NEVER).await;
    assert_eq!(supervised.wait_exit().await, Exit::Code(5));
    assert!(dir.path().join("cleaned").exists());
}

#[tokio::test]
async fn a_second_stop_shortens_the_grace() {
    let marker = unique_marker("second");
    let mut supervised = start("trap '' TERM; echo; while :; do sleep 1; done", &marker).await;
    wait_marked(&marker, 2).await;
    supervised.begin_stop(NEVER);
    tokio::select! {
        biased;
        _ = supervised.wait_gone() => panic!("it ignores TERM"),
        () = tokio::time::sleep(SHORT) => {}
    }
    assert!(supervised.stop(SHORT).await.is_clean());
    assert_none_marked(&marker);
}

#[tokio::test]
async fn a_stopped_process_is_continued_so_that_it_can_end() {
    let marker = unique_marker("stopped");
    let mut supervised = start("kill -STOP $$; sleep 600", &marker).await;
    wait_marked(&marker, 1).await;
    assert!(supervised.stop(NEVER).await.is_clean());
    assert_eq!(supervised.wait_exit().await, Exit::Signal(15));
    assert_none_marked(&marker);
}

#[tokio::test]
async fn forkers_that_run_away_are_caught() {
    // Each process makes its successor and ends: no pid lives long enough to
    // be found twice, and every one is deaf to TERM.
    let script = "import os, signal, time\n\
                  signal.signal(15, signal.SIG_IGN)\n\
                  while True:\n\
                  \x20   if os.fork():\n\
                  \x20       os._exit(0)\n\
                  \x20   os.setsid()\n\
                  \x20   time.sleep(0.001)\n";
    for _ in 0..repeat() {
        let marker = unique_marker("forkers");
        let line = "for i in 1 2 3; do python3 -c \"$0\" & done; \
                    trap '' TERM; while :; do sleep 600 & sleep 0.01; done";
        let mut spec = shell(line, &marker);
        spec.args = vec![script.into()];
        let mut supervised = Supervised::start(&host(), spec).await.unwrap();
        wait_marked(&marker, 12).await;
        let teardown = supervised.stop(SHORT).await;
        assert!(teardown.is_clean(), "{teardown:?}");
        assert_none_marked(&marker);
    }
}

#[tokio::test]
async fn a_command_that_signals_its_group_does_not_reach_the_supervisor() {
    let marker = unique_marker("group");
    let outcome = crate::support::run(shell("sleep 600 & kill 0; wait", &marker)).await;
    assert_eq!(outcome.end, CommandEnd::Signal(15));
    assert_none_marked(&marker);
}

#[tokio::test]
async fn dropping_the_handle_stops_the_tree() {
    let marker = unique_marker("drop");
    let supervised = start("setsid sleep 600 & sleep 601", &marker).await;
    wait_marked(&marker, 2).await;
    drop(supervised);
    wait_none_marked_async(&marker).await;
}

#[test]
fn dropping_the_runtime_stops_the_tree() {
    let marker = unique_marker("runtime");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let supervised = runtime.block_on(async {
        let supervised = start("setsid sleep 600 & sleep 601", &marker).await;
        wait_marked(&marker, 2).await;
        supervised
    });
    drop(runtime);
    wait_none_marked(&marker);
    drop(supervised);
}

#[tokio::test]
async fn dropping_the_future_of_a_run_stops_the_tree() {
    let marker = unique_marker("future");
    let spec = command(shell("setsid sleep 600 & sleep 601", &marker));
    let running = tokio::spawn(async move { run_command(&host(), spec, &forever()).await });
    wait_marked(&marker, 2).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    wait_none_marked_async(&marker).await;
}

async fn wait_none_marked_async(marker: &str) {
    jig_testkit::wait_until_async("no marked process", || marked(marker).is_empty()).await;
}

#[tokio::test]
async fn every_reason_to_stop_is_told_apart() {
    for by_clock in [true, false] {
        let marker = unique_marker("deadline");
        let clock = ManualClock::new();
        let cancel = StopSignal::new();
        let deadline = Deadline::new(Arc::new(clock.clone()))
            .and_within(Duration::from_secs(3600), StopReason::Ceiling)
            .and_within(Duration::from_secs(60), StopReason::PhaseTimeout)
            .and_signal(&cancel);
        let mut spec = command(shell("echo begun; sleep 600 & sleep 601", &marker));
        spec.spec.grace = NEVER;
        let running = tokio::spawn(async move { run_command(&host(), spec, &deadline).await });
        wait_marked(&marker, 2).await;
        let expected = if by_clock {
            clock.wait_for_sleepers(1).await;
            clock.advance(Duration::from_secs(60));
            StopReason::PhaseTimeout
        } else {
            cancel.raise(StopReason::Cancelled);
            StopReason::Cancelled
        };
        let outcome = running.await.unwrap().unwrap();
        assert_eq!(outcome.end, CommandEnd::Stopped(expected));
        assert_eq!(outcome.stdout.tail, "begun\n", "what came is kept");
        assert!(outcome.teardown.is_clean());
        assert_none_marked(&marker);
    }
}

#[tokio::test]
async fn a_deadline_that_is_over_starts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = command(shell("echo > ran", &unique_marker("over")));
    spec.spec.cwd = dir.path().to_owned();
    let deadline = forever().and_within(Duration::ZERO, StopReason::Ceiling);
    let outcome = run_command(&host(), spec, &deadline).await.unwrap();
    assert_eq!(outcome.end, CommandEnd::Stopped(StopReason::Ceiling));
    assert!(!dir.path().join("ran").exists());
}

#[tokio::test]
async fn a_term_to_the_supervisor_stops_its_tree() {
    let marker = unique_marker("asked");
    let mut supervised = start("sleep 600 & sleep 601", &marker).await;
    wait_marked(&marker, 2).await;
    signal(supervised.identity().pid(), Signal::TERM);
    assert_eq!(supervised.wait_exit().await, Exit::Signal(15));
    assert!(supervised.wait_gone().await.is_clean());
    assert_none_marked(&marker);
}
