//! Values that cannot be read, disks that are full, writers that wait in vain.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jig_protocol::ids::AttemptId;
use jig_protocol::lifecycle::{AttemptState, Outcome};
use jig_protocol::token::{LeaseToken, TokenDigest};
use tokio_util::sync::CancellationToken;

use super::support::{
    BASE, CountingRandom, Scripted, TestClock, Then, jsonl, markers, open, request,
};
use crate::direct::{self, DirectError};
use crate::service::{self, Admission, ClaimRequest, Registration, Target};
use crate::store::{OpenOptions, Store, StoreError, holders, leases};

async fn sql(store: &Store, statement: &'static str) {
    let done = sqlx::query(statement).execute(&store.writer).await.unwrap();
    assert!(done.rows_affected() > 0, "{statement} found nothing");
}

fn token() -> TokenDigest {
    LeaseToken::from_random([7; 32]).digest()
}

/// A store with two claimed attempts of one holder.
async fn two_claimed(data: &std::path::Path) -> (Store, Vec<AttemptId>) {
    let store = open(data).await;
    let registration = Registration {
        id: "w1".to_owned(),
        capacity: 10,
        environment_names: BTreeSet::new(),
        runtimes: BTreeSet::new(),
    };
    service::register_holder(&store, &registration)
        .await
        .unwrap();
    let mut attempts = Vec::new();
    for repository in ["a", "b"] {
        admit(&store, repository).await;
        let request = ClaimRequest {
            holder: "w1",
            request_id: repository,
            token: &token(),
        };
        let claim = service::claim_next(&store, request).await.unwrap().unwrap();
        attempts.push(claim.attempt.id);
    }
    (store, attempts)
}

async fn admit(store: &Store, repository: &str) {
    let admission = Admission {
        definition_name: "smoke".to_owned(),
        definition_source: "name: smoke\n".to_owned(),
        parameters: BTreeMap::new(),
        targets: vec![Target {
            repository: repository.to_owned(),
            base_ref: None,
            base_sha: BASE.to_owned(),
        }],
        environment_names: BTreeSet::new(),
        runtimes: BTreeSet::new(),
        reserved_for: None,
    };
    let random = CountingRandom::default();
    service::admit(store, &random, &admission, None)
        .await
        .unwrap();
}

fn assert_names(error: &(dyn std::error::Error + 'static), table: &str, column: &str) {
    let text = error.to_string();
    assert!(text.contains(&format!("{table}.{column}")), "{text}");
}

#[tokio::test]
async fn a_list_with_one_unreadable_row_is_no_list() {
    let dir = tempfile::tempdir().unwrap();
    let (store, attempts) = two_claimed(dir.path()).await;
    sql(
        &store,
        "UPDATE attempts SET runtimes = 'not json' WHERE rowid = 1",
    )
    .await;
    assert_names(
        &store.newest_attempts(10).await.unwrap_err(),
        "attempts",
        "runtimes",
    );
    assert!(store.attempt(attempts[1]).await.is_ok());

    sql(
        &store,
        "UPDATE jobs SET queued_at = 'yesterday' WHERE rowid = 1",
    )
    .await;
    let job = store.attempt(attempts[1]).await.unwrap().unwrap().job_id;
    assert!(store.job(job).await.is_ok());
    let error = leases_and_jobs(&store).await.unwrap_err();
    assert_names(&error, "jobs", "queued_at");
}

async fn leases_and_jobs(store: &Store) -> Result<(), StoreError> {
    leases::live(store.reader().await?.db()).await?;
    let rows = sqlx::query("SELECT * FROM runs ORDER BY rowid LIMIT 1")
        .fetch_all(&store.readers)
        .await
        .unwrap();
    let run = super::super::decode::all("runs", &rows, |columns| columns.word("id"))?;
    store.jobs_of(run[0]).await.map(|_| ())
}

#[tokio::test]
async fn a_sweep_that_cannot_read_every_lease_sweeps_none() {
    let dir = tempfile::tempdir().unwrap();
    let (store, attempts) = two_claimed(dir.path()).await;
    sql(
        &store,
        "UPDATE leases SET expires_at = 1, state = 'missed', first_missed_at = 2",
    )
    .await;
    sql(
        &store,
        "UPDATE leases SET first_missed_at = 'long ago' WHERE rowid = 2",
    )
    .await;
    let long = Duration::from_secs(3_600);
    assert!(service::sweep(&store, long).await.is_err());
    for attempt in &attempts {
        let state = store.attempt(*attempt).await.unwrap().unwrap().state;
        assert_eq!(state, AttemptState::Preparing);
    }
    // Readable again, both are swept: it was the fault that held it back.
    sql(&store, "UPDATE leases SET first_missed_at = 2").await;
    assert_eq!(service::sweep(&store, long).await.unwrap().len(), 2);
    let lost = store.attempt(attempts[0]).await.unwrap().unwrap();
    assert_eq!(lost.state, AttemptState::Lost);
    let job = store.job(lost.job_id).await.unwrap().unwrap();
    let run = store.run(job.run_id).await.unwrap().unwrap();
    assert_eq!(run.state.as_str(), "failed", "the sweep aggregates the run");
    assert_eq!(service::sweep(&store, long).await.unwrap(), []);
}

#[tokio::test]
async fn an_expired_lease_that_was_not_swept_is_renewed() {
    let dir = tempfile::tempdir().unwrap();
    let (store, attempts) = two_claimed(dir.path()).await;
    sql(
        &store,
        "UPDATE leases SET expires_at = 1, state = 'missed', first_missed_at = 2",
    )
    .await;
    service::renew_lease(&store, attempts[0], &token())
        .await
        .unwrap();
    let swept = service::sweep(&store, Duration::from_secs(3_600))
        .await
        .unwrap();
    assert_eq!(swept, [attempts[1]]);
}

#[tokio::test]
async fn a_claim_that_meets_an_unreadable_row_claims_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = two_claimed(dir.path()).await;
    admit(&store, "c").await;
    sql(
        &store,
        "UPDATE jobs SET base_sha = x'ff' WHERE state = 'queued'",
    )
    .await;
    let request = ClaimRequest {
        holder: "w1",
        request_id: "r",
        token: &token(),
    };
    let failed = service::claim_next(&store, request).await.unwrap_err();
    assert_names(&failed, "jobs", "base_sha");
    let mut reader = store.reader().await.unwrap();
    assert_eq!(
        holders::by_id(reader.db(), "w1")
            .await
            .unwrap()
            .unwrap()
            .leased,
        2
    );
}

#[tokio::test]
async fn the_schema_allows_one_active_attempt_per_job() {
    let dir = tempfile::tempdir().unwrap();
    let (store, attempts) = two_claimed(dir.path()).await;
    let second = "INSERT INTO attempts (id, job_id, number, state, created_at)
                  SELECT 'x', job_id, 2, 'queued', 0 FROM attempts WHERE rowid = 1";
    let refused = sqlx::query(second)
        .execute(&store.writer)
        .await
        .map_err(super::super::error::failed("add"));
    assert!(refused.unwrap_err().is_constraint());
    let end = crate::executor::Completion {
        outcome: Outcome::Failed,
        result: None,
        error: None,
        retained: None,
    };
    service::complete_attempt(&store, attempts[0], &token(), &end, &[])
        .await
        .unwrap();
    sql(&store, second).await;
}

#[test]
fn the_index_knows_the_active_states() {
    let schema = include_str!("../../../migrations/0001_initial.sql");
    let index = schema.split("one_active_attempt_per_job").nth(1).unwrap();
    let index = &index[..index.find(';').unwrap()];
    for state in AttemptState::ALL {
        let listed = index.contains(&format!("'{state}'"));
        assert_eq!(listed, state.is_active(), "{state}");
    }
}

/// Leaves no room for another page.
async fn fill(store: &Store) {
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count")
        .fetch_one(&store.writer)
        .await
        .unwrap();
    let limit = format!("PRAGMA max_page_count = {pages}");
    sqlx::query(sqlx::AssertSqlSafe(limit))
        .execute(&store.writer)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_full_disk_is_named_and_nothing_is_admitted() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    fill(&store).await;
    let mut request = request("r");
    request.definition_source = "x".repeat(500_000);
    let executor = Scripted::new(1, Then::End(Outcome::Failed));
    let random = CountingRandom::default();
    let cancel = CancellationToken::new();
    let failed = direct::run(&store, &random, request, executor, cancel)
        .await
        .unwrap_err();
    let DirectError::Admit(service::AdmitError::Store(full)) = &failed else {
        panic!("{failed}");
    };
    assert!(matches!(full, StoreError::Full { .. }), "{full}");
    assert!(full.to_string().contains("the disk is full"), "{full}");
    assert_eq!(store.newest_attempts(1).await.unwrap(), []);
    // A new connection has room again: the one that failed is not used any more.
    admit(&store, "a").await;
    assert_eq!(store.newest_attempts(2).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_cannot_be_stored_is_told_and_reclaimed_by_the_next_run() {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions::default();
    let store = Store::open(dir.path(), TestClock::faster(20), &options)
        .await
        .unwrap();
    let broken = "CREATE TRIGGER broken BEFORE UPDATE ON attempts WHEN NEW.completed_at IS NOT NULL
                  BEGIN SELECT RAISE(FAIL, 'no more ends'); END";
    sqlx::query(broken).execute(&store.writer).await.unwrap();
    let mut executor = Scripted::plain(2_000, Then::End(Outcome::AcceptedUnpublished));
    executor.deliver = false;
    let random = CountingRandom::default();
    let cancel = CancellationToken::new();
    let run = direct::run(&store, &random, request("r"), Arc::new(executor), cancel);
    let outcome = run.await.unwrap();
    let told = outcome.not_recorded.unwrap();
    assert!(
        told.contains("record an attempt's end") && told.contains("no more ends"),
        "{told}"
    );
    assert_eq!(
        outcome.state,
        AttemptState::AcceptedUnpublished,
        "what the executor said"
    );
    assert_eq!(outcome.report, Some("report"));
    assert_eq!(markers(dir.path()).len(), 1);
    sqlx::query("DROP TRIGGER broken")
        .execute(&store.writer)
        .await
        .unwrap();
    store.close().await;

    let store = open(dir.path()).await;
    let next = Scripted::new(1, Then::End(Outcome::Failed));
    let report = direct::reclaim_dead_runs(&store, &next).await;
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(report.attempts[0].state, AttemptState::Lost);
    let events = store.events(outcome.attempt_id, 0, 100_000).await.unwrap();
    assert_eq!(events, jsonl(&outcome.trace_path));
    assert_eq!(events.len(), 8_002);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_busy_for_long_neither_fails_the_run_nor_loses_an_event() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    let executor = Scripted::new(50, Then::Meet(Arc::clone(&barrier)));
    let (other, emitted) = (open(dir.path()).await, executor.emitted.clone());
    let hog = tokio::spawn(async move {
        emitted.cancelled().await;
        let tx = other.begin("hold everyone up").await.unwrap();
        // The executor ends while the database is held; longer than one busy wait.
        barrier.wait().await;
        tokio::time::sleep(Duration::from_millis(6_000)).await;
        drop(tx);
    });
    let random = CountingRandom::default();
    let cancel = CancellationToken::new();
    let run = direct::run(&store, &random, request("r"), executor, cancel);
    let outcome = run.await.unwrap();
    hog.await.unwrap();
    assert_eq!(outcome.not_recorded, None);
    let stored = store.events(outcome.attempt_id, 0, 1_000).await.unwrap();
    assert_eq!(stored, jsonl(&outcome.trace_path));
    assert_eq!(stored.len(), 202);
}

#[tokio::test]
async fn a_reader_cannot_write() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let refused = sqlx::query("DELETE FROM runs")
        .execute(&store.readers)
        .await;
    let refused = refused
        .map_err(super::super::error::failed("write"))
        .unwrap_err();
    assert!(matches!(refused, StoreError::ReadOnly { .. }), "{refused}");
}

#[tokio::test]
async fn every_connection_is_as_durable_and_strict_as_promised() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    for pool in [&store.writer, &store.readers] {
        let mode: String = sqlx::query_scalar("PRAGMA journal_mode")
            .fetch_one(pool)
            .await
            .unwrap();
        let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous")
            .fetch_one(pool)
            .await
            .unwrap();
        let busy: i64 = sqlx::query_scalar("PRAGMA busy_timeout")
            .fetch_one(pool)
            .await
            .unwrap();
        let keys: i64 = sqlx::query_scalar("PRAGMA foreign_keys")
            .fetch_one(pool)
            .await
            .unwrap();
        assert_eq!(
            (mode.as_str(), synchronous, busy, keys),
            ("wal", 2, 5_000, 1)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_events_of_a_phase_are_committed_in_at_most_three_groups() {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions::default();
    // Fast enough for every timer to come due within a phase.
    let clock = TestClock::faster(2_000);
    let store = Store::open(dir.path(), clock, &options).await.unwrap();
    let executor = Scripted::new(60, Then::End(Outcome::AcceptedUnpublished));
    let random = CountingRandom::default();
    let cancel = CancellationToken::new();
    let run = direct::run(&store, &random, request("r"), executor, cancel);
    assert_eq!(run.await.unwrap().not_recorded, None);
    let groups: Vec<i64> = sqlx::query_scalar(
        "SELECT COUNT(DISTINCT stored_at) FROM events WHERE phase IS NOT NULL GROUP BY phase",
    )
    .fetch_all(&store.readers)
    .await
    .unwrap();
    assert_eq!(groups.len(), 60);
    assert!(
        groups.iter().all(|count| (1..=3).contains(count)),
        "{groups:?}"
    );
}
