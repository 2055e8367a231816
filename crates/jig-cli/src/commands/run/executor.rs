//! Hosts attempts for the direct run: the store's words on one side, the
//! engine's on the other.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use jig_controlplane::AttemptExecutor;
use jig_controlplane::executor::{
    AttemptOrder, Completion, DeadAttempt, EventSink as StoreSink, RetainedTree,
};
use jig_engine::host::{self, HostedRun, Mode};
use jig_engine::{Engine, EventSink, SinkError};
use jig_process::{StopReason, StopSignal};
use jig_protocol::definition::RuntimeName;
use jig_protocol::event::Event;
use jig_protocol::lifecycle::Outcome;
use jig_protocol::repo_path::RepoPath;
use tokio_util::sync::CancellationToken;

use super::request::Request;
use crate::output;
use crate::progress::Progress;

/// What the CLI reports besides what the store keeps.
#[derive(Debug, Default)]
pub(crate) struct HostReport {
    pub(crate) branch: Option<String>,
    pub(crate) commit: Option<String>,
}

/// Executes the attempts of one `jig run`.
pub(crate) struct Executor {
    engine: Engine,
    mode: Mode,
    keep: bool,
    seed_auth: bool,
    runtime_override: Option<RuntimeName>,
    default_runtime: Option<RuntimeName>,
    progress: Arc<Progress>,
}

impl Executor {
    pub(crate) fn new(engine: Engine, request: &Request, progress: Arc<Progress>) -> Self {
        let (replaces_all, replaces_default) = request.runtimes();
        Self {
            engine,
            mode: request.mode,
            keep: request.keep,
            seed_auth: request.seed_auth,
            runtime_override: replaces_all.cloned(),
            default_runtime: replaces_default.cloned(),
            progress,
        }
    }

    fn hosted(&self, order: AttemptOrder, events: StoreSink, cancel: StopSignal) -> HostedRun {
        HostedRun {
            run_id: order.run_id,
            job_id: order.job_id,
            attempt_id: order.attempt_id,
            attempt_number: order.attempt_number,
            lender: path_of(&order.repository),
            base: order.base_sha,
            mode: self.mode,
            snapshot: order.snapshot.to_string(),
            parameters: order.parameters,
            cancel,
            sink: Arc::new(Both {
                store: events,
                progress: Arc::clone(&self.progress),
            }),
            seed_auth: self.seed_auth,
            runtime_override: self.runtime_override.clone(),
            default_runtime: self.default_runtime.clone(),
            keep: self.keep,
        }
    }
}

/// The path that a repository is recorded by, which is text of any path.
fn path_of(repository: &str) -> PathBuf {
    RepoPath::from_json_form(repository).map_or_else(
        || PathBuf::from(repository),
        |path| PathBuf::from(OsStr::from_bytes(path.as_bytes())),
    )
}

/// Events go to the store and to the screen.
struct Both {
    store: StoreSink,
    progress: Arc<Progress>,
}

impl EventSink for Both {
    fn emit(&self, event: &Event) -> Result<(), SinkError> {
        self.store.emit(event.clone());
        self.progress.observe(event);
        Ok(())
    }
}

impl AttemptExecutor for Executor {
    type Report = HostReport;

    async fn execute(
        &self,
        order: AttemptOrder,
        events: StoreSink,
        cancel: CancellationToken,
    ) -> (Completion, HostReport) {
        let stop = StopSignal::new();
        let run = host::run_attempt(&self.engine, self.hosted(order, events, stop.clone()));
        let mut run = std::pin::pin!(run);
        let hosted = tokio::select! {
            hosted = &mut run => hosted,
            () = cancel.cancelled() => {
                stop.raise(StopReason::Cancelled);
                run.await
            }
        };
        match hosted {
            Ok(hosted) => {
                for warning in hosted.warnings.iter().chain(&hosted.disposed.problems) {
                    self.progress
                        .print(&output::harmless(&format!("warning: {warning}")));
                }
                let accepted = hosted
                    .result
                    .acceptance
                    .as_ref()
                    .is_some_and(|judged| judged.passed);
                let completion = Completion {
                    outcome: Outcome::of_end(hosted.end, accepted),
                    result: Some(hosted.result),
                    error: hosted.error,
                    retained: hosted
                        .disposed
                        .tree_kept
                        .map(|(path, reason)| RetainedTree { path, reason }),
                };
                let report = HostReport {
                    branch: hosted.delivery.branch,
                    commit: hosted.delivery.commit,
                };
                (completion, report)
            }
            Err(error) => {
                let completion = Completion {
                    outcome: Outcome::of_end(error.end(), false),
                    result: Some(error.result()),
                    error: Some(format!("{:#}", anyhow::Error::new(error))),
                    retained: None,
                };
                (completion, HostReport::default())
            }
        }
    }

    async fn reclaim(&self, dead: DeadAttempt) -> Result<Option<RetainedTree>, String> {
        let reclaimed = host::reclaim(&dead.directory)
            .await
            .map_err(|error| format!("{:#}", anyhow::Error::new(error)))?;
        let Some(tree) = reclaimed.tree else {
            return Ok(None);
        };
        if tree.in_place {
            // The operator's own checkout is nobody's to release.
            let text = format!("note: {}: {}", tree.path.display(), tree.reason);
            self.progress.print(&output::harmless(&text));
            return Ok(None);
        }
        Ok(Some(RetainedTree {
            path: tree.path,
            reason: tree.reason,
        }))
    }
}
