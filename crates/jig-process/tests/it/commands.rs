//! Commands that run to their own end.

use jig_process::CommandEnd;
use jig_testkit::processes::{assert_none_marked, unique_marker};

use crate::support::{NEVER, run, shell};

#[tokio::test]
async fn exit_codes_and_streams_are_told_apart() {
    let marker = unique_marker("streams");
    let outcome = run(shell("echo out; echo err >&2; exit 7", &marker)).await;
    assert_eq!(outcome.end, CommandEnd::Code(7));
    assert_eq!(outcome.stdout.tail, "out\n");
    assert_eq!(outcome.stderr.tail, "err\n");
    assert_eq!(outcome.teardown, Default::default());
}

#[tokio::test]
async fn a_background_child_is_stopped_and_named() {
    let marker = unique_marker("background");
    let mut spec = shell(
        "sleep 600 & setsid sleep 601 & (setsid sleep 602 &) ; exit 0",
        &marker,
    );
    spec.grace = NEVER;
    let outcome = run(spec).await;
    assert_eq!(outcome.end, CommandEnd::Code(0));
    assert_eq!(outcome.teardown.leftovers.len(), 3, "{outcome:?}");
    assert!(outcome.teardown.is_clean());
    assert_none_marked(&marker);
}
