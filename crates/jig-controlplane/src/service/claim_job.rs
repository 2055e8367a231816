//! Claims: a holder takes a queued attempt and gets a lease on it.

use std::time::Duration;

use jig_protocol::ids::JobId;
use jig_protocol::lifecycle::attempt::AttemptEvent;
use jig_protocol::lifecycle::lease;
use jig_protocol::lifecycle::{AttemptState, Refusal};
use jig_protocol::time::Timestamp;
use jig_protocol::token::TokenDigest;

use super::transition::{self, Details, TransitionError};
use crate::store::holders::HolderRecord;
use crate::store::{
    AttemptRecord, JobRecord, Store, WriteTx, claim_requests, holders, jobs, leases,
};

/// A holder that was not heard from for this long gets no work.
const LIVENESS: Duration = Duration::from_secs(30);
/// A holder that keeps this many work trees of a repository gets no more of it.
const RETAINED_CAP: u32 = 10;

/// Who claims, and how a repeat of the same claim is recognised.
#[derive(Debug, Clone, Copy)]
pub struct ClaimRequest<'a> {
    /// The holder.
    pub holder: &'a str,
    /// Made by the holder; repeated together with the token until it is answered.
    pub request_id: &'a str,
    /// The digest of the token that will prove the lease.
    pub token: &'a TokenDigest,
}

/// What was claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The attempt, `preparing`.
    pub attempt: AttemptRecord,
    /// Its job.
    pub job: JobRecord,
}

/// Why a claim was not answered.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The request id was used with another token.
    #[error("the claim request {0:?} was made with another token")]
    RequestConflict(String),
    /// What the request took is no longer the holder's.
    #[error("what the claim request {0:?} took is no longer leased to it")]
    LeaseNotOwner(String),
    /// Another holder, or nobody yet, has registered under this name.
    #[error("no holder {0:?} is registered")]
    UnknownHolder(String),
    /// The change was refused.
    #[error(transparent)]
    Transition(#[from] TransitionError),
}

impl From<crate::store::StoreError> for ClaimError {
    fn from(error: crate::store::StoreError) -> Self {
        Self::Transition(error.into())
    }
}

/// Takes the job with that id, whatever else waits.
///
/// # Errors
///
/// [`ClaimError`]; `claim_conflict` when someone else has it.
pub async fn claim_job(
    store: &Store,
    request: ClaimRequest<'_>,
    job: JobId,
) -> Result<Claim, ClaimError> {
    let now = store.clock().now();
    let mut tx = store.begin("claim a job").await?;
    if let Some(claim) = repeated(&mut tx, request).await? {
        return Ok(claim);
    }
    let job = transition::load_job(&mut tx, job).await?;
    let claim = take(&mut tx, request, &job, now).await?;
    tx.commit().await?;
    Ok(claim)
}

/// Takes the oldest queued job that the holder may and can execute; `None` when
/// there is none, or when the holder is full or was not heard from.
///
/// The write lock is taken only when there is a candidate.
///
/// # Errors
///
/// [`ClaimError`].
pub async fn claim_next(
    store: &Store,
    request: ClaimRequest<'_>,
) -> Result<Option<Claim>, ClaimError> {
    let now = store.clock().now();
    let unknown = || ClaimError::UnknownHolder(request.holder.to_owned());
    {
        let mut reader = store.reader().await?;
        let known = claim_requests::find(reader.db(), request.holder, request.request_id).await?;
        let holder = holders::by_id(reader.db(), request.holder).await?;
        let holder = holder.ok_or_else(unknown)?;
        let candidate = jobs::next_for(reader.db(), request.holder, RETAINED_CAP).await?;
        let hopeless = candidate.is_none() || !may_take(&holder, now);
        if known.is_none() && hopeless {
            return Ok(None);
        }
    }
    let mut tx = store.begin("claim the next job").await?;
    if let Some(claim) = repeated(&mut tx, request).await? {
        return Ok(Some(claim));
    }
    let holder = holders::by_id(tx.db(), request.holder).await?;
    if !may_take(&holder.ok_or_else(unknown)?, now) {
        return Ok(None);
    }
    let Some(job) = jobs::next_for(tx.db(), request.holder, RETAINED_CAP).await? else {
        return Ok(None);
    };
    let claim = take(&mut tx, request, &job, now).await?;
    tx.commit().await?;
    Ok(Some(claim))
}

fn may_take(holder: &HolderRecord, now: Timestamp) -> bool {
    holder.leased < holder.capacity && now.saturating_since(holder.last_heard_at) <= LIVENESS
}

/// The answer to a request that was answered before.
async fn repeated(
    tx: &mut WriteTx,
    request: ClaimRequest<'_>,
) -> Result<Option<Claim>, ClaimError> {
    let found = claim_requests::find(tx.db(), request.holder, request.request_id).await?;
    let Some((attempt, digest)) = found else {
        return Ok(None);
    };
    if digest != request.token.as_str() {
        return Err(ClaimError::RequestConflict(request.request_id.to_owned()));
    }
    let gone = || ClaimError::LeaseNotOwner(request.request_id.to_owned());
    let attempt = transition::load_attempt(tx, attempt).await?;
    let lease = leases::of_attempt(tx.db(), attempt.id)
        .await?
        .ok_or_else(gone)?;
    if !attempt.state.is_leased() || lease.token_digest != digest {
        return Err(gone());
    }
    let job = transition::load_job(tx, attempt.job_id).await?;
    Ok(Some(Claim { attempt, job }))
}

async fn take(
    tx: &mut WriteTx,
    request: ClaimRequest<'_>,
    job: &JobRecord,
    now: Timestamp,
) -> Result<Claim, ClaimError> {
    let reserved_for_other = job
        .reserved_for
        .as_deref()
        .is_some_and(|holder| holder != request.holder);
    let newest = transition::newest_attempt(tx, job.id).await?;
    if reserved_for_other || newest.state != AttemptState::Queued {
        return Err(conflict(newest.state));
    }
    let event = AttemptEvent::Claim {
        until: now.saturating_add(lease::LENGTH),
    };
    let details = Details {
        claimant: Some((request.holder, request.token.as_str())),
        ..Details::default()
    };
    transition::attempt(tx, newest.id, event, details, now).await?;
    claim_requests::insert(
        tx.db(),
        request.holder,
        request.request_id,
        request.token.as_str(),
        newest.id,
        now,
    )
    .await?;
    Ok(Claim {
        attempt: transition::load_attempt(tx, newest.id).await?,
        job: transition::load_job(tx, job.id).await?,
    })
}

fn conflict(state: AttemptState) -> ClaimError {
    let refused = jig_protocol::lifecycle::IllegalTransition {
        machine: "attempt",
        from: state.as_str(),
        event: "claim",
        refusal: Refusal::ClaimConflict,
    };
    ClaimError::Transition(refused.into())
}
