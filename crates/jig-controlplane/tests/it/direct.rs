//! A direct run while its process lives.

use std::sync::Arc;

use jig_controlplane::direct::{self, DirectError, DirectOutcome};
use jig_controlplane::service::{self, Admission, Target};
use jig_controlplane::{RandomSource, Store};
use jig_protocol::lifecycle::{AttemptState, JobState, Outcome, RunState};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

use crate::support::{
    BASE, CountingRandom, Scripted, TestClock, Then, eventually, jsonl, markers, open, request,
};

async fn run(store: &Store, executor: Arc<Scripted>) -> DirectOutcome<&'static str> {
    let random = CountingRandom::default();
    let cancel = CancellationToken::new();
    direct::run(store, &random, request("file:///repo"), executor, cancel)
        .await
        .unwrap()
}

/// The store holds exactly what the trace file holds.
async fn assert_same_events(store: &Store, outcome: &DirectOutcome<&'static str>) {
    let stored = store.events(outcome.attempt_id, 0, 100_000).await.unwrap();
    let written = jsonl(&outcome.trace_path);
    assert!(!written.is_empty());
    assert_eq!(stored, written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_accepted_run_is_accepted_with_everything_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let outcome = run(
        &store,
        Scripted::new(3, Then::End(Outcome::AcceptedUnpublished)),
    )
    .await;
    assert_eq!(outcome.state, AttemptState::AcceptedUnpublished);
    assert_eq!(outcome.report, Some("report"));
    assert_eq!(outcome.not_recorded, None);
    assert_same_events(&store, &outcome).await;

    let attempt = store.attempt(outcome.attempt_id).await.unwrap().unwrap();
    assert_eq!(attempt.state, AttemptState::AcceptedUnpublished);
    assert_eq!(attempt.runtimes[0].name, "scripted");
    assert!(attempt.started_at.is_some() && attempt.completed_at.is_some());
    let job = store.job(outcome.job_id).await.unwrap().unwrap();
    assert_eq!(
        (job.state, job.base_sha.as_str()),
        (JobState::AcceptedUnpublished, BASE)
    );
    let run = store.run(outcome.run_id).await.unwrap().unwrap();
    assert_eq!(run.state, RunState::Accepted);
    assert_eq!(run.parameters["prompt"], "do it");
    let text = store.definition_text(&run.snapshot_digest).await.unwrap();
    assert_eq!(text.as_deref(), Some("name: smoke\n"));

    let gates = store.gates(outcome.attempt_id).await.unwrap();
    assert_eq!(gates.len(), 6);
    assert_eq!(gates[1].item, "b.txt");
    let envelopes = store.envelopes(outcome.attempt_id).await.unwrap();
    assert_eq!(envelopes.len(), 3);
    assert_eq!(envelopes[0].parse_error.as_deref(), Some("no JSON"));
    assert!(markers(dir.path()).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_never_reached_the_store_are_read_from_the_trace() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let mut executor = Scripted::plain(400, Then::End(Outcome::AcceptedUnpublished));
    executor.deliver = false;
    let outcome = run(&store, Arc::new(executor)).await;
    assert_eq!(outcome.state, AttemptState::AcceptedUnpublished);
    assert_same_events(&store, &outcome).await;
    assert_eq!(store.gates(outcome.attempt_id).await.unwrap().len(), 800);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_run_records_its_unwinding() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let executor = Scripted::new(2, Then::WaitForCancel);
    let cancel = CancellationToken::new();
    let (emitted, trigger) = (executor.emitted.clone(), cancel.clone());
    let interrupt = tokio::spawn(async move {
        emitted.cancelled().await;
        trigger.cancel();
    });
    let random = CountingRandom::default();
    let outcome = direct::run(&store, &random, request("r"), executor, cancel)
        .await
        .unwrap();
    interrupt.await.unwrap();
    assert_eq!(outcome.state, AttemptState::Cancelled);
    assert_same_events(&store, &outcome).await;
    let events = store.events(outcome.attempt_id, 0, 1_000).await.unwrap();
    assert_eq!(
        events.last().unwrap().name.as_deref(),
        Some("attempt_cancelled")
    );
    let run = store.run(outcome.run_id).await.unwrap().unwrap();
    assert_eq!(run.state, RunState::Cancelled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_asked_for_elsewhere_arrives_with_a_heartbeat() {
    let dir = tempfile::tempdir().unwrap();
    let options = jig_controlplane::store::OpenOptions::default();
    let store = Store::open(dir.path(), TestClock::faster(200), &options)
        .await
        .unwrap();
    let executor = Scripted::new(1, Then::WaitForCancel);
    let emitted = executor.emitted.clone();
    let elsewhere = open(dir.path()).await;
    let asking = tokio::spawn(async move {
        emitted.cancelled().await;
        let newest = elsewhere.newest_attempts(1).await.unwrap().remove(0);
        service::cancel_job(&elsewhere, &CountingRandom::default(), newest.job_id)
            .await
            .unwrap()
    });
    let outcome = run(&store, executor).await;
    let asked = asking.await.unwrap();
    assert!(asked.cancellation_requested);
    assert_eq!(outcome.state, AttemptState::Cancelled);
    assert_eq!(outcome.not_recorded, None);
    let job = store.job(outcome.job_id).await.unwrap().unwrap();
    assert!(job.cancellation_delivered_at.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_becomes_a_failed_attempt_that_is_cleaned_up() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let executor = Scripted::new(2, Then::Panic);
    let outcome = run(&store, Arc::clone(&executor)).await;
    assert_eq!(outcome.state, AttemptState::Failed);
    assert_eq!(outcome.report, None);
    assert!(
        outcome
            .completion
            .error
            .as_deref()
            .unwrap()
            .contains("panic")
    );
    assert_same_events(&store, &outcome).await;
    assert_eq!(executor.reclaimed.lock().unwrap().len(), 1);
    let trees = store.retained_worktrees().await.unwrap();
    assert_eq!(trees.len(), 1);
    assert_eq!(trees[0].attempt_id, outcome.attempt_id);
    assert!(markers(dir.path()).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_runs_at_once_leave_each_other_alone() {
    let dir = tempfile::tempdir().unwrap();
    let barrier = Arc::new(Barrier::new(2));
    let mut running = Vec::new();
    for _ in 0..2 {
        let store = open(dir.path()).await;
        let executor = Scripted::new(2, Then::Meet(Arc::clone(&barrier)));
        running.push(tokio::spawn(async move {
            let outcome = run(&store, Arc::clone(&executor)).await;
            (outcome, executor)
        }));
    }
    for run in running {
        let (outcome, executor) = run.await.unwrap();
        assert_eq!(outcome.state, AttemptState::AcceptedUnpublished);
        assert_eq!(outcome.reclaim, direct::ReclaimReport::default());
        assert!(executor.reclaimed.lock().unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_queued_job_neither_blocks_nor_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let random = CountingRandom::default();
    let foreign = admit_foreign(&store, &random).await;
    let outcome = run(&store, Scripted::new(1, Then::End(Outcome::Failed))).await;
    assert_eq!(outcome.state, AttemptState::Failed);
    assert_ne!(outcome.job_id, foreign);
    let job = store.job(foreign).await.unwrap().unwrap();
    assert_eq!(job.state, JobState::Queued);
    assert_eq!(outcome.reclaim.unmarked, []);
}

async fn admit_foreign(store: &Store, random: &dyn RandomSource) -> jig_protocol::ids::JobId {
    let admission = Admission {
        definition_name: "other".to_owned(),
        definition_source: "name: other\n".to_owned(),
        parameters: std::collections::BTreeMap::new(),
        targets: vec![Target {
            repository: "file:///foreign".to_owned(),
            base_ref: None,
            base_sha: BASE.to_owned(),
        }],
        environment_names: std::collections::BTreeSet::new(),
        runtimes: std::collections::BTreeSet::new(),
        reserved_for: None,
    };
    service::admit(store, random, &admission, None)
        .await
        .unwrap()
        .jobs[0]
        .0
}

#[tokio::test]
async fn cancelled_before_it_began_it_admits_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let executor = Scripted::new(1, Then::End(Outcome::Failed));
    let random = CountingRandom::default();
    let refused = direct::run(&store, &random, request("r"), executor, cancel).await;
    assert!(matches!(refused, Err(DirectError::Cancelled)));
    assert_eq!(store.newest_attempts(1).await.unwrap(), []);
    assert!(markers(dir.path()).is_empty());
}

#[tokio::test]
async fn a_base_that_is_no_commit_is_refused_and_nothing_is_admitted() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    for base in [
        "main",
        "",
        "0123",
        &BASE.to_uppercase(),
        &format!("{BASE}0"),
    ] {
        let mut request = request("r");
        request.base_sha = base.to_owned();
        let executor = Scripted::new(1, Then::End(Outcome::Failed));
        let random = CountingRandom::default();
        let cancel = CancellationToken::new();
        let refused = direct::run(&store, &random, request, executor, cancel).await;
        let refused = refused.unwrap_err();
        let DirectError::Admit(service::AdmitError::InvalidBase(named)) = refused else {
            panic!("{base:?}: {refused}");
        };
        assert_eq!(named, base);
    }
    assert_eq!(store.newest_attempts(1).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_counts_a_generation_for_every_changed_text() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let mut generations = Vec::new();
    for text in [
        "name: smoke\n",
        "name: smoke\n",
        "name: smoke # new\n",
        "name: smoke\n",
    ] {
        let mut request = request("r");
        request.definition_source = text.to_owned();
        let executor = Scripted::new(1, Then::End(Outcome::Failed));
        let random = CountingRandom::default();
        let cancel = CancellationToken::new();
        let outcome = direct::run(&store, &random, request, executor, cancel)
            .await
            .unwrap();
        let run = store.run(outcome.run_id).await.unwrap().unwrap();
        let frozen = store.definition_text(&run.snapshot_digest).await.unwrap();
        assert_eq!(frozen.as_deref(), Some(text));
        generations.push(run.definition_generation);
    }
    assert_eq!(generations, [1, 1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_can_be_watched_while_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let barrier = Arc::new(Barrier::new(2));
    let executor = Scripted::new(1, Then::Meet(Arc::clone(&barrier)));
    let watching = store.clone();
    let watcher = tokio::spawn(async move {
        eventually("the phase's end in the store", || async {
            match watching.newest_attempts(1).await.unwrap().first() {
                Some(attempt) => {
                    let events = watching.events(attempt.id, 0, 100).await.unwrap();
                    attempt.state == AttemptState::Running
                        && events
                            .iter()
                            .any(|event| event.kind.as_str() == "phase_end")
                }
                None => false,
            }
        })
        .await;
        barrier.wait().await;
    });
    let outcome = run(&store, executor).await;
    watcher.await.unwrap();
    assert_same_events(&store, &outcome).await;
}
