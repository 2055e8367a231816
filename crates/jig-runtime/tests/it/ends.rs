//! How a send ends: exits, leftovers, kills, drops.

use jig_process::{StopReason, StopSignal};
use jig_protocol::outcome::FailureClass;
use jig_runtime::{Program, RuntimeEvent, SendEnd, Stopped};

use crate::bench::{Bench, Words, is_alive};

fn answered(text: &str) -> SendEnd {
    SendEnd::Answered {
        text: text.to_owned(),
    }
}

#[tokio::test]
async fn an_answer_and_its_exit() {
    let bench = Bench::new();
    let done = bench.run("echo text hello; echo result yes").await;
    assert_eq!(done.report.end, answered("yes"));
    assert_eq!(done.texts(), ["hello"]);
    assert!(matches!(done.events[0], RuntimeEvent::Started { .. }));
    assert_eq!(done.session.sends, 1);
    assert_eq!(done.session.native_id.as_deref(), Some("exit code 0"));
    assert!(done.report.leftovers.is_empty() && done.report.survivors.is_empty());
}

#[tokio::test]
async fn a_result_outranks_the_exit_code() {
    let done = Bench::new().run("echo result yes; exit 3").await;
    assert_eq!(done.report.end, answered("yes"));
    let done = Bench::new().run("echo error busy; exit 1").await;
    let SendEnd::Failed {
        class,
        message,
        exit_code,
        ..
    } = done.report.end
    else {
        panic!()
    };
    assert_eq!(
        (class, message.as_str(), exit_code),
        (FailureClass::Overloaded, "busy", Some(1))
    );
}

#[tokio::test]
async fn without_a_result_the_exit_code_and_stderr_are_told() {
    let done = Bench::new()
        .run("echo first >&2; exec >&-; sleep 0.2; echo late >&2; exit 7")
        .await;
    let SendEnd::Failed {
        class,
        message,
        exit_code,
        ..
    } = done.report.end
    else {
        panic!()
    };
    assert_eq!((class, exit_code), (FailureClass::Crashed, Some(7)));
    assert!(message.ends_with("first\nlate"), "{message}");
}

#[tokio::test]
async fn a_descendant_that_holds_the_streams_holds_nothing_up() {
    let bench = Bench::new();
    let done = bench
        .run(
            "sleep 600 & echo $! > pid
            until tr '\\0' ' ' < /proc/$!/cmdline | grep -q '^sleep 600'; do sleep 0.01; done
            echo result yes",
        )
        .await;
    assert_eq!(done.report.end, answered("yes"));
    assert!(
        done.report
            .leftovers
            .iter()
            .any(|left| left.contains("sleep 600")),
        "{:?}",
        done.report.leftovers
    );
    assert!(!is_alive(&bench.tree().join("pid")));
}

#[tokio::test]
async fn what_a_leftover_says_while_it_is_stopped_is_still_heard() {
    let script =
        "(trap 'echo text bye; exit' TERM; echo ready > ready; while :; do sleep 0.02; done) &
        while [ ! -e ready ]; do sleep 0.02; done; echo result yes";
    let done = Bench::new().run(script).await;
    assert_eq!(
        (done.report.end.clone(), done.texts()),
        (answered("yes"), vec!["bye"])
    );
}

#[tokio::test]
async fn a_cancelled_send_is_stopped_and_its_last_words_are_kept() {
    let mut bench = Bench::new();
    let cancel = StopSignal::new();
    bench.deadline = bench.deadline.and_signal(&cancel);
    let script = "trap 'echo text dying; exit 0' TERM; echo $$ > pid; echo text ready; while :; do sleep 0.02; done";
    let mut running = bench.start(script);
    running.until_text("ready").await;
    cancel.raise(StopReason::Cancelled);
    let done = running.done().await;
    assert_eq!(done.report.end, SendEnd::Stopped(Stopped::Cancelled));
    assert_eq!(done.texts(), ["dying"]);
    assert!(!is_alive(&bench.tree().join("pid")));
    assert_eq!(done.session.sends, 1);
}

#[tokio::test]
async fn an_answer_that_was_completed_during_the_stop_counts_and_a_failure_does_not() {
    for (last, expected) in [
        ("result yes", answered("yes")),
        ("error interrupted", SendEnd::Stopped(Stopped::Group)),
    ] {
        let mut bench = Bench::new();
        let stop = StopSignal::new();
        bench.deadline = bench.deadline.and_signal(&stop);
        let script = format!(
            "trap 'echo {last}; exit 0' TERM; echo text ready; while :; do sleep 0.02; done"
        );
        let mut running = bench.start(&script);
        running.until_text("ready").await;
        stop.raise(StopReason::GroupStop);
        assert_eq!(running.done().await.report.end, expected, "{last}");
    }
}

#[tokio::test]
async fn a_dropped_send_leaves_nothing_running() {
    let bench = Bench::new();
    let mut running = bench
        .start("echo $$ > pid; setsid sleep 600 & echo $! > child; echo text ready; sleep 600");
    running.until_text("ready").await;
    running.task.abort();
    assert!(running.task.await.unwrap_err().is_cancelled());
    for file in ["pid", "child"] {
        let path = bench.tree().join(file);
        jig_testkit::wait_until_async("the end of a dropped send", || !is_alive(&path)).await;
    }
}

#[tokio::test]
async fn a_program_that_does_not_exist_was_never_sent() {
    let mut bench = Bench::new();
    bench.private_files = vec![("secret".into(), b"s".to_vec())];
    let program = Program::At(bench.dir.path().join("nowhere"));
    let done = bench.start_program(program, Words::default()).done().await;
    let SendEnd::NotStarted { class, message } = &done.report.end else {
        panic!("{:?}", done.report)
    };
    assert_eq!(*class, FailureClass::Other);
    assert!(message.contains("did not start"), "{message}");
    assert_eq!(done.session.sends, 0);
    assert!(!bench.home().join("secret").exists());
}

#[tokio::test]
async fn a_killed_supervisor_is_a_crash_and_its_children_are_stopped() {
    let bench = Bench::new();
    let mut running = bench.start("echo $$ > pid; echo text ready; sleep 600");
    let Some(RuntimeEvent::Started { process }) = running.events.recv().await else {
        panic!()
    };
    running.until_text("ready").await;
    let killed = std::process::Command::new("kill")
        .args(["-9", &process.pid().to_string()])
        .status();
    assert!(killed.unwrap().success());
    let done = running.done().await;
    let SendEnd::Failed { class, .. } = &done.report.end else {
        panic!("{:?}", done.report)
    };
    assert_eq!(*class, FailureClass::Crashed);
    assert_eq!(done.session.native_id.as_deref(), Some("an unseen end"));
    assert!(!is_alive(&bench.tree().join("pid")));
}

#[tokio::test]
async fn private_files_exist_for_the_time_of_the_send() {
    let mut bench = Bench::new();
    bench.private_files = vec![(".prompt".into(), b"the system prompt".to_vec())];
    std::fs::create_dir(bench.home().join(".agent")).unwrap();
    for login in [".agent/a", ".agent/b"] {
        std::fs::write(bench.home().join(login), "token").unwrap();
    }
    bench.remove_at_end = vec![".agent/a".into(), bench.home().join(".agent/b")];
    let done = bench
        .run("echo text $(cat ~/.prompt); echo text $(cat ~/.agent/a); echo result yes")
        .await;
    assert_eq!(done.report.end, answered("yes"));
    assert_eq!(done.texts(), ["the system prompt", "token"]);
    assert!(done.report.not_removed.is_empty());
    let left: Vec<_> = std::fs::read_dir(bench.home())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left, [".agent"]);
    assert_eq!(
        std::fs::read_dir(bench.home().join(".agent"))
            .unwrap()
            .count(),
        0
    );
}
