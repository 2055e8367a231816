//! Asking an agent CLI about itself: bounded, and nothing is left of it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jig_process::command::Keep;
use jig_process::{
    CommandEnd, CommandSpec, Deadline, Environment, Host, Program, Spec, StopReason, run_command,
};
use jig_protocol::time::Clock;

use crate::runtime::ProbeError;

/// The most that is read of an answer; a help page is a few ten thousand bytes.
const ANSWER_BYTES: usize = 256 * 1024;

/// How CLIs are asked.
#[derive(Debug, Clone)]
pub struct Asker {
    /// The program with the supervisor.
    pub host: Host,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where the CLI works meanwhile.
    pub dir: PathBuf,
    /// Its environment.
    pub env: Environment,
    /// How long it may take.
    pub bound: Duration,
}

/// What a CLI answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its exit code.
    pub code: i32,
    /// The end of what it said on stdout.
    pub stdout: String,
    /// The end of what it said on stderr.
    pub stderr: String,
}

impl Asker {
    /// Runs `program` with `args` and without input to its end.
    ///
    /// # Errors
    ///
    /// [`ProbeError::NotFound`] when there is no such program,
    /// [`ProbeError::Unusable`] when it did not exit by itself in time.
    pub async fn ask<A: Into<OsString>>(
        &self,
        program: &Path,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Answer, ProbeError> {
        let unusable = |detail: String| ProbeError::Unusable {
            program: program.display().to_string(),
            detail,
        };
        let keep = || Keep {
            tail: ANSWER_BYTES,
            ..Keep::default()
        };
        let command = CommandSpec {
            spec: Spec::new(Program::At(program.to_owned()), &self.dir, self.env.clone())
                .args(args),
            stdout: keep(),
            stderr: keep(),
        };
        let deadline =
            Deadline::new(Arc::clone(&self.clock)).and_within(self.bound, StopReason::PhaseTimeout);
        let outcome = run_command(&self.host, command, &deadline)
            .await
            .map_err(|error| unusable(jig_protocol::text::with_causes(&error)))?;
        match outcome.end {
            CommandEnd::Code(code) => Ok(Answer {
                code,
                stdout: outcome.stdout.tail,
                stderr: outcome.stderr.tail,
            }),
            CommandEnd::NotStarted(error)
                if error.cause().kind() == std::io::ErrorKind::NotFound =>
            {
                Err(ProbeError::NotFound {
                    program: program.display().to_string(),
                })
            }
            CommandEnd::NotStarted(error) => Err(unusable(error.to_string())),
            CommandEnd::Signal(signal) => Err(unusable(format!("signal {signal} ended it"))),
            CommandEnd::Stopped(_) => Err(unusable(format!(
                "it took longer than {} s",
                self.bound.as_secs()
            ))),
            CommandEnd::SupervisorDied => Err(unusable("its supervisor was ended".to_owned())),
        }
    }
}
