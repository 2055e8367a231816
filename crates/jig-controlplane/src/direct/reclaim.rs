//! Putting in order what dead direct runs have left.

use std::io;
use std::path::Path;
use std::sync::Arc;

use jig_protocol::event::Event;
use jig_protocol::ids::{AttemptId, RunId};
use jig_protocol::lifecycle::{AttemptState, RunState};
use jig_protocol::text;

use super::HOLDER;
use super::marker::{self, Marker};
use super::trace_tail::{TraceError, TraceTail};
use crate::executor::{AttemptExecutor, DeadAttempt, RetainedTree};
use crate::service::{TransitionError, lose_attempt, record_events_unowned, retain_worktree};
use crate::store::{
    AttemptRecord, RunRecord, Store, StoreError, attempt_dir, attempts, jobs, runs,
};

/// What dead runs had left, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReclaimReport {
    /// Attempts of dead runs, oldest first.
    pub attempts: Vec<Reclaimed>,
    /// Runs that are recorded as active but whose marker is gone, so that
    /// nothing tells whether they live. They are left alone.
    pub unmarked: Vec<RunId>,
    /// What could not be done; the next run tries again.
    pub problems: Vec<String>,
}

/// One attempt of a dead run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reclaimed {
    /// Its run.
    pub run_id: RunId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// What is recorded about it now: `lost`, or the end that had been recorded
    /// just before its process died.
    pub state: AttemptState,
    /// Its work tree, which was kept.
    pub retained: Option<RetainedTree>,
}

#[derive(Debug, thiserror::Error)]
enum ReclaimError {
    #[error(transparent)]
    Transition(#[from] TransitionError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("cannot use the marker")]
    Marker(#[from] io::Error),
    #[error("{0}")]
    Executor(String),
}

/// Finds every direct run whose process died, imports what its trace has beyond
/// the store, records its attempts as lost, and lets the executor clean up.
/// A failure concerns one run only and is reported, never fatal.
pub async fn reclaim_dead_runs<E: AttemptExecutor>(
    store: &Store,
    executor: &Arc<E>,
) -> ReclaimReport {
    let mut report = ReclaimReport::default();
    let markers = match marker::all(&store.data_dir().join("runs")) {
        Ok(markers) => markers,
        Err(error) => {
            report
                .problems
                .push(format!("cannot list the markers of runs: {error}"));
            return report;
        }
    };
    for (run, path) in markers {
        if let Err(error) = reclaim_run(store, executor, run, &path, &mut report.attempts).await {
            report
                .problems
                .push(format!("run {run}: {}", text::with_causes(&error)));
        }
    }
    match unmarked(store).await {
        Ok(runs) => report.unmarked = runs,
        Err(error) => report.problems.push(text::with_causes(&error)),
    }
    report
}

async fn reclaim_run<E: AttemptExecutor>(
    store: &Store,
    executor: &Arc<E>,
    run: RunId,
    path: &Path,
    found: &mut Vec<Reclaimed>,
) -> Result<(), ReclaimError> {
    let Some(marker) = Marker::adopt(path)? else {
        return Ok(());
    };
    let attempts = {
        let mut reader = store.reader().await?;
        attempts::of_run(reader.db(), run).await?
    };
    for attempt in attempts {
        let recorded = record_as_lost(store, &attempt, &marker).await?;
        let repository = {
            let mut reader = store.reader().await?;
            let job = jobs::by_id(reader.db(), attempt.job_id).await?;
            job.ok_or_else(|| TransitionError::not_found("job", attempt.job_id))?
                .repository
        };
        let dead = DeadAttempt {
            run_id: run,
            job_id: attempt.job_id,
            attempt_id: attempt.id,
            attempt_number: attempt.number,
            state: recorded.state,
            repository: repository.clone(),
            directory: attempt_dir(store.data_dir(), attempt.id),
        };
        let retained = clean_up(executor, dead)
            .await
            .map_err(ReclaimError::Executor);
        let kept = retained.as_ref().ok().cloned().flatten();
        if let Some(tree) = &kept {
            keep_in_ledger(store, attempt.id, &repository, tree).await?;
        }
        found.push(Reclaimed {
            run_id: run,
            attempt_id: attempt.id,
            state: recorded.state,
            retained: kept,
        });
        retained?;
    }
    // A run that died between its marker and its admission has left nothing else.
    marker.remove()?;
    Ok(())
}

/// Imports the rest of the trace and records the attempt as lost, unless its
/// end was recorded.
async fn record_as_lost(
    store: &Store,
    attempt: &AttemptRecord,
    marker: &Marker,
) -> Result<AttemptRecord, ReclaimError> {
    let (tail, unreadable) = import(store, attempt.id).await?;
    let mut error = format!(
        "the run died: nobody holds its marker {}",
        marker.path().display()
    );
    if unreadable > 0 {
        error.push_str(&format!(
            "; {unreadable} lines of its trace could not be read"
        ));
    }
    let now = store.clock().now();
    Ok(lose_attempt(store, attempt.id, &error, &tail, now).await?)
}

/// Stores all but the last batch; the last, and how many lines held no event.
async fn import(store: &Store, attempt: AttemptId) -> Result<(Vec<Event>, u64), ReclaimError> {
    let mut trace = match TraceTail::open(store, attempt).await {
        Ok(trace) => trace,
        // It died before it wrote anything.
        Err(TraceError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((Vec::new(), 0));
        }
        Err(error) => return Err(error.into()),
    };
    loop {
        let (batch, more) = trace.next_batch().map_err(TraceError::from)?;
        if !more {
            return Ok((batch, trace.unreadable()));
        }
        record_events_unowned(store, attempt, &batch).await?;
    }
}

/// Lets the executor clean up; a panic of it is a problem like any other.
pub(super) async fn clean_up<E: AttemptExecutor>(
    executor: &Arc<E>,
    dead: DeadAttempt,
) -> Result<Option<RetainedTree>, String> {
    let executor = Arc::clone(executor);
    let cleaning = tokio::spawn(async move { executor.reclaim(dead).await });
    match cleaning.await {
        Ok(result) => result,
        Err(error) => Err(format!("cleaning up ended in a panic: {error}")),
    }
}

async fn keep_in_ledger(
    store: &Store,
    attempt: AttemptId,
    repository: &str,
    tree: &RetainedTree,
) -> Result<(), ReclaimError> {
    let now = store.clock().now();
    let mut tx = store.begin("record a kept work tree").await?;
    retain_worktree(&mut tx, attempt, HOLDER, repository, tree, now).await?;
    tx.commit().await?;
    Ok(())
}

/// Active runs that should have a marker and have none, looked at twice: a run
/// may have ended in between.
async fn unmarked(store: &Store) -> Result<Vec<RunId>, StoreError> {
    let has_none = |run: &RunRecord| {
        let marker = run.marker.as_ref();
        marker.is_some_and(|marker| !store.data_dir().join(marker).exists())
    };
    let mut found = Vec::new();
    let mut reader = store.reader().await?;
    for run in runs::active(reader.db()).await? {
        if !has_none(&run) {
            continue;
        }
        let again = runs::by_id(reader.db(), run.id).await?;
        if again.is_some_and(|run| run.state == RunState::Active) {
            found.push(run.id);
        }
    }
    Ok(found)
}
