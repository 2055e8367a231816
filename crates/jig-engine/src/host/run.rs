//! One attempt from an empty place on disk to its delivered result: prepare,
//! run (which delivers what is accepted), dispose.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use jig_process::{Deadline, StopSignal};
use jig_protocol::definition::{self, RuntimeName};
use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::outcome::{AttemptEnd, Cause, ResultDocument};
use jig_protocol::text;

use super::deliver::Delivery;
use super::dispose::{DisposePolicy, Disposed, dispose};
use super::layout::AttemptDirs;
use super::prepare::{HostConfig, Mode, PrepareError, PrepareSpec, prepare};
use crate::attempt::{AttemptInput, AttemptOutcome, Engine};
use crate::finish::never_began;
use crate::trace::EventSink;

/// What to run, and where.
pub struct HostedRun {
    /// The run.
    pub run_id: RunId,
    /// Its job.
    pub job_id: JobId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Which attempt at the job, from 1.
    pub attempt_number: u32,
    /// A path in the operator's repository.
    pub lender: PathBuf,
    /// The pinned base, in hex; the empty tree for a repository without a
    /// commit.
    pub base: String,
    /// Where to work.
    pub mode: Mode,
    /// The frozen definition, as text.
    pub snapshot: String,
    /// Values for the prompts' placeholders, `prompt` among them.
    pub parameters: BTreeMap<String, String>,
    /// Raised to cancel the attempt.
    pub cancel: StopSignal,
    /// Where events go besides the attempt's own file.
    pub sink: Arc<dyn EventSink>,
    /// Whether agents are given a copy of the operator's login.
    pub seed_auth: bool,
    /// Replaces the runtime of every role.
    pub runtime_override: Option<RuntimeName>,
    /// Replaces the definition's default runtime.
    pub default_runtime: Option<RuntimeName>,
    /// Keep the tree, whatever becomes of the work.
    pub keep: bool,
}

/// An attempt that was run, delivered as far as it was to be, and cleaned up.
#[derive(Debug)]
pub struct HostedOutcome {
    /// How the engine ended.
    pub end: AttemptEnd,
    /// The attempt's state.
    pub state: AttemptState,
    /// Why, for machines; `None` when it was accepted and is not held.
    pub cause: Option<Cause>,
    /// Why it was not accepted, for people; free of secrets, bounded.
    pub error: Option<String>,
    /// The whole result, with what became of it.
    pub result: ResultDocument,
    /// The branch and commit, where there are any.
    pub delivery: Delivery,
    /// What stays on disk, and what could not be cleaned up.
    pub disposed: Disposed,
    /// What a person should know: of the preparation and of the trace.
    pub warnings: Vec<String>,
    /// Where the attempt's files are.
    pub dirs: AttemptDirs,
}

/// Why an attempt was not run. Nothing of it is left but the trace that says so.
#[derive(Debug, thiserror::Error)]
pub enum HostedError {
    /// The frozen definition does not parse.
    #[error("the definition does not parse: {0}")]
    Snapshot(String),
    /// The attempt could not be prepared.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// It was cancelled before it was prepared.
    #[error("cancelled while it was being prepared")]
    Cancelled,
}

/// Runs one attempt to its end. Cancelling goes through
/// [`HostedRun::cancel`]; the future is not to be dropped.
///
/// # Errors
/// When the attempt could not even be prepared. Every other end is an outcome.
pub async fn run_attempt(engine: &Engine, run: HostedRun) -> Result<HostedOutcome, HostedError> {
    let (attempt, sink) = (run.attempt_id, Arc::clone(&run.sink));
    let hosted = prepare_and_run(engine, run).await;
    if let Err(error) = &hosted {
        tell_of(engine, attempt, &sink, error).await;
    }
    hosted
}

impl HostedError {
    /// The cause for machines.
    #[must_use]
    pub const fn cause(&self) -> Cause {
        match self {
            Self::Snapshot(_)
            | Self::Prepare(
                PrepareError::Prompt(_)
                | PrepareError::Dirty { .. }
                | PrepareError::Occupied { .. }
                | PrepareError::Moved { .. },
            ) => Cause::Configuration,
            Self::Prepare(_) => Cause::Infrastructure,
            Self::Cancelled => Cause::Cancelled,
        }
    }

    /// How the attempt ended.
    #[must_use]
    pub const fn end(&self) -> AttemptEnd {
        match self {
            Self::Cancelled => AttemptEnd::Cancelled,
            Self::Snapshot(_) | Self::Prepare(_) => AttemptEnd::Infrastructure,
        }
    }

    /// The result document of such an attempt.
    #[must_use]
    pub fn result(&self) -> ResultDocument {
        ResultDocument::never_began(self.end(), self.cause())
    }
}

/// Every attempt's trace ends with one `attempt_end`, also of one that never
/// began, as long as its directory can be written.
async fn tell_of(
    engine: &Engine,
    attempt: AttemptId,
    sink: &Arc<dyn EventSink>,
    error: &HostedError,
) {
    let config = &engine.config().host;
    let dirs = AttemptDirs::of(&config.data_dir, attempt);
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dirs.root);
    let problem = match made {
        Ok(()) => {
            never_began(
                &dirs.trace(),
                config,
                sink,
                (error.end(), error.cause()),
                &text::with_causes(error),
            )
            .await
        }
        Err(error) => Some(error.to_string()),
    };
    if let Some(problem) = problem {
        tracing::warn!(%attempt, problem, "the trace of an attempt that never began is incomplete");
    }
}

async fn prepare_and_run(engine: &Engine, run: HostedRun) -> Result<HostedOutcome, HostedError> {
    let parsed = definition::parse(&run.snapshot);
    let Some(definition) = parsed.definition else {
        let first = parsed.diagnostics.into_iter().next();
        let why = first.map_or_else(String::new, |problem| problem.message);
        return Err(HostedError::Snapshot(why));
    };
    let config = &engine.config().host;
    let spec = PrepareSpec {
        run_id: run.run_id,
        job_id: run.job_id,
        attempt_id: run.attempt_id,
        attempt_number: run.attempt_number,
        lender: &run.lender,
        base: &run.base,
        mode: run.mode,
        definition: &definition,
    };
    let cancelled = Deadline::new(Arc::clone(&config.clock)).and_signal(&run.cancel);
    let config = HostConfig {
        git: config.git.until(&cancelled),
        ..config.clone()
    };
    let prepared = match prepare(&config, &spec).await {
        Err(_) if run.cancel.raised().is_some() => return Err(HostedError::Cancelled),
        prepared => prepared?,
    };
    let warnings = prepared.warnings.clone();
    let keep = run.keep;
    let outcome = engine.run(input(run, prepared)).await;
    Ok(finish(outcome, keep, warnings).await)
}

fn input(run: HostedRun, prepared: super::PreparedAttempt) -> AttemptInput {
    AttemptInput {
        run_id: run.run_id,
        job_id: run.job_id,
        attempt_id: run.attempt_id,
        attempt_number: run.attempt_number,
        snapshot: run.snapshot,
        parameters: run.parameters,
        prepared,
        cancel: run.cancel,
        sink: run.sink,
        seed_auth: run.seed_auth,
        runtime_override: run.runtime_override,
        default_runtime: run.default_runtime,
    }
}

/// Cleans up what nobody keeps.
async fn finish(
    mut outcome: AttemptOutcome,
    keep: bool,
    mut warnings: Vec<String>,
) -> HostedOutcome {
    // A supervisor is forgotten only when nothing it ran is left.
    let may_run = !outcome
        .prepared
        .manifest
        .current()
        .process_groups
        .is_empty();
    let changed = match &mut outcome.boundary {
        Some(boundary) => boundary.may_hold_work().await,
        // Nothing is run in a tree that was never captured.
        None => false,
    };
    let policy = DisposePolicy {
        accepted: outcome.state == AttemptState::AcceptedUnpublished,
        changed,
        keep,
        unsafe_to_touch: may_run,
    };
    let disposed = dispose(&outcome.prepared, &outcome.redactor, policy).await;
    warnings.extend(outcome.trace_problem);
    HostedOutcome {
        end: outcome.end,
        state: outcome.state,
        cause: outcome.cause,
        error: outcome.error,
        result: outcome.result,
        delivery: outcome.delivery,
        disposed,
        warnings,
        dirs: outcome.prepared.dirs,
    }
}
