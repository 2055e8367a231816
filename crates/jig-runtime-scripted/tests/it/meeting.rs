//! Barriers.

use std::sync::Arc;

use jig_protocol::limits;
use jig_protocol::outcome::FailureClass;
use jig_runtime::Session;
use jig_testkit::ManualClock;

use crate::bench::Bench;

#[tokio::test]
async fn roles_that_run_at_once_meet() {
    let bench = Bench::new(
        r#"
roles:
  left: [{reach: l, wait_for: r, run: "test -e ../right", run_must_succeed: true, emit: left}]
  right: [{write: {../right: x}, reach: [], emit: first}, {reach: r, wait_for: [l], emit: right}]
"#,
    );
    assert_eq!(bench.send("right", "").await.answer(), "first");
    let left = tokio::spawn(bench.send_in("left", "", Session::new("l")));
    let right = tokio::spawn(bench.send_in("right", "", Session::new("r")));
    assert_eq!(left.await.unwrap().answer(), "left");
    assert_eq!(right.await.unwrap().answer(), "right");
}

#[tokio::test]
async fn a_barrier_that_nobody_reaches_fails_the_script_by_name() {
    let clock = ManualClock::new();
    let bench = Bench::with_clock(
        "roles: {r: [{wait_for: the-barrier, write: {f: x}, emit: x}]}",
        Arc::new(clock.clone()),
    );
    let sending = tokio::spawn(bench.send_in("r", "", Session::new("k")));
    clock.wait_for_sleeper_within(limits::BARRIER_TIMEOUT).await;
    clock.advance(limits::BARRIER_TIMEOUT);
    let sent = sending.await.unwrap();
    let (class, message) = sent.failure();
    assert_eq!(class, FailureClass::Script);
    assert!(message.contains("`the-barrier`"), "{message}");
    assert!(!bench.tree().join("f").exists());
}
