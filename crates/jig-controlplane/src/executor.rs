//! What executes an attempt, as far as this crate needs to know.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use jig_protocol::event::Event;
use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::lifecycle::{AttemptState, Outcome};
use jig_protocol::outcome::ResultDocument;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Executes attempts: makes the work tree, runs the engine, delivers, disposes.
///
/// Implemented by whoever composes the parts. The executor owns the attempt's
/// directory and its trace file; this crate reads the trace file but writes
/// nothing there.
pub trait AttemptExecutor: Send + Sync + 'static {
    /// What the executor tells its own caller about an attempt besides the
    /// [`Completion`]; handed through untouched.
    type Report: Send + 'static;

    /// Runs the attempt to its end and never returns before everything it
    /// started is gone.
    ///
    /// Every event goes to the trace file first and to `events` then, the last
    /// one (`attempt_end`) included. When `cancel` fires it unwinds and reports
    /// [`Outcome::Cancelled`]; the future itself is never dropped by the caller.
    /// A panic is caught and recorded as a failed attempt.
    fn execute(
        &self,
        order: AttemptOrder,
        events: EventSink,
        cancel: CancellationToken,
    ) -> impl Future<Output = (Completion, Self::Report)> + Send;

    /// Cleans up after an attempt whose process died: stops what it left
    /// running (by verified identity), removes what must not stay, keeps the
    /// work tree. May be called again for the same attempt.
    ///
    /// # Errors
    ///
    /// A text that says what could not be done; the attempt is then offered
    /// again to the next run.
    fn reclaim(
        &self,
        dead: DeadAttempt,
    ) -> impl Future<Output = Result<Option<RetainedTree>, String>> + Send;
}

/// What is to be done, frozen at admission.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptOrder {
    /// The run.
    pub run_id: RunId,
    /// The job.
    pub job_id: JobId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Which attempt at the job, from 1.
    pub attempt_number: u32,
    /// The definition's text as it was admitted.
    pub snapshot: Arc<str>,
    /// The BLAKE3 digest of that text, in hex.
    pub snapshot_digest: String,
    /// The parameters, `prompt` among them.
    pub parameters: BTreeMap<String, String>,
    /// The repository, as it was admitted.
    pub repository: String,
    /// The pinned base commit.
    pub base_sha: String,
    /// `<data>/attempts/<attempt>`; the executor makes it.
    pub directory: PathBuf,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// The verdict.
    pub outcome: Outcome,
    /// The result document; absent when the engine could not make one.
    pub result: Option<ResultDocument>,
    /// Why it was not accepted.
    pub error: Option<String>,
    /// The work tree, when it was kept.
    pub retained: Option<RetainedTree>,
}

/// A work tree that stays on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainedTree {
    /// Where it is.
    pub path: PathBuf,
    /// Why it was kept, for people; cut at 1,000 bytes.
    pub reason: String,
}

/// An attempt that outlived its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadAttempt {
    /// Its run.
    pub run_id: RunId,
    /// Its job.
    pub job_id: JobId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Its number.
    pub attempt_number: u32,
    /// What is recorded now: `lost`, or the end that was recorded just before
    /// the process died.
    pub state: AttemptState,
    /// The repository it worked on.
    pub repository: String,
    /// Its directory, which may not exist.
    pub directory: PathBuf,
}

/// Takes events for the store. Never blocks and never fails: what the store
/// could not take in time is read from the trace file later.
#[derive(Debug, Clone)]
pub struct EventSink {
    sender: mpsc::UnboundedSender<Event>,
}

impl EventSink {
    /// A sink and the end where its events come out.
    #[must_use]
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<Event>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { sender }, receiver)
    }

    /// Hands an event on, after it was written to the trace file.
    pub fn emit(&self, event: Event) {
        // The other end is gone only once the attempt is being recorded, and
        // then the trace file is read anyway.
        let _receiver_gone = self.sender.send(event);
    }
}
