//! One shell command of the operator's: a code phase's, or a gate's.
//!
//! It runs below a supervisor, its whole output goes redacted into files of the
//! attempt's `logs/`, and nothing that it started is left when this returns.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jig_process::capture::StreamFilter;
use jig_process::command::{CommandError, Keep, KeepFile};
use jig_process::{
    CommandEnd, CommandOutcome, CommandSpec, Deadline, Environment, Host, LiveSupervisors, Spec,
    run_command,
};
use jig_protocol::limits;

use crate::redact::{RedactingFilter, Redactor};

/// What every command of an attempt shares.
#[derive(Clone)]
pub struct CommandContext<'a> {
    /// The executable with the supervisor's hidden mode.
    pub host: &'a Host,
    /// Where commands run: the root of the work tree.
    pub work_tree: &'a Path,
    /// Where output is kept.
    pub logs: &'a Path,
    /// The secrets that must not be kept.
    pub redactor: &'a Arc<Redactor>,
    /// Who records supervisors while they live.
    pub live: Option<Arc<dyn LiveSupervisors>>,
}

impl std::fmt::Debug for CommandContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandContext")
            .field("work_tree", &self.work_tree)
            .field("logs", &self.logs)
            .finish_non_exhaustive()
    }
}

impl CommandContext<'_> {
    /// Runs `line` by `/bin/sh -c` until its end or the deadline. Its output
    /// files are called after `name`; the last line of stdout that is not blank
    /// is kept when `last_line` says how much of it.
    ///
    /// # Errors
    /// When there is no supervisor for it, or no file for its output.
    pub async fn run(
        &self,
        line: &str,
        env: &Environment,
        name: &str,
        last_line: Option<usize>,
        deadline: &Deadline,
    ) -> Result<CommandOutcome, CommandError> {
        let keep = |stream: &str, last_line| Keep {
            tail: limits::OUTPUT_TAIL_BYTES,
            last_line,
            file: Some(KeepFile {
                path: unused(self.logs, name, stream),
                max: limits::OUTPUT_FILE_BYTES,
            }),
            filter: self.filter(),
        };
        let mut spec = Spec::shell(line, self.work_tree, env.clone());
        spec.live = self.live.clone();
        let command = CommandSpec {
            spec,
            stdout: keep("stdout", last_line),
            stderr: keep("stderr", None),
        };
        run_command(self.host, command, deadline).await
    }

    fn filter(&self) -> Option<Box<dyn StreamFilter>> {
        if self.redactor.is_empty() {
            return None;
        }
        let filter = RedactingFilter::new(Arc::clone(self.redactor));
        Some(Box::new(filter))
    }
}

/// A file name that nothing uses yet: a command may run more than once under
/// one name.
fn unused(logs: &Path, name: &str, stream: &str) -> PathBuf {
    let mut path = logs.join(format!("{name}.{stream}.log"));
    let mut number = 2_u32;
    while path.symlink_metadata().is_ok() {
        path = logs.join(format!("{name}.{number}.{stream}.log"));
        number += 1;
    }
    path
}

/// How a command ended, in words; `limit` is what its clock allowed.
#[must_use]
pub fn end_text(end: &CommandEnd, limit: std::time::Duration) -> String {
    match end {
        CommandEnd::Code(code) => format!("exit {code}"),
        CommandEnd::Signal(signal) => format!("ended by signal {signal}"),
        CommandEnd::NotStarted(error) => format!("not started: {error}"),
        CommandEnd::Stopped(jig_process::StopReason::PhaseTimeout) => {
            format!("timed out after {}", seconds(limit))
        }
        CommandEnd::Stopped(reason) => format!("stopped: {reason}"),
        CommandEnd::SupervisorDied => "ended when its supervisor was killed".to_owned(),
    }
}

fn seconds(limit: std::time::Duration) -> String {
    if limit.subsec_millis() == 0 {
        format!("{} s", limit.as_secs())
    } else {
        format!("{} ms", limit.as_millis())
    }
}
