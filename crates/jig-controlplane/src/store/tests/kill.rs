//! Killed before any statement, before or after any commit of a run.

use std::path::Path;
use std::sync::Arc;

use jig_protocol::lifecycle::{AttemptState, Outcome, RunState};
use tokio_util::sync::CancellationToken;

use super::faults;
use super::support::{
    CountingRandom, Scripted, Then, child, jsonl, kill_self, markers, open, request, told,
};
use crate::direct;
use crate::store::trace_path;

/// What a child does: one run, killed at the given step of the database; told 0
/// it lives and writes down how many steps there were.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_is_killed_at_a_step() {
    let (Some(data), Some(step)) = (told("JIG_TEST_DATA"), told("JIG_TEST_STEP")) else {
        return;
    };
    let store = open(data.as_ref()).await;
    faults::kill_at(step.parse().unwrap());
    let executor = Scripted::new(2, Then::End(Outcome::AcceptedUnpublished));
    let random = CountingRandom::default();
    let cancel = CancellationToken::new();
    let run = direct::run(&store, &random, request("file:///r"), executor, cancel);
    let outcome = run.await.unwrap();
    assert_eq!(outcome.not_recorded, None);
    std::fs::write(Path::new(&data).join("steps"), faults::taken().to_string()).unwrap();
    if step != "0" {
        // The groups of events fell differently this time and there were fewer steps.
        kill_self();
    }
}

async fn killed_at(data: &Path, step: u64) {
    let told = [
        ("JIG_TEST_DATA", data.display().to_string()),
        ("JIG_TEST_STEP", step.to_string()),
    ];
    let output = child("store::tests::kill::child_is_killed_at_a_step", &told)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    assert_eq!(signal, (step > 0).then_some(9), "step {step}: {said}");
}

/// Nothing is lost, nothing is there twice, nothing stays open.
async fn assert_in_order(data: &Path, step: u64) {
    let store = open(data).await;
    let executor = Scripted::new(1, Then::End(Outcome::AcceptedUnpublished));
    let random = CountingRandom::default();
    let cancel = CancellationToken::new();
    let next = direct::run(&store, &random, request("r"), Arc::clone(&executor), cancel)
        .await
        .unwrap();
    assert_eq!(next.state, AttemptState::AcceptedUnpublished, "step {step}");
    assert_eq!(next.reclaim.problems, Vec::<String>::new(), "step {step}");
    assert_eq!(next.reclaim.unmarked, [], "step {step}");
    assert!(markers(data).is_empty(), "step {step}");

    let mut attempts = store.newest_attempts(10).await.unwrap();
    attempts.retain(|attempt| attempt.id != next.attempt_id);
    assert!(attempts.len() <= 1, "step {step}");
    for dead in attempts {
        let recorded_before = dead.state == AttemptState::AcceptedUnpublished;
        assert!(
            recorded_before || dead.state == AttemptState::Lost,
            "step {step}: {dead:?}"
        );
        let job = store.job(dead.job_id).await.unwrap().unwrap();
        let run = store.run(job.run_id).await.unwrap().unwrap();
        let ended = if recorded_before {
            RunState::Accepted
        } else {
            RunState::Failed
        };
        assert_eq!(run.state, ended, "step {step}");
        let events = store.events(dead.id, 0, 1_000).await.unwrap();
        assert_eq!(events, jsonl(&trace_path(data, dead.id)), "step {step}");
        let gates = events
            .iter()
            .filter(|event| event.kind.as_str() == "gate_pass")
            .count();
        assert_eq!(
            store.gates(dead.id).await.unwrap().len(),
            2 * gates,
            "step {step}"
        );
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_killed_at_any_step_is_put_in_order_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    killed_at(dir.path(), 0).await;
    let steps = std::fs::read_to_string(dir.path().join("steps")).unwrap();
    let steps: u64 = steps.parse().unwrap();
    assert!(steps > 40, "the steps are counted: {steps}");
    // Every step of admission and claim, then a stride that visits each kind of
    // statement of the events, then every step of the end.
    let stride = |step: &u64| *step <= 24 || step.is_multiple_of(4) || *step + 14 > steps;
    for step in (1..=steps).filter(stride) {
        let dir = tempfile::tempdir().unwrap();
        killed_at(dir.path(), step).await;
        assert_in_order(dir.path(), step).await;
    }
}
