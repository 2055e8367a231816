//! Completion: a holder reports the end of its attempt. The first report stands.

use jig_protocol::event::Event;
use jig_protocol::ids::AttemptId;
use jig_protocol::lifecycle::attempt::{AttemptEvent, CompletionFacts};
use jig_protocol::limits::{ATTEMPT_ERROR_BYTES, RESULT_BYTES};
use jig_protocol::outcome::ResultDocument;
use jig_protocol::text;
use jig_protocol::time::Timestamp;
use jig_protocol::token::TokenDigest;

use super::record_events;
use super::renew_lease::check_owner;
use super::transition::{self, Details, TransitionError};
use super::worktrees;
use crate::executor::Completion;
use crate::store::{AttemptRecord, EnvelopeRecord, Store, StoreError, WriteTx, envelopes};

/// Why an end was not recorded; nothing of it was.
#[derive(Debug, thiserror::Error)]
pub enum CompleteError {
    /// The result document is larger than its bound.
    #[error("the result document has {bytes} bytes; at most {RESULT_BYTES} are kept")]
    ResultTooLarge {
        /// Its size as JSON.
        bytes: usize,
    },
    /// The change was refused, or the database failed.
    #[error(transparent)]
    Transition(#[from] TransitionError),
}

impl From<StoreError> for CompleteError {
    fn from(error: StoreError) -> Self {
        Self::Transition(error.into())
    }
}

/// Records the end of an attempt together with the events the store lacks, in
/// one transaction: result, gate and envelope rows, the lease's end, the job,
/// the run, and the work tree where it was kept. The attempt as it is stored
/// afterwards; for a repeated report that is what was stored first.
///
/// # Errors
///
/// [`CompleteError`].
pub async fn complete_attempt(
    store: &Store,
    attempt: AttemptId,
    token: &TokenDigest,
    completion: &Completion,
    tail: &[Event],
) -> Result<AttemptRecord, CompleteError> {
    if let Some(result) = &completion.result {
        let bytes = crate::store::encode(result).len();
        if bytes > RESULT_BYTES {
            return Err(CompleteError::ResultTooLarge { bytes });
        }
    }
    let now = store.clock().now();
    let mut tx = store.begin("record an attempt's end").await?;
    let holder = check_owner(&mut tx, attempt, token).await?;
    record_events::record(&mut tx, attempt, tail, now).await?;
    let before = transition::load_attempt(&mut tx, attempt).await?;
    let job = transition::load_job(&mut tx, before.job_id).await?;
    let facts = CompletionFacts {
        // Nothing is published by this version, so nothing is ever proven.
        proven: false,
        cancellation_delivered: job.cancellation_delivered_at.is_some(),
        publishing_begun: false,
    };
    let event = AttemptEvent::Complete(completion.outcome, facts);
    let error = completion
        .error
        .as_deref()
        .map(|error| text::head(error, ATTEMPT_ERROR_BYTES));
    let details = Details {
        result: completion.result.as_ref(),
        error,
        ..Details::default()
    };
    transition::attempt(&mut tx, attempt, event, details, now).await?;
    if !before.state.is_terminal() {
        if let Some(result) = &completion.result {
            keep_envelopes(&mut tx, attempt, result).await?;
        }
        if let Some(tree) = &completion.retained {
            worktrees::retain(&mut tx, attempt, &holder, &job.repository, tree, now).await?;
        }
    }
    let stored = transition::load_attempt(&mut tx, attempt).await?;
    tx.commit().await?;
    Ok(stored)
}

/// Keeps the accepted envelopes of a result, one per entry of a phase.
async fn keep_envelopes(
    tx: &mut WriteTx,
    attempt: AttemptId,
    result: &ResultDocument,
) -> Result<(), StoreError> {
    for phase in &result.phases {
        let Some(envelope) = &phase.envelope else {
            continue;
        };
        let record = EnvelopeRecord {
            phase: phase.phase.clone(),
            emission: u64::from(phase.phase_attempt.unwrap_or(1).max(1)),
            valid: true,
            body: envelope.to_string(),
            parse_error: None,
            recorded_at: phase.ended_at,
        };
        envelopes::insert(tx.db(), attempt, &record).await?;
    }
    Ok(())
}

/// Records an attempt whose holder is proven dead as lost, together with the
/// events the store lacks; one that had ended keeps its end.
pub(crate) async fn lose_attempt(
    store: &Store,
    attempt: AttemptId,
    error: &str,
    tail: &[Event],
    now: Timestamp,
) -> Result<AttemptRecord, TransitionError> {
    let mut tx = store.begin("record a lost attempt").await?;
    record_events::record(&mut tx, attempt, tail, now).await?;
    let before = transition::load_attempt(&mut tx, attempt).await?;
    if !before.state.is_terminal() {
        let details = Details {
            error: Some(error),
            ..Details::default()
        };
        transition::attempt(&mut tx, attempt, AttemptEvent::Lose, details, now).await?;
    }
    let stored = transition::load_attempt(&mut tx, attempt).await?;
    tx.commit().await?;
    Ok(stored)
}
