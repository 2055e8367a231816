//! From admission to the recorded end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jig_protocol::event::Event;
use jig_protocol::ids::AttemptId;
use jig_protocol::lifecycle::Outcome;
use jig_protocol::text;
use jig_protocol::token::TokenDigest;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::HOLDER;
use super::event_writer::EventWriter;
use super::heartbeat::Heartbeat;
use super::marker::{self, Marker};
use super::reclaim::{ReclaimReport, clean_up, reclaim_dead_runs};
use super::request::{DirectOutcome, DirectRequest};
use super::trace_tail::{TraceError, TraceTail};
use crate::executor::{AttemptExecutor, AttemptOrder, Completion, DeadAttempt, EventSink};
use crate::random::{self, RandomSource};
use crate::service::{
    Admission, AdmitError, Claim, ClaimError, ClaimRequest, CompleteError, NewRun, Registration,
    Target, TransitionError, admit_as, cancel_job, claim_job, complete_attempt, record_events,
    register_holder,
};
use crate::store::{AttemptRecord, Store, StoreError, attempt_dir, trace_path};

/// How often the end is offered to the store, and how long between the tries.
const RECORD_TRIES: u32 = 5;
const RECORD_PAUSE: Duration = Duration::from_millis(500);

/// Why nothing was executed. No attempt is left waiting.
#[derive(Debug, thiserror::Error)]
pub enum DirectError {
    /// A cancellation came before the run was admitted.
    #[error("cancelled before anything was started")]
    Cancelled,
    /// The liveness marker could not be made.
    #[error("cannot make the run's marker {path}", path = path.display())]
    Marker {
        /// The marker.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The run was not admitted.
    #[error("the run was not admitted")]
    Admit(#[from] AdmitError),
    /// The own job could not be claimed.
    #[error("the run's job could not be claimed")]
    Claim(#[from] ClaimError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Runs one definition against one repository, and returns once its end is
/// recorded and everything started here is gone.
///
/// `cancel` asks for an orderly end: the executor unwinds, and all of it is
/// recorded. The future must be driven to its end; dropped, it leaves what a
/// killed process leaves.
///
/// # Errors
///
/// [`DirectError`] when nothing was executed. Once an attempt was admitted and
/// claimed the answer is an outcome, also when its end could not be recorded.
pub async fn run<E: AttemptExecutor>(
    store: &Store,
    random: &dyn RandomSource,
    request: DirectRequest,
    executor: Arc<E>,
    cancel: CancellationToken,
) -> Result<DirectOutcome<E::Report>, DirectError> {
    let reclaim = reclaim_dead_runs(store, &executor).await;
    if cancel.is_cancelled() {
        return Err(DirectError::Cancelled);
    }
    let run_id = random::run_id(random, store.clock().now());
    let relative = marker::relative_path(run_id);
    let path = store.data_dir().join(&relative);
    let marker = Marker::create(&path, &**store.clock())
        .await
        .map_err(|source| DirectError::Marker { path, source })?;
    let new = NewRun {
        id: run_id,
        marker: Some(relative),
    };
    // A failure leaves the marker behind, unlocked: whether a commit that failed
    // came through is only known to who looks later, and the next run does.
    let (claim, digest, token) = admit_and_claim(store, random, &request, new).await?;
    let attempt = Attempt {
        store: store.clone(),
        executor,
        token,
        order: order(store, &request, &claim, run_id, digest),
    };
    let outcome = attempt.execute_and_record(cancel, reclaim).await;
    if outcome.not_recorded.is_none()
        && let Err(error) = marker.remove()
    {
        tracing::warn!(run = %run_id, %error, "the run's marker stays behind");
    }
    Ok(outcome)
}

fn order(
    store: &Store,
    request: &DirectRequest,
    claim: &Claim,
    run_id: jig_protocol::ids::RunId,
    snapshot_digest: String,
) -> AttemptOrder {
    AttemptOrder {
        run_id,
        job_id: claim.job.id,
        attempt_id: claim.attempt.id,
        attempt_number: claim.attempt.number,
        snapshot: request.definition_source.as_str().into(),
        snapshot_digest,
        parameters: request.parameters.clone(),
        repository: claim.job.repository.clone(),
        base_sha: claim.job.base_sha.clone(),
        directory: attempt_dir(store.data_dir(), claim.attempt.id),
    }
}

async fn admit_and_claim(
    store: &Store,
    random: &dyn RandomSource,
    request: &DirectRequest,
    new: NewRun,
) -> Result<(Claim, String, TokenDigest), DirectError> {
    let registration = Registration {
        id: HOLDER.to_owned(),
        capacity: 100,
        environment_names: request.environment_names.clone(),
        runtimes: request.runtimes.clone(),
    };
    register_holder(store, &registration).await?;
    let admission = Admission {
        definition_name: request.definition_name.to_string(),
        definition_source: request.definition_source.clone(),
        parameters: request.parameters.clone(),
        targets: vec![Target {
            repository: request.repository.clone(),
            base_ref: request.base_ref.clone(),
            base_sha: request.base_sha.clone(),
        }],
        environment_names: request.environment_names.clone(),
        runtimes: request.runtimes.clone(),
        reserved_for: Some(HOLDER.to_owned()),
    };
    let request_id = new.id.to_string();
    let admitted = admit_as(store, random, &admission, None, new).await?;
    let Some((job, _)) = admitted.jobs.first().copied() else {
        return Err(AdmitError::NoTargets.into());
    };
    let token = random::lease_token(random).digest();
    let claim = ClaimRequest {
        holder: HOLDER,
        request_id: &request_id,
        token: &token,
    };
    match claim_job(store, claim, job).await {
        Ok(claim) => Ok((claim, admitted.run.snapshot_digest, token)),
        Err(error) => {
            if let Err(error) = cancel_job(store, random, job).await {
                tracing::warn!(%job, %error, "a job that was not claimed stays queued");
            }
            Err(error.into())
        }
    }
}

/// One claimed attempt on its way to its recorded end.
struct Attempt<E> {
    store: Store,
    executor: Arc<E>,
    token: TokenDigest,
    order: AttemptOrder,
}

impl<E: AttemptExecutor> Attempt<E> {
    async fn execute_and_record(
        self,
        cancel: CancellationToken,
        reclaim: ReclaimReport,
    ) -> DirectOutcome<E::Report> {
        let attempt = self.order.attempt_id;
        let cancel = cancel.child_token();
        let (sink, events) = EventSink::channel();
        let (writing, beating) = (CancellationToken::new(), CancellationToken::new());
        let writer = tokio::spawn(
            EventWriter {
                store: self.store.clone(),
                attempt,
                token: self.token.clone(),
                events,
                stop: writing.clone(),
            }
            .run(),
        );
        let heartbeat = tokio::spawn(
            Heartbeat {
                store: self.store.clone(),
                attempt,
                token: self.token.clone(),
                cancel: cancel.clone(),
                stop: beating.clone(),
            }
            .run(),
        );
        let (completion, report) = self.execute(sink, cancel).await;
        writing.cancel();
        let rest = joined(writer, "event writer").await.unwrap_or_default();
        let recorded = self.record(&completion, rest).await;
        beating.cancel();
        joined(heartbeat, "heartbeat").await;
        let (state, not_recorded) = match recorded {
            Ok(stored) => (stored.state, None),
            Err(error) => (
                completion.outcome.attempt_state(),
                Some(text::with_causes(&error)),
            ),
        };
        DirectOutcome {
            run_id: self.order.run_id,
            job_id: self.order.job_id,
            attempt_id: attempt,
            state,
            completion,
            report,
            trace_path: trace_path(self.store.data_dir(), attempt),
            not_recorded,
            reclaim,
        }
    }

    /// A panic becomes a failed attempt, cleaned up like one whose process died.
    async fn execute(
        &self,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> (Completion, Option<E::Report>) {
        let (executor, order) = (Arc::clone(&self.executor), self.order.clone());
        let executing = tokio::spawn(async move { executor.execute(order, sink, cancel).await });
        let error = match executing.await {
            Ok((completion, report)) => return (completion, Some(report)),
            Err(error) => error,
        };
        let state = Outcome::Failed.attempt_state();
        let dead = DeadAttempt {
            run_id: self.order.run_id,
            job_id: self.order.job_id,
            attempt_id: self.order.attempt_id,
            attempt_number: self.order.attempt_number,
            state,
            repository: self.order.repository.clone(),
            directory: self.order.directory.clone(),
        };
        let mut text = format!("executing the attempt ended in a panic: {error}");
        let retained = match clean_up(&self.executor, dead).await {
            Ok(retained) => retained,
            Err(problem) => {
                text.push_str(&format!("; cleaning up failed: {problem}"));
                None
            }
        };
        let completion = Completion {
            outcome: Outcome::Failed,
            result: None,
            error: Some(text),
            retained,
        };
        (completion, None)
    }

    /// Records the end together with what the store lacks of the trace. Tried a
    /// few times: other processes and full disks come and go.
    async fn record(
        &self,
        completion: &Completion,
        rest: Vec<Event>,
    ) -> Result<AttemptRecord, CompleteError> {
        let attempt = self.order.attempt_id;
        let mut completion = completion.clone();
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_record(&completion, &rest).await {
                Err(CompleteError::ResultTooLarge { bytes }) => {
                    // The verdict matters more than its document.
                    let note = format!("its result document of {bytes} bytes was not kept");
                    completion.result = None;
                    completion.error = Some(match completion.error.take() {
                        Some(error) => format!("{error}; {note}"),
                        None => note,
                    });
                }
                Err(CompleteError::Transition(TransitionError::Store(error)))
                    if tries < RECORD_TRIES =>
                {
                    tracing::warn!(%attempt, error = text::with_causes(&error), "recording the end again");
                    let clock = self.store.clock();
                    let next = clock.monotonic().saturating_add(RECORD_PAUSE);
                    clock.sleep_until(next).await;
                }
                recorded => return recorded,
            }
        }
    }

    async fn try_record(
        &self,
        completion: &Completion,
        rest: &[Event],
    ) -> Result<AttemptRecord, CompleteError> {
        let attempt = self.order.attempt_id;
        let tail = self.tail(attempt, rest).await?;
        complete_attempt(&self.store, attempt, &self.token, completion, &tail).await
    }

    /// What the trace has beyond the store, all but the last batch stored
    /// already. Without a trace file: what was handed in and not stored.
    async fn tail(
        &self,
        attempt: AttemptId,
        rest: &[Event],
    ) -> Result<Vec<Event>, TransitionError> {
        let mut trace = match TraceTail::open(&self.store, attempt).await {
            Ok(trace) => trace,
            Err(TraceError::Store(error)) => return Err(error.into()),
            Err(TraceError::Io(error)) => {
                tracing::warn!(%attempt, %error, "the trace file cannot be read");
                return Ok(rest.to_vec());
            }
        };
        loop {
            match trace.next_batch() {
                Ok((batch, true)) => {
                    record_events(&self.store, attempt, &self.token, &batch).await?;
                }
                Ok((batch, false)) => return Ok(batch),
                Err(error) => {
                    tracing::warn!(%attempt, %error, "the trace file cannot be read");
                    return Ok(rest.to_vec());
                }
            }
        }
    }
}

/// Waits for a background task; a panic in it is logged.
async fn joined<T>(task: JoinHandle<T>, name: &'static str) -> Option<T> {
    match task.await {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::error!(%error, "the {name} ended in a panic");
            None
        }
    }
}
