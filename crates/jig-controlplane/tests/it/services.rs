//! Operations on the store, one by one and against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jig_controlplane::Store;
use jig_controlplane::executor::{Completion, RetainedTree};
use jig_controlplane::service::{
    self, Admission, AdmitError, Claim, ClaimError, ClaimRequest, Registration, Target,
    TransitionError, WorktreeError,
};
use jig_controlplane::store::{AttemptLookup, WorktreeState};
use jig_protocol::ids::JobId;
use jig_protocol::lifecycle::{AttemptState, JobState, Outcome, Refusal, RunState};
use jig_protocol::limits::Retention;
use jig_protocol::token::{LeaseToken, TokenDigest};
use tokio::sync::Barrier;

use crate::support::{BASE, CountingRandom, open, trace};

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn admission(repositories: &[&str]) -> Admission {
    Admission {
        definition_name: "smoke".to_owned(),
        definition_source: "name: smoke\n".to_owned(),
        parameters: BTreeMap::new(),
        targets: repositories
            .iter()
            .map(|repository| Target {
                repository: (*repository).to_owned(),
                base_ref: None,
                base_sha: BASE.to_owned(),
            })
            .collect(),
        environment_names: BTreeSet::new(),
        runtimes: BTreeSet::new(),
        reserved_for: None,
    }
}

struct Fixture {
    _dir: tempfile::TempDir,
    store: Store,
    random: CountingRandom,
}

impl Fixture {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        let fixture = Self {
            _dir: dir,
            store,
            random: CountingRandom::default(),
        };
        fixture
            .register("w1", 100, &["API_KEY"], &["claude-code"])
            .await;
        fixture
    }

    async fn register(&self, id: &str, capacity: u32, environment: &[&str], runtimes: &[&str]) {
        let registration = Registration {
            id: id.to_owned(),
            capacity,
            environment_names: names(environment),
            runtimes: names(runtimes),
        };
        service::register_holder(&self.store, &registration)
            .await
            .unwrap();
    }

    async fn admit(&self, admission: &Admission) -> Vec<JobId> {
        let admitted = service::admit(&self.store, &self.random, admission, None)
            .await
            .unwrap();
        admitted.jobs.iter().map(|(job, _)| *job).collect()
    }

    async fn claim(&self, holder: &str, request: &str) -> Result<Option<Claim>, ClaimError> {
        let token = token(request);
        let request = ClaimRequest {
            holder,
            request_id: request,
            token: &token,
        };
        service::claim_next(&self.store, request).await
    }

    async fn claimed(&self, request: &str) -> Claim {
        self.claim("w1", request).await.unwrap().unwrap()
    }

    async fn complete(
        &self,
        claim: &Claim,
        request: &str,
        outcome: Outcome,
    ) -> Result<AttemptState, TransitionError> {
        let completion = completion(outcome);
        let tail = trace(1);
        let done = service::complete_attempt(
            &self.store,
            claim.attempt.id,
            &token(request),
            &completion,
            &tail,
        )
        .await;
        match done {
            Ok(attempt) => Ok(attempt.state),
            Err(service::CompleteError::Transition(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    }

    async fn job_state(&self, job: JobId) -> JobState {
        self.store.job(job).await.unwrap().unwrap().state
    }
}

fn token(seed: &str) -> TokenDigest {
    format!("{seed:0>40}")
        .parse::<LeaseToken>()
        .unwrap()
        .digest()
}

fn completion(outcome: Outcome) -> Completion {
    Completion {
        outcome,
        result: None,
        error: None,
        retained: None,
    }
}

fn refusal(error: TransitionError) -> Refusal {
    match error {
        TransitionError::Refused(refused) => refused.refusal,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn the_same_key_gives_the_same_run_and_another_request_is_refused() {
    let fixture = Fixture::new().await;
    let (store, random) = (&fixture.store, &fixture.random);
    let first = service::admit(store, random, &admission(&["a", "b"]), Some("k"))
        .await
        .unwrap();
    let again = service::admit(store, random, &admission(&["a", "b"]), Some("k"))
        .await
        .unwrap();
    assert_eq!(first.run.id, again.run.id);
    assert_eq!(first.jobs.len(), 2);
    assert_eq!(
        BTreeSet::from_iter(first.jobs.iter().copied()),
        BTreeSet::from_iter(again.jobs.iter().copied())
    );
    let other = service::admit(store, random, &admission(&["c"]), Some("k")).await;
    assert!(matches!(other, Err(AdmitError::KeyReused(key)) if key == "k"));
    let free = service::admit(store, random, &admission(&["c"]), None)
        .await
        .unwrap();
    assert_ne!(free.run.id, first.run.id);
}

#[tokio::test]
async fn an_admission_is_whole_or_not_at_all() {
    let fixture = Fixture::new().await;
    let (store, random) = (&fixture.store, &fixture.random);
    let none = service::admit(store, random, &admission(&[]), None).await;
    assert!(matches!(none, Err(AdmitError::NoTargets)));
    let twice = service::admit(store, random, &admission(&["a", "b", "a"]), None).await;
    assert!(matches!(twice, Err(AdmitError::DuplicateTarget(name)) if name == "a"));
    assert_eq!(store.newest_attempts(5).await.unwrap(), []);
}

#[tokio::test]
async fn a_claim_takes_the_oldest_job_the_holder_can_do() {
    let fixture = Fixture::new().await;
    let mut picky = admission(&["picky"]);
    picky.runtimes = names(&["codex"]);
    let codex = fixture.admit(&picky).await[0];
    let mut needy = admission(&["needy"]);
    needy.environment_names = names(&["OTHER_KEY"]);
    let other = fixture.admit(&needy).await[0];
    let mut fits = admission(&["fits"]);
    fits.environment_names = names(&["API_KEY"]);
    fits.runtimes = names(&["claude-code"]);
    let fits = fixture.admit(&fits).await[0];

    assert_eq!(fixture.claimed("r1").await.job.id, fits);
    assert_eq!(fixture.claim("w1", "r2").await.unwrap(), None);
    fixture.register("w2", 1, &["OTHER_KEY"], &["codex"]).await;
    let first = fixture.claim("w2", "r3").await.unwrap().unwrap();
    assert_eq!(first.job.id, codex);
    assert_eq!(fixture.claim("w2", "r4").await.unwrap(), None, "w2 is full");
    let (proof, end) = (token("r3"), completion(Outcome::Failed));
    service::complete_attempt(&fixture.store, first.attempt.id, &proof, &end, &[])
        .await
        .unwrap();
    assert_eq!(
        fixture.claim("w2", "r5").await.unwrap().unwrap().job.id,
        other
    );
    let unknown = fixture.claim("nobody", "r6").await;
    assert!(
        matches!(unknown, Err(ClaimError::UnknownHolder(_))),
        "{unknown:?}"
    );
}

#[tokio::test]
async fn a_repeated_claim_gets_the_same_answer_until_it_is_over() {
    let fixture = Fixture::new().await;
    fixture.admit(&admission(&["a", "b"])).await;
    let first = fixture.claimed("r1").await;
    assert_eq!(fixture.claimed("r1").await, first);
    let stolen = token("other");
    let request = ClaimRequest {
        holder: "w1",
        request_id: "r1",
        token: &stolen,
    };
    let stolen = service::claim_next(&fixture.store, request).await;
    assert!(matches!(stolen, Err(ClaimError::RequestConflict(_))));
    fixture
        .complete(&first, "r1", Outcome::Failed)
        .await
        .unwrap();
    // The request is forgotten with its attempt: a repeat is a new claim.
    assert_ne!(fixture.claimed("r1").await.job.id, first.job.id);
}

#[tokio::test]
async fn a_job_that_is_reserved_is_claimed_by_nobody_else() {
    let fixture = Fixture::new().await;
    let mut reserved = admission(&["a"]);
    reserved.reserved_for = Some("w2".to_owned());
    let job = fixture.admit(&reserved).await[0];
    assert_eq!(fixture.claim("w1", "r1").await.unwrap(), None);
    let token = token("r2");
    let request = ClaimRequest {
        holder: "w1",
        request_id: "r2",
        token: &token,
    };
    let refused = service::claim_job(&fixture.store, request, job)
        .await
        .unwrap_err();
    let ClaimError::Transition(refused) = refused else {
        panic!("{refused}")
    };
    assert_eq!(refusal(refused), Refusal::ClaimConflict);
    assert_eq!(fixture.job_state(job).await, JobState::Queued);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_claims_of_one_job_exactly_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let random = CountingRandom::default();
    let fixture = Fixture {
        _dir: dir,
        store,
        random,
    };
    fixture.register("w1", 100, &[], &[]).await;
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(open(fixture.store.data_dir()).await);
    }
    for round in 0..20 {
        let job = fixture.admit(&admission(&["a"])).await[0];
        let barrier = Arc::new(Barrier::new(stores.len()));
        let mut claiming = Vec::new();
        for (index, store) in stores.iter().cloned().enumerate() {
            let barrier = Arc::clone(&barrier);
            claiming.push(tokio::spawn(async move {
                let name = format!("{round}-{index}");
                let token = token(&name);
                let request = ClaimRequest {
                    holder: "w1",
                    request_id: &name,
                    token: &token,
                };
                barrier.wait().await;
                service::claim_job(&store, request, job).await
            }));
        }
        let mut won = 0;
        for claim in claiming {
            match claim.await.unwrap() {
                Ok(claim) => {
                    assert_eq!(claim.attempt.state, AttemptState::Preparing);
                    won += 1;
                }
                Err(ClaimError::Transition(error)) => {
                    assert_eq!(refusal(error), Refusal::ClaimConflict);
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(won, 1, "round {round}");
        assert_eq!(fixture.store.attempts_of(job).await.unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_retries_exactly_one_adds_an_attempt() {
    let fixture = Fixture::new().await;
    let job = fixture.admit(&admission(&["a"])).await[0];
    for round in 2..6 {
        let request = format!("r{round}");
        let claim = fixture.claimed(&request).await;
        fixture
            .complete(&claim, &request, Outcome::Failed)
            .await
            .unwrap();
        let mut retrying = Vec::new();
        for _ in 0..4 {
            let store = open(fixture.store.data_dir()).await;
            retrying.push(tokio::spawn(async move {
                service::retry_job(&store, &CountingRandom::default(), job).await
            }));
        }
        let mut won = 0;
        for retry in retrying {
            match retry.await.unwrap() {
                Ok(_) => won += 1,
                Err(error) => assert_eq!(refusal(error), Refusal::RetryNotAllowed),
            }
        }
        assert_eq!(won, 1);
        let attempts = fixture.store.attempts_of(job).await.unwrap();
        assert_eq!(attempts.len(), round);
        assert_eq!(attempts.last().unwrap().state, AttemptState::Queued);
    }
}

#[tokio::test]
async fn a_retry_goes_to_the_back_of_the_queue_and_opens_the_run_again() {
    let fixture = Fixture::new().await;
    let first = fixture.admit(&admission(&["a"])).await[0];
    let claim = fixture.claimed("r1").await;
    fixture
        .complete(&claim, "r1", Outcome::Failed)
        .await
        .unwrap();
    let run = claim.job.run_id;
    assert_eq!(
        fixture.store.run(run).await.unwrap().unwrap().state,
        RunState::Failed
    );
    let second = fixture.admit(&admission(&["b"])).await[0];
    service::retry_job(&fixture.store, &fixture.random, first)
        .await
        .unwrap();
    assert_eq!(
        fixture.store.run(run).await.unwrap().unwrap().state,
        RunState::Active
    );
    assert_eq!(fixture.claimed("r2").await.job.id, second);
    let again = fixture.claimed("r3").await;
    assert_eq!((again.job.id, again.attempt.number), (first, 2));
    assert_eq!(again.job.base_sha, BASE);
}

#[tokio::test]
async fn only_the_token_speaks_for_an_attempt() {
    let fixture = Fixture::new().await;
    fixture.admit(&admission(&["a"])).await;
    let claim = fixture.claimed("r1").await;
    let (store, id, foreign) = (&fixture.store, claim.attempt.id, token("foreign"));
    let renewed = service::renew_lease(store, id, &foreign).await.unwrap_err();
    assert_eq!(refusal(renewed), Refusal::LeaseNotOwner);
    let stored = service::record_events(store, id, &foreign, &trace(1))
        .await
        .unwrap_err();
    assert_eq!(refusal(stored), Refusal::LeaseNotOwner);
    let done = fixture
        .complete(&claim, "foreign", Outcome::Failed)
        .await
        .unwrap_err();
    assert_eq!(refusal(done), Refusal::LeaseNotOwner);
    let attempt = store.attempt(id).await.unwrap().unwrap();
    assert_eq!(attempt.state, AttemptState::Preparing);
    assert_eq!(store.events(id, 0, 10).await.unwrap(), []);
}

#[tokio::test]
async fn the_first_completion_stands_and_late_evidence_is_taken() {
    let fixture = Fixture::new().await;
    let job = fixture.admit(&admission(&["a"])).await[0];
    let claim = fixture.claimed("r1").await;
    let state = fixture
        .complete(&claim, "r1", Outcome::AcceptedUnpublished)
        .await
        .unwrap();
    assert_eq!(state, AttemptState::AcceptedUnpublished);
    let again = fixture
        .complete(&claim, "r1", Outcome::Failed)
        .await
        .unwrap();
    assert_eq!(again, AttemptState::AcceptedUnpublished);
    assert_eq!(fixture.job_state(job).await, JobState::AcceptedUnpublished);
    let late = trace(2);
    let recorded = service::record_events(&fixture.store, claim.attempt.id, &token("r1"), &late)
        .await
        .unwrap();
    assert_eq!(recorded.highest_seq, late.len() as u64);
    assert_eq!(
        recorded.new, 4,
        "the first six were stored with the completion"
    );
    let renewed = service::renew_lease(&fixture.store, claim.attempt.id, &token("r1")).await;
    assert_eq!(refusal(renewed.unwrap_err()), Refusal::AttemptTransitioned);
}

#[tokio::test]
async fn accepted_needs_proof() {
    let fixture = Fixture::new().await;
    fixture.admit(&admission(&["a"])).await;
    let claim = fixture.claimed("r1").await;
    let refused = fixture
        .complete(&claim, "r1", Outcome::Accepted)
        .await
        .unwrap_err();
    assert_eq!(refusal(refused), Refusal::PublishProofRequired);
    let attempt = fixture
        .store
        .attempt(claim.attempt.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        attempt.state,
        AttemptState::Preparing,
        "the whole report was refused"
    );
}

#[tokio::test]
async fn an_event_is_stored_once_and_stays_as_it_was() {
    let fixture = Fixture::new().await;
    fixture.admit(&admission(&["a"])).await;
    let claim = fixture.claimed("r1").await;
    let (store, id) = (&fixture.store, claim.attempt.id);
    let events = trace(1);
    service::record_events(store, id, &token("r1"), &events)
        .await
        .unwrap();
    let mut changed = events.clone();
    changed[2].name = Some("forged".to_owned());
    let again = service::record_events(store, id, &token("r1"), &changed)
        .await
        .unwrap();
    assert_eq!(again.new, 0);
    assert_eq!(store.events(id, 0, 100).await.unwrap(), events);
    assert_eq!(store.events(id, 3, 2).await.unwrap(), events[3..5]);
    assert_eq!(store.gates(id).await.unwrap().len(), 2);
    let attempt = store.attempt(id).await.unwrap().unwrap();
    assert_eq!(attempt.state, AttemptState::Running);
}

#[tokio::test]
async fn a_cancelled_waiting_job_ends_at_once_an_active_one_when_its_holder_says_so() {
    let fixture = Fixture::new().await;
    let (store, random) = (&fixture.store, &fixture.random);
    let jobs = fixture.admit(&admission(&["a", "b"])).await;
    let claim = fixture.claimed("r1").await;
    let waiting = *jobs.iter().find(|job| **job != claim.job.id).unwrap();
    let cancelled = service::cancel_job(store, random, waiting).await.unwrap();
    assert_eq!(cancelled.state, JobState::Cancelled);
    let attempts = store.attempts_of(waiting).await.unwrap();
    assert_eq!(attempts[0].state, AttemptState::Cancelled);

    service::cancel_job(store, random, claim.job.id)
        .await
        .unwrap();
    assert_eq!(fixture.job_state(claim.job.id).await, JobState::Active);
    let renewal = service::renew_lease(store, claim.attempt.id, &token("r1"))
        .await
        .unwrap();
    assert!(renewal.cancellation_requested);
    let refused = fixture
        .complete(&claim, "r1", Outcome::Accepted)
        .await
        .unwrap_err();
    assert_eq!(refusal(refused), Refusal::CancelledByOperator);
    fixture
        .complete(&claim, "r1", Outcome::Cancelled)
        .await
        .unwrap();
    let run = store.run(claim.job.run_id).await.unwrap().unwrap();
    assert_eq!(run.state, RunState::Cancelled);
}

#[tokio::test]
async fn only_unpublished_work_can_be_discarded() {
    let fixture = Fixture::new().await;
    let job = fixture.admit(&admission(&["a"])).await[0];
    let early = service::discard_job(&fixture.store, &fixture.random, job)
        .await
        .unwrap_err();
    assert_eq!(refusal(early), Refusal::DiscardNotAllowed);
    let claim = fixture.claimed("r1").await;
    fixture
        .complete(&claim, "r1", Outcome::AcceptedUnpublished)
        .await
        .unwrap();
    let job = service::discard_job(&fixture.store, &fixture.random, job)
        .await
        .unwrap();
    assert_eq!(job.state, JobState::Cancelled);
}

#[tokio::test]
async fn a_live_lease_is_not_swept() {
    let fixture = Fixture::new().await;
    fixture.admit(&admission(&["a"])).await;
    let claim = fixture.claimed("r1").await;
    let lost = service::sweep(&fixture.store, Duration::from_secs(1_000))
        .await
        .unwrap();
    assert_eq!(lost, []);
    let attempt = fixture
        .store
        .attempt(claim.attempt.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(attempt.state, AttemptState::Preparing);
}

#[tokio::test]
async fn a_kept_tree_is_released_once_and_never_comes_back() {
    let fixture = Fixture::new().await;
    fixture.admit(&admission(&["a"])).await;
    let claim = fixture.claimed("r1").await;
    let (store, id) = (&fixture.store, claim.attempt.id);
    let unknown = service::release_worktree(store, id).await;
    assert!(matches!(unknown, Err(WorktreeError::NotFound(named)) if named == id));
    let tree = RetainedTree {
        path: "/data/tree".into(),
        reason: "ä".repeat(900),
    };
    let completion = Completion {
        retained: Some(tree),
        ..completion(Outcome::Failed)
    };
    service::complete_attempt(store, id, &token("r1"), &completion, &[])
        .await
        .unwrap();
    let kept = store.retained_worktrees().await.unwrap();
    assert_eq!((kept.len(), kept[0].reason.len()), (1, 1_000));
    assert_eq!(kept[0].repository, "a");

    let plan = service::plan_prune(
        store,
        Retention {
            attempts: 0,
            age: Duration::ZERO,
        },
    )
    .await;
    assert_eq!(plan.unwrap().attempts, [], "kept work is never pruned");
    for _ in 0..2 {
        let released = service::release_worktree(store, id).await.unwrap();
        assert_eq!(released.state, WorktreeState::Released);
    }
    assert_eq!(store.retained_worktrees().await.unwrap(), []);
    let missing = service::worktree_missing(store, id).await;
    assert!(matches!(missing, Err(WorktreeError::NotRetained(_))));
}

#[tokio::test]
async fn retention_removes_the_oldest_finished_attempts_and_nothing_else() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let mut finished = Vec::new();
    for number in 0..3 {
        fixture.admit(&admission(&["a"])).await;
        let request = format!("r{number}");
        let claim = fixture.claimed(&request).await;
        fixture
            .complete(&claim, &request, Outcome::Failed)
            .await
            .unwrap();
        finished.push(claim);
    }
    let open_job = fixture.admit(&admission(&["a"])).await[0];
    let keep_one = Retention {
        attempts: 1,
        age: Duration::from_secs(3_600),
    };
    let plan = service::plan_prune(store, keep_one).await.unwrap();
    assert_eq!(
        plan.attempts,
        [finished[1].attempt.id, finished[0].attempt.id]
    );
    // One changes after the plan was made: it is tried again.
    service::retry_job(store, &fixture.random, finished[1].job.id)
        .await
        .unwrap();
    let removed = service::apply_prune(store, &plan).await.unwrap();
    assert_eq!(removed, [finished[0].attempt.id]);
    assert_eq!(store.attempt(finished[0].attempt.id).await.unwrap(), None);
    assert_eq!(store.run(finished[0].job.run_id).await.unwrap(), None);
    assert_eq!(
        store.events(finished[0].attempt.id, 0, 10).await.unwrap(),
        []
    );
    assert!(
        store
            .attempt(finished[1].attempt.id)
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(
        store
            .events(finished[2].attempt.id, 0, 10)
            .await
            .unwrap()
            .len(),
        6
    );
    assert_eq!(fixture.job_state(open_job).await, JobState::Queued);
}

#[tokio::test]
async fn an_attempt_is_found_by_its_name_its_start_or_as_the_latest() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    assert_eq!(
        store.find_attempt("latest").await.unwrap(),
        AttemptLookup::Unknown
    );
    let jobs = fixture.admit(&admission(&["a", "b"])).await;
    let first = store.attempts_of(jobs[0]).await.unwrap().remove(0);
    let whole = first.id.to_string();
    let found = AttemptLookup::Found(Box::new(first));
    assert_eq!(store.find_attempt(&whole).await.unwrap(), found);
    assert_eq!(
        store.find_attempt(&whole[..8]).await.unwrap(),
        AttemptLookup::Ambiguous
    );
    for unknown in [
        "",
        "0",
        &whole[..7],
        "%%%%%%%%%",
        "zzzzzzzzzz",
        &"0".repeat(36),
    ] {
        let found = store.find_attempt(unknown).await.unwrap();
        assert_eq!(found, AttemptLookup::Unknown, "{unknown:?}");
    }
    assert!(matches!(
        store.find_attempt("latest").await.unwrap(),
        AttemptLookup::Found(_)
    ));
}
