//! `tests_pass`: a command, however it ends.

use std::time::Duration;

use jig_process::{StopReason, StopSignal};
use jig_protocol::definition::GateName;
use jig_testkit::processes::{assert_none_marked, marked, unique_marker};
use serde_json::json;

use super::{Bench, shown};

async fn note(bench: &Bench, command: &str) -> String {
    let run = bench
        .run(GateName::TestsPass, Some(command), json!({}))
        .await;
    assert!(!run.report.passed, "{command}");
    assert_eq!(run.report.checks[0].item, command);
    run.report.checks[0].note.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_end_has_its_own_note() {
    let mut bench = Bench::supervised();
    let run = bench
        .run(GateName::TestsPass, Some("echo fine"), json!({}))
        .await;
    assert_eq!(shown(&run), ["+ echo fine: exit 0"]);
    let failed = note(&bench, "echo out; echo err >&2; exit 3").await;
    assert_eq!(failed, "exit 3\nstdout:\nout\nstderr:\nerr");
    assert_eq!(note(&bench, "kill -9 $$").await, "ended by signal 9");
    bench.timeout = Duration::from_millis(300);
    let timed_out = note(&bench, "echo begun; sleep 600").await;
    assert!(
        timed_out.starts_with("timed out after 300 ms"),
        "{timed_out}"
    );
    let tree = bench.tree();
    std::fs::remove_dir(&tree).unwrap();
    let not_started = note(&bench, "true").await;
    assert!(not_started.starts_with("not started: "), "{not_started}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_from_outside_is_no_verdict_and_leaves_nothing() {
    let mut bench = Bench::supervised();
    let marker = unique_marker("gate-stop");
    let signal = StopSignal::new();
    bench.deadline = bench.deadline.and_signal(&signal);
    bench.env.set("MARKER", marker.clone());
    let stopper = {
        let marker = marker.clone();
        tokio::spawn(async move {
            jig_testkit::wait_until_async("the command", || marked(&marker).len() >= 2).await;
            signal.raise(StopReason::Cancelled);
        })
    };
    let run = bench
        .run(
            GateName::TestsPass,
            Some("setsid sleep 600 & sleep 600"),
            json!({}),
        )
        .await;
    stopper.await.unwrap();
    assert_eq!(run.stopped, Some(StopReason::Cancelled));
    assert!(!run.report.passed);
    assert!(shown(&run)[0].contains("stopped: cancelled"), "{run:?}");
    assert_none_marked(&marker);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_child_neither_holds_the_gate_up_nor_survives_it() {
    let mut bench = Bench::supervised();
    let marker = unique_marker("gate-leftover");
    bench.env.set("MARKER", marker.clone());
    for command in [
        "sleep 600 & exit 0",
        "setsid sleep 600 > /dev/null 2>&1 & exit 0",
    ] {
        let run = bench
            .run(GateName::TestsPass, Some(command), json!({}))
            .await;
        assert!(run.report.passed, "{run:?}");
        assert!(run.survivors.is_empty());
        assert_none_marked(&marker);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_kept_redacted_and_one_run_never_overwrites_another() {
    let bench = Bench::supervised();
    for _ in 0..2 {
        let told = note(&bench, "printf 'my hunter2-'; echo 'secret is out'; exit 1").await;
        assert_eq!(told, "exit 1\nstdout:\nmy [redacted:TOKEN] is out");
    }
    let mut files: Vec<_> = std::fs::read_dir(bench.logs())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let names: Vec<_> = files
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "build-gate-0.2.stderr.log",
            "build-gate-0.2.stdout.log",
            "build-gate-0.stderr.log",
            "build-gate-0.stdout.log"
        ]
    );
    for file in &files {
        assert!(!std::fs::read_to_string(file).unwrap().contains("hunter2"));
    }
    let kept = std::fs::read_to_string(&files[3]).unwrap();
    assert_eq!(kept, "my [redacted:TOKEN] is out\n");
}
