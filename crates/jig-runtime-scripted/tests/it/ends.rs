//! How a scripted agent's process ends.

use std::time::Duration;

use jig_process::{StopReason, StopSignal};
use jig_protocol::outcome::FailureClass;
use jig_runtime::{SendEnd, Stopped};
use jig_testkit::processes;

use crate::bench::Bench;

#[tokio::test]
async fn every_end_is_a_real_one() {
    let bench = Bench::new(
        r#"
roles:
  r:
    - {end: crash, text: before}
    - {end: {exit: 3}}
    - {end: {exit: 3}, emit: yes-but-3}
    - {end: error, error_class: rate_limited, retry_after: 2s, usage: {input_tokens: 1}}
    - {end: error, emit: "its words"}
"#,
    );
    let crashed = bench.send("r", "").await;
    let (class, message) = crashed.failure();
    assert_eq!(class, FailureClass::Crashed);
    assert!(message.contains("signal 9"), "{message}");
    assert_eq!(crashed.report.usage, None);

    let exited = bench.send("r", "").await;
    let SendEnd::Failed {
        class, exit_code, ..
    } = exited.report.end
    else {
        panic!()
    };
    assert_eq!((class, exit_code), (FailureClass::Crashed, Some(3)));

    assert_eq!(bench.send("r", "").await.answer(), "yes-but-3");

    let limited = bench.send("r", "").await;
    let SendEnd::Failed {
        class, retry_after, ..
    } = limited.report.end
    else {
        panic!()
    };
    assert_eq!(
        (class, retry_after),
        (FailureClass::RateLimited, Some(Duration::from_secs(2)))
    );
    assert_eq!(limited.report.usage.unwrap().input_tokens, 1);

    assert_eq!(
        bench.send("r", "").await.failure(),
        (FailureClass::Other, "its words")
    );
}

#[tokio::test]
async fn a_hanging_agent_is_stopped() {
    let mut bench = Bench::new("roles: {r: [{write: {up: x}, end: hang}]}");
    let cancel = StopSignal::new();
    bench.deadline = bench.deadline.and_signal(&cancel);
    let sending = tokio::spawn(bench.send_in("r", "", jig_runtime::Session::new("k")));
    let up = bench.tree().join("up");
    jig_testkit::wait_until_async("the agent", || up.exists()).await;
    cancel.raise(StopReason::Cancelled);
    let sent = sending.await.unwrap();
    assert_eq!(sent.report.end, SendEnd::Stopped(Stopped::Cancelled));
}

#[tokio::test]
async fn what_it_leaves_behind_is_stopped_also_outside_its_group() {
    for setsid in ["false", "true"] {
        let marker = processes::unique_marker("left");
        let bench = Bench::new(&format!(
            "roles: {{r: [{{spawn: \"sleep 600 # {marker}\", setsid: {setsid}, emit: done}}]}}"
        ));
        let sent = bench.send("r", "").await;
        assert_eq!(sent.answer(), "done");
        processes::assert_none_marked(&marker);
        let left = &sent.report.leftovers;
        assert!(
            left.iter().any(|line| line.contains("sleep 600")),
            "{setsid}: {left:?}"
        );
    }
}
