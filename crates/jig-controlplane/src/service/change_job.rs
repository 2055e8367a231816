//! What an operator may ask of a job: cancel, retry, discard.

use jig_protocol::ids::JobId;
use jig_protocol::lifecycle::job::JobEvent;

use super::transition::{self, TransitionError};
use crate::random::RandomSource;
use crate::store::{JobRecord, Store};

/// Cancels a waiting job at once; for an active one its holder is told with its
/// next renewal. A job that has ended stays as it is.
///
/// # Errors
///
/// [`TransitionError`].
pub async fn cancel_job(
    store: &Store,
    random: &dyn RandomSource,
    job: JobId,
) -> Result<JobRecord, TransitionError> {
    change(store, random, job, JobEvent::Cancel, "cancel a job").await
}

/// Queues another attempt, cold, at the pinned base commit.
///
/// # Errors
///
/// [`TransitionError`]; `retry_not_allowed` unless the job failed or was cancelled.
pub async fn retry_job(
    store: &Store,
    random: &dyn RandomSource,
    job: JobId,
) -> Result<JobRecord, TransitionError> {
    change(store, random, job, JobEvent::Retry, "retry a job").await
}

/// Gives up an accepted result that waits unpublished.
///
/// # Errors
///
/// [`TransitionError`]; `discard_not_allowed` in any other state.
pub async fn discard_job(
    store: &Store,
    random: &dyn RandomSource,
    job: JobId,
) -> Result<JobRecord, TransitionError> {
    change(store, random, job, JobEvent::Discard, "discard a job").await
}

async fn change(
    store: &Store,
    random: &dyn RandomSource,
    job: JobId,
    event: JobEvent,
    act: &'static str,
) -> Result<JobRecord, TransitionError> {
    let now = store.clock().now();
    let mut tx = store.begin(act).await?;
    transition::job(&mut tx, job, event, random, now).await?;
    let stored = transition::load_job(&mut tx, job).await?;
    tx.commit().await?;
    Ok(stored)
}
