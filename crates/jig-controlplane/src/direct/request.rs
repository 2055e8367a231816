//! What a direct run is asked, and what it answers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use jig_protocol::definition::Name;
use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::lifecycle::AttemptState;

use super::reclaim::ReclaimReport;
use crate::executor::Completion;

/// One definition against one repository at one commit.
#[derive(Debug, Clone)]
pub struct DirectRequest {
    /// The definition's name; its generations are counted by it.
    pub definition_name: Name,
    /// The definition's text, validated by the caller; frozen as it is.
    pub definition_source: String,
    /// The parameters, `prompt` among them.
    pub parameters: BTreeMap<String, String>,
    /// The repository: the canonical absolute path of the operator's checkout
    /// as a `file://` identity, or whatever one text the caller identifies it by.
    pub repository: String,
    /// What the caller resolved to the base, where that was not a commit.
    pub base_ref: Option<String>,
    /// The base commit: 40 or 64 lower-case hex digits.
    pub base_sha: String,
    /// Names of the environment variables that the definition's roles need; the
    /// caller has checked that they are set.
    pub environment_names: BTreeSet<String>,
    /// The runtimes that the run will use.
    pub runtimes: BTreeSet<String>,
}

/// How a direct run went, once its attempt was admitted.
#[derive(Debug)]
pub struct DirectOutcome<R> {
    /// The run.
    pub run_id: RunId,
    /// Its job.
    pub job_id: JobId,
    /// Its attempt.
    pub attempt_id: AttemptId,
    /// The attempt's state as it is stored; what the completion says when it
    /// could not be stored.
    pub state: AttemptState,
    /// What the executor said; for a panic, a failure that says so.
    pub completion: Completion,
    /// The executor's own report; `None` when it panicked.
    pub report: Option<R>,
    /// The attempt's trace file.
    pub trace_path: PathBuf,
    /// Why the end could not be recorded, where it could not: an infrastructure
    /// failure. The next run on this data directory records the attempt as lost.
    pub not_recorded: Option<String>,
    /// What dead runs had left, and what became of it.
    pub reclaim: ReclaimReport,
}
