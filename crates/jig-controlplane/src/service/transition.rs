//! The one place that changes a state: load, let `jig_protocol::lifecycle`
//! decide, save under a guard, apply the effects. Everything here runs inside
//! the caller's transaction.

use jig_protocol::event::RuntimeInUse;
use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::lifecycle::attempt::{self, AttemptEffect, AttemptEvent};
use jig_protocol::lifecycle::job::{self, JobEffect, JobEvent};
use jig_protocol::lifecycle::lease::{self, LeaseEffect, LeaseEvent};
use jig_protocol::lifecycle::run::{self, JobTally, RunEvent};
use jig_protocol::lifecycle::{AttemptState, IllegalTransition, JobState, LeaseState};
use jig_protocol::outcome::ResultDocument;
use jig_protocol::time::Timestamp;

use crate::random::{self, RandomSource};
use crate::store::{
    AttemptRecord, JobRecord, StoreError, WriteTx, attempts, claim_requests, jobs, leases, runs,
};

/// Why a change was not made; nothing of its transaction was kept.
#[derive(Debug, thiserror::Error)]
pub enum TransitionError {
    /// The state does not allow it.
    #[error(transparent)]
    Refused(#[from] IllegalTransition),
    /// The row was changed by someone else in between.
    #[error("the {what} {id} was changed by someone else")]
    Conflict {
        /// Which kind of row.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// There is no such row.
    #[error("there is no {what} {id}")]
    NotFound {
        /// Which kind of row.
        what: &'static str,
        /// What was looked up.
        id: String,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TransitionError {
    pub(crate) fn not_found(what: &'static str, id: impl ToString) -> Self {
        Self::NotFound {
            what,
            id: id.to_string(),
        }
    }

    fn guard(changed: bool, what: &'static str, id: impl ToString) -> Result<(), Self> {
        if changed {
            Ok(())
        } else {
            Err(Self::Conflict {
                what,
                id: id.to_string(),
            })
        }
    }
}

/// What the effects of an attempt's step need besides the event.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Details<'a> {
    /// For a claim: who claims, and the digest of the token.
    pub(crate) claimant: Option<(&'a str, &'a str)>,
    /// For a start: what it runs on.
    pub(crate) runtimes: &'a [RuntimeInUse],
    /// For an end.
    pub(crate) result: Option<&'a ResultDocument>,
    /// For an end.
    pub(crate) error: Option<&'a str>,
}

/// Steps an attempt and everything that depends on it; the state after it.
pub(crate) async fn attempt(
    tx: &mut WriteTx,
    id: AttemptId,
    event: AttemptEvent,
    details: Details<'_>,
    now: Timestamp,
) -> Result<AttemptState, TransitionError> {
    let record = load_attempt(tx, id).await?;
    let step = attempt::step(record.state, event, now)?;
    if step.next != record.state {
        let changed = attempts::advance(tx.db(), id, record.state, step.next).await?;
        TransitionError::guard(changed, "attempt", id)?;
    }
    for effect in &step.effects {
        match effect {
            AttemptEffect::OpenLease(until) => open_lease(tx, id, details, *until).await?,
            AttemptEffect::CloseLease => {
                lease(tx, id, closing_event(event), now).await?;
                claim_requests::forget(tx.db(), id).await?;
                if event == AttemptEvent::Release {
                    attempts::set_holder(tx.db(), id, None).await?;
                }
            }
            AttemptEffect::RecordStart(at) => {
                attempts::record_start(tx.db(), id, details.runtimes, *at).await?;
            }
            AttemptEffect::RecordEnd(at) => {
                attempts::record_end(tx.db(), id, details.result, details.error, *at).await?;
            }
            AttemptEffect::Job(event) => {
                step_job_of_attempt(tx, record.job_id, *event, now).await?
            }
            AttemptEffect::AnswerStored => {}
        }
    }
    Ok(step.next)
}

/// How the lease of an attempt ends with it.
const fn closing_event(event: AttemptEvent) -> LeaseEvent {
    match event {
        AttemptEvent::Lose => LeaseEvent::HolderDied,
        _ => LeaseEvent::Close,
    }
}

async fn open_lease(
    tx: &mut WriteTx,
    id: AttemptId,
    details: Details<'_>,
    until: Timestamp,
) -> Result<(), TransitionError> {
    let Some((holder, digest)) = details.claimant else {
        return Err(TransitionError::not_found("claimant of attempt", id));
    };
    attempts::set_holder(tx.db(), id, Some(holder)).await?;
    leases::open(tx.db(), id, holder, digest, until).await?;
    Ok(())
}

/// Steps a job because of its attempt. None of these events touches attempts
/// again, so this cannot recurse.
async fn step_job_of_attempt(
    tx: &mut WriteTx,
    id: JobId,
    event: JobEvent,
    now: Timestamp,
) -> Result<(), TransitionError> {
    let record = load_job(tx, id).await?;
    let step = job::step(record.state, event, now)?;
    save_job(tx, &record, step.next, now).await?;
    for effect in &step.effects {
        apply_to_row(tx, &record, *effect, now).await?;
    }
    Ok(())
}

/// Steps a job because someone asked for it; the state after it.
pub(crate) async fn job(
    tx: &mut WriteTx,
    id: JobId,
    event: JobEvent,
    random: &dyn RandomSource,
    now: Timestamp,
) -> Result<JobState, TransitionError> {
    let record = load_job(tx, id).await?;
    let step = job::step(record.state, event, now)?;
    save_job(tx, &record, step.next, now).await?;
    for effect in &step.effects {
        match effect {
            JobEffect::CancelQueuedAttempt => {
                let newest = newest_attempt(tx, id).await?;
                attempt(tx, newest.id, AttemptEvent::Cancel, Details::default(), now).await?;
            }
            JobEffect::AddAttempt => {
                let newest = newest_attempt(tx, id).await?;
                let next = random::attempt_id(random, now);
                attempts::insert(tx.db(), next, id, newest.number.saturating_add(1), now).await?;
            }
            other => apply_to_row(tx, &record, *other, now).await?,
        }
    }
    Ok(step.next)
}

/// The effects that concern the job's own row and its run.
async fn apply_to_row(
    tx: &mut WriteTx,
    job: &JobRecord,
    effect: JobEffect,
    now: Timestamp,
) -> Result<(), TransitionError> {
    match effect {
        JobEffect::AggregateRun => aggregate(tx, job.run_id, now).await?,
        JobEffect::ClearCancellation => jobs::clear_cancellation(tx.db(), job.id).await?,
        JobEffect::RequestCancellation => jobs::request_cancellation(tx.db(), job.id).await?,
        JobEffect::Enqueue(at) => jobs::enqueue(tx.db(), job.id, at).await?,
        JobEffect::CancelQueuedAttempt | JobEffect::AddAttempt => {
            return Err(TransitionError::Conflict {
                what: "job",
                id: job.id.to_string(),
            });
        }
    }
    Ok(())
}

/// Computes a run's state anew from its jobs.
pub(crate) async fn aggregate(
    tx: &mut WriteTx,
    id: RunId,
    now: Timestamp,
) -> Result<(), TransitionError> {
    let record = runs::by_id(tx.db(), id)
        .await?
        .ok_or_else(|| TransitionError::not_found("run", id))?;
    let jobs = jobs::of_run(tx.db(), id).await?;
    let tally: JobTally = jobs.iter().map(|job| job.state).collect();
    let step = run::step(record.state, RunEvent::Aggregate(tally), now)?;
    if step.next != record.state {
        let changed = runs::advance(tx.db(), id, record.state, step.next, now).await?;
        TransitionError::guard(changed, "run", id)?;
    }
    Ok(())
}

/// Steps a lease, where there is one; whether its attempt must be lost now.
pub(crate) async fn lease(
    tx: &mut WriteTx,
    id: AttemptId,
    event: LeaseEvent,
    now: Timestamp,
) -> Result<LeaseStep, TransitionError> {
    let Some(record) = leases::of_attempt(tx.db(), id).await? else {
        return Ok(LeaseStep::default());
    };
    let step = lease::step(record.state, event, now)?;
    if step.next != record.state {
        let changed = leases::advance(tx.db(), id, record.state, step.next).await?;
        TransitionError::guard(changed, "lease", id)?;
    }
    Ok(LeaseStep {
        state: Some(step.next),
        lose_attempt: step.effects.contains(&LeaseEffect::LoseAttempt),
    })
}

/// What became of a lease.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LeaseStep {
    /// Its state now; `None` when there is no lease.
    pub(crate) state: Option<LeaseState>,
    /// Its holder is gone, and the attempt with it.
    pub(crate) lose_attempt: bool,
}

pub(crate) async fn load_attempt(
    tx: &mut WriteTx,
    id: AttemptId,
) -> Result<AttemptRecord, TransitionError> {
    attempts::by_id(tx.db(), id)
        .await?
        .ok_or_else(|| TransitionError::not_found("attempt", id))
}

pub(crate) async fn load_job(tx: &mut WriteTx, id: JobId) -> Result<JobRecord, TransitionError> {
    jobs::by_id(tx.db(), id)
        .await?
        .ok_or_else(|| TransitionError::not_found("job", id))
}

async fn save_job(
    tx: &mut WriteTx,
    record: &JobRecord,
    next: JobState,
    now: Timestamp,
) -> Result<(), TransitionError> {
    if next == record.state {
        return Ok(());
    }
    let changed = jobs::advance(tx.db(), record.id, record.state, next, now).await?;
    TransitionError::guard(changed, "job", record.id)
}

pub(crate) async fn newest_attempt(
    tx: &mut WriteTx,
    job: JobId,
) -> Result<AttemptRecord, TransitionError> {
    attempts::of_job(tx.db(), job)
        .await?
        .pop()
        .ok_or_else(|| TransitionError::not_found("attempt of job", job))
}
