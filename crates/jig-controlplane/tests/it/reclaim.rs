//! What a direct run leaves when its process dies, and what the next one does.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use jig_controlplane::Store;
use jig_controlplane::direct::{self, ReclaimReport};
use jig_protocol::lifecycle::{AttemptState, JobState, Outcome, RunState};
use tokio_util::sync::CancellationToken;

use crate::support::{
    CountingRandom, Scripted, Then, child, jsonl, markers, open, request, told, trace,
};

/// What a child does: runs, and kills itself after the k-th event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_runs_and_dies() {
    let (Some(data), Some(after)) = (told("JIG_TEST_DATA"), told("JIG_TEST_KILL")) else {
        return;
    };
    let store = open(data.as_ref()).await;
    let executor = Scripted::new(2, Then::KillAfter(after.parse().unwrap()));
    let random = CountingRandom::default();
    let cancel = CancellationToken::new();
    direct::run(&store, &random, request("file:///r"), executor, cancel)
        .await
        .unwrap();
}

fn die_after(data: &Path, event: usize) {
    let told = [
        ("JIG_TEST_DATA", data.display().to_string()),
        ("JIG_TEST_KILL", event.to_string()),
    ];
    let output = child("reclaim::child_runs_and_dies", &told)
        .output()
        .unwrap();
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(signal, Some(9), "{said}");
}

async fn next(store: &Store, executor: &Arc<Scripted>) -> ReclaimReport {
    direct::reclaim_dead_runs(store, executor).await
}

fn executor() -> Arc<Scripted> {
    Scripted::new(1, Then::End(Outcome::AcceptedUnpublished))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_event_nothing_is_lost_and_the_next_run_works() {
    for event in 1..=trace(2).len() {
        let dir = tempfile::tempdir().unwrap();
        die_after(dir.path(), event);
        let store = open(dir.path()).await;
        let dead = store.newest_attempts(1).await.unwrap().remove(0);
        assert!(dead.state.is_active(), "event {event}: {}", dead.state);

        let executor = executor();
        let random = CountingRandom::default();
        let cancel = CancellationToken::new();
        let outcome = direct::run(&store, &random, request("r"), Arc::clone(&executor), cancel)
            .await
            .unwrap();
        assert_eq!(outcome.state, AttemptState::AcceptedUnpublished);
        assert_eq!(outcome.reclaim.problems, Vec::<String>::new());
        assert_eq!(outcome.reclaim.attempts.len(), 1);
        let reclaimed = &outcome.reclaim.attempts[0];
        assert_eq!(
            (reclaimed.attempt_id, reclaimed.state),
            (dead.id, AttemptState::Lost)
        );

        let stored = store.attempt(dead.id).await.unwrap().unwrap();
        assert_eq!(stored.state, AttemptState::Lost);
        let error = stored.error.unwrap();
        assert!(
            error.contains(&format!("runs/{}.lock", reclaimed.run_id)),
            "{error}"
        );
        let job = store.job(stored.job_id).await.unwrap().unwrap();
        assert_eq!(job.state, JobState::Failed);
        let run = store.run(job.run_id).await.unwrap().unwrap();
        assert_eq!(run.state, RunState::Failed);

        let events = store.events(dead.id, 0, 1_000).await.unwrap();
        let written = jsonl(&dir.path().join(format!("attempts/{}/trace.jsonl", dead.id)));
        assert_eq!(written.len(), event);
        assert_eq!(events, written);
        let told = executor.reclaimed.lock().unwrap().clone();
        assert_eq!(told.len(), 1);
        assert_eq!(
            (told[0].attempt_id, told[0].state),
            (dead.id, AttemptState::Lost)
        );
        let trees = store.retained_worktrees().await.unwrap();
        assert_eq!(trees.len(), 1, "the tree of the dead run is in the ledger");
        assert!(markers(dir.path()).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torn_line_is_left_out_and_a_broken_one_is_told() {
    let dir = tempfile::tempdir().unwrap();
    die_after(dir.path(), 4);
    let store = open(dir.path()).await;
    let dead = store.newest_attempts(1).await.unwrap().remove(0);
    let path = dir.path().join(format!("attempts/{}/trace.jsonl", dead.id));
    let mut file = fs::File::options().append(true).open(&path).unwrap();
    file.write_all(b"not json\n{\"seq\":5,\"type\":\"lo")
        .unwrap();
    let report = next(&store, &executor()).await;
    assert_eq!(report.problems, Vec::<String>::new());
    let stored = store.attempt(dead.id).await.unwrap().unwrap();
    assert!(stored.error.unwrap().contains("1 lines of its trace"));
    assert_eq!(store.events(dead.id, 0, 100).await.unwrap().len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_up_that_fails_is_told_and_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    die_after(dir.path(), 3);
    let store = open(dir.path()).await;
    let executor = executor();
    *executor.reclaim_fails.lock().unwrap() = Some("a supervisor does not end".to_owned());
    let report = next(&store, &executor).await;
    assert_eq!(report.problems.len(), 1);
    assert!(report.problems[0].contains("a supervisor does not end"));
    assert_eq!(report.attempts[0].state, AttemptState::Lost);
    assert_eq!(markers(dir.path()).len(), 1);

    *executor.reclaim_fails.lock().unwrap() = None;
    let report = next(&store, &executor).await;
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(report.attempts.len(), 1);
    assert!(report.attempts[0].retained.is_some());
    assert!(markers(dir.path()).is_empty());
    assert_eq!(next(&store, &executor).await, ReclaimReport::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_at_once_reclaim_a_run_once() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        die_after(dir.path(), 5);
        let executor = executor();
        let barrier = Arc::new(tokio::sync::Barrier::new(4));
        let mut reclaiming = Vec::new();
        for _ in 0..4 {
            let store = open(dir.path()).await;
            let (executor, barrier) = (Arc::clone(&executor), Arc::clone(&barrier));
            reclaiming.push(tokio::spawn(async move {
                barrier.wait().await;
                next(&store, &executor).await
            }));
        }
        let mut attempts = 0;
        for report in reclaiming {
            let report = report.await.unwrap();
            assert_eq!(report.problems, Vec::<String>::new());
            attempts += report.attempts.len();
        }
        assert_eq!(attempts, 1);
        assert_eq!(executor.reclaimed.lock().unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_marker_a_run_is_left_alone_and_named() {
    let dir = tempfile::tempdir().unwrap();
    die_after(dir.path(), 5);
    let store = open(dir.path()).await;
    let dead = store.newest_attempts(1).await.unwrap().remove(0);
    let job = store.job(dead.job_id).await.unwrap().unwrap();
    fs::remove_file(&markers(dir.path())[0]).unwrap();
    let executor = executor();
    let report = next(&store, &executor).await;
    assert_eq!(report.unmarked, [job.run_id]);
    assert_eq!(report.attempts, []);
    let stored = store.attempt(dead.id).await.unwrap().unwrap();
    assert_eq!(stored.state, dead.state);
    assert!(executor.reclaimed.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_no_markers_stay() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let foreign = dir.path().join("runs/notes.txt");
    fs::write(&foreign, "mine").unwrap();
    fs::write(dir.path().join("runs/x.lock"), "").unwrap();
    assert_eq!(next(&store, &executor()).await, ReclaimReport::default());
    assert_eq!(markers(dir.path()).len(), 2);
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "mine");
}
