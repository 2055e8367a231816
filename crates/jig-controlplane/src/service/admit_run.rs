//! Admission: freezes what is to run, and queues one job per repository.

use std::collections::{BTreeMap, BTreeSet};

use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::lifecycle::{JobState, RunState};
use jig_protocol::time::Timestamp;
use serde::Serialize;

use crate::random::{self, RandomSource};
use crate::store::runs::RequestKey;
use crate::store::{
    JobRecord, RunRecord, Store, StoreError, WriteTx, attempts, definitions, jobs, runs,
};

/// What to run, where. Everything is frozen as it stands here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Admission {
    /// The definition's name.
    pub definition_name: String,
    /// Its text, validated by the caller.
    pub definition_source: String,
    /// The parameters.
    pub parameters: BTreeMap<String, String>,
    /// One job each; at least one, no repository twice.
    pub targets: Vec<Target>,
    /// Environment names that a holder must offer.
    pub environment_names: BTreeSet<String>,
    /// Runtimes that a holder must offer.
    pub runtimes: BTreeSet<String>,
    /// The only holder that may claim the jobs.
    pub reserved_for: Option<String>,
}

/// A repository at its pinned base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// The repository's identity.
    pub repository: String,
    /// What was resolved to the base, where that was not a commit.
    pub base_ref: Option<String>,
    /// 40 or 64 lower-case hex digits.
    pub base_sha: String,
}

/// A run that was admitted, now or by an earlier request with the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The run.
    pub run: RunRecord,
    /// Its jobs in the order of the targets, each with its first attempt.
    pub jobs: Vec<(JobId, AttemptId)>,
}

/// Why a run was not admitted; nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum AdmitError {
    /// No repository was named.
    #[error("a run needs a repository")]
    NoTargets,
    /// A repository was named twice.
    #[error("the repository {0:?} is named twice")]
    DuplicateTarget(String),
    /// A base is no full commit id.
    #[error("{0:?} is no commit id of 40 or 64 lower-case hex digits")]
    InvalidBase(String),
    /// The key was used for another request.
    #[error("the idempotency key {0:?} was used for a different run")]
    KeyReused(String),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Admits a run. The same `key` with the same admission gives the same run.
///
/// # Errors
///
/// [`AdmitError`]; nothing was stored then.
pub async fn admit(
    store: &Store,
    random: &dyn RandomSource,
    admission: &Admission,
    key: Option<&str>,
) -> Result<Admitted, AdmitError> {
    let now = store.clock().now();
    let new = NewRun {
        id: random::run_id(random, now),
        marker: None,
    };
    admit_as(store, random, admission, key, new).await
}

/// The parts of a run that only a direct run chooses itself.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub(crate) id: RunId,
    pub(crate) marker: Option<String>,
}

pub(crate) async fn admit_as(
    store: &Store,
    random: &dyn RandomSource,
    admission: &Admission,
    key: Option<&str>,
    new: NewRun,
) -> Result<Admitted, AdmitError> {
    check_targets(&admission.targets)?;
    let request = key.map(|key| RequestKey {
        key: key.to_owned(),
        digest: digest(&crate::store::encode(admission)),
    });
    let now = store.clock().now();
    let mut tx = store.begin("admit a run").await?;
    if let Some(request) = &request
        && let Some((run, stood_for)) = runs::by_request(tx.db(), &request.key).await?
    {
        if stood_for != request.digest {
            return Err(AdmitError::KeyReused(request.key.clone()));
        }
        let jobs = admitted_jobs(&mut tx, run.id).await?;
        return Ok(Admitted { run, jobs });
    }
    let (definition_id, generation, digest) =
        keep_definition(&mut tx, random, admission, now).await?;
    let run = RunRecord {
        id: new.id,
        definition_id,
        definition_generation: generation,
        snapshot_digest: digest,
        parameters: admission.parameters.clone(),
        state: RunState::Active,
        marker: new.marker,
        created_at: now,
        updated_at: now,
    };
    runs::insert(tx.db(), &run, request.as_ref()).await?;
    let mut jobs = Vec::new();
    for target in &admission.targets {
        jobs.push(queue_job(&mut tx, random, admission, target, run.id, now).await?);
    }
    tx.commit().await?;
    Ok(Admitted { run, jobs })
}

fn check_targets(targets: &[Target]) -> Result<(), AdmitError> {
    if targets.is_empty() {
        return Err(AdmitError::NoTargets);
    }
    let mut seen = BTreeSet::new();
    for target in targets {
        if !seen.insert(&target.repository) {
            return Err(AdmitError::DuplicateTarget(target.repository.clone()));
        }
        if !is_commit_id(&target.base_sha) {
            return Err(AdmitError::InvalidBase(target.base_sha.clone()));
        }
    }
    Ok(())
}

/// Whether it is a full commit id: 40 or 64 lower-case hex digits.
pub(super) fn is_commit_id(text: &str) -> bool {
    let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    matches!(text.len(), 40 | 64) && text.bytes().all(hex)
}

/// Stores the text and its generation, where they are new. A definition keeps
/// its generation as long as its text stays the same.
async fn keep_definition(
    tx: &mut WriteTx,
    random: &dyn RandomSource,
    admission: &Admission,
    now: Timestamp,
) -> Result<(String, u32, String), StoreError> {
    let name = &admission.definition_name;
    let digest = digest(&admission.definition_source);
    definitions::keep_text(tx.db(), &digest, &admission.definition_source).await?;
    let Some(known) = definitions::by_name(tx.db(), name).await? else {
        let id = random::run_id(random, now).to_string();
        definitions::insert(tx.db(), &id, name, now).await?;
        definitions::insert_generation(tx.db(), &id, 1, &digest, now).await?;
        return Ok((id, 1, digest));
    };
    if known.digest == digest {
        return Ok((known.id, known.generation, digest));
    }
    let next = known.generation.saturating_add(1);
    if !definitions::advance(tx.db(), &known.id, known.generation, now).await? {
        return Err(StoreError::Missing {
            table: "definitions",
            key: known.id,
        });
    }
    definitions::insert_generation(tx.db(), &known.id, next, &digest, now).await?;
    Ok((known.id, next, digest))
}

async fn queue_job(
    tx: &mut WriteTx,
    random: &dyn RandomSource,
    admission: &Admission,
    target: &Target,
    run_id: RunId,
    now: Timestamp,
) -> Result<(JobId, AttemptId), StoreError> {
    let id = random::job_id(random, now);
    let job = JobRecord {
        id,
        run_id,
        repository: target.repository.clone(),
        base_ref: target.base_ref.clone(),
        base_sha: target.base_sha.clone(),
        state: JobState::Queued,
        cancellation_requested: false,
        cancellation_delivered_at: None,
        reserved_for: admission.reserved_for.clone(),
        queued_at: now,
        created_at: now,
        updated_at: now,
    };
    jobs::insert(tx.db(), &job).await?;
    for name in &admission.environment_names {
        jobs::require(tx.db(), id, "env", name).await?;
    }
    for name in &admission.runtimes {
        jobs::require(tx.db(), id, "runtime", name).await?;
    }
    let attempt = random::attempt_id(random, now);
    attempts::insert(tx.db(), attempt, id, 1, now).await?;
    Ok((id, attempt))
}

async fn admitted_jobs(
    tx: &mut WriteTx,
    run: RunId,
) -> Result<Vec<(JobId, AttemptId)>, StoreError> {
    let mut found = Vec::new();
    for job in jobs::of_run(tx.db(), run).await? {
        let first = attempts::of_job(tx.db(), job.id).await?.into_iter().next();
        let first = first.ok_or_else(|| StoreError::Missing {
            table: "attempts",
            key: job.id.to_string(),
        })?;
        found.push((job.id, first.id));
    }
    Ok(found)
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
