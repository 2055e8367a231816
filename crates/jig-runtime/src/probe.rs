//! Asking an agent CLI about itself: bounded, and nothing is left of it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jig_process::command::Keep;
use jig_process::{
    CommandEnd, CommandSpec, Deadline, Environment, Host, Program, Spec, StopReason, run_command,
};
use jig_protocol::time::Clock;

use crate::failure;
use crate::runtime::ProbeError;
use crate::version::Version;

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

    /// Asks `program` for its version with `--version`; `pick` finds the word in
    /// its answer.
    ///
    /// # Errors
    ///
    /// As [`Asker::ask`]; [`ProbeError::Unusable`] when there is no such word,
    /// [`ProbeError::Unsupported`] when it is older than `minimum`.
    pub async fn version(
        &self,
        program: &Path,
        minimum: Version,
        pick: fn(&str) -> Option<&str>,
    ) -> Result<FoundVersion, ProbeError> {
        let answer = self.ask(program, ["--version"]).await?;
        let word = pick(&answer.stdout).filter(|_| answer.code == 0);
        let Some(word) = word.map(str::to_owned) else {
            return Err(ProbeError::Unusable {
                program: program.display().to_string(),
                detail: failure::with_stderr(
                    &format!("`--version` ended with exit code {}", answer.code),
                    &answer.stderr,
                ),
            });
        };
        if minimum.is_newer_than(&word) {
            return Err(ProbeError::Unsupported {
                program: program.display().to_string(),
                version: word,
                detail: format!("at least {minimum} is needed; update it"),
            });
        }
        let warning = Version::parse(&word).is_none().then(|| {
            format!("{word:?} is no version jig can compare; {minimum} or later is expected")
        });
        Ok(FoundVersion { word, warning })
    }
}

/// A version that is not too old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundVersion {
    /// The version, as the CLI says it.
    pub word: String,
    /// What a person should know about it.
    pub warning: Option<String>,
}

/// Those of the `needed` long options (`--like-this`) that a help page does not
/// name.
#[must_use]
pub fn missing_flags(help: &str, needed: &[&'static str]) -> Vec<&'static str> {
    let known: BTreeSet<&str> = help
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|word| word.starts_with("--"))
        .collect();
    needed
        .iter()
        .copied()
        .filter(|flag| !known.contains(flag))
        .collect()
}

/// A [`ProbeError`] for a CLI that lacks options, if it does.
///
/// # Errors
///
/// [`ProbeError::Unsupported`], which names the options.
pub fn demand_flags(
    program: &Path,
    version: &str,
    help: &str,
    needed: &[&'static str],
) -> Result<(), ProbeError> {
    let missing = missing_flags(help, needed);
    if missing.is_empty() {
        return Ok(());
    }
    Err(ProbeError::Unsupported {
        program: program.display().to_string(),
        version: version.to_owned(),
        detail: format!(
            "it has no {}; install a version that has",
            missing.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_whole_words() {
        let needed = ["--resume", "--system-prompt"];
        let help = "  -r, --resume <value>  text\n  --system-prompt <text>\n";
        assert!(missing_flags(help, &needed).is_empty());
        let without = help.replace("--resume ", "--resume-session-at ");
        assert_eq!(missing_flags(&without, &needed), ["--resume"]);
        let only_append = help.replace(" --system-prompt ", " --append-system-prompt ");
        assert_eq!(missing_flags(&only_append, &needed), ["--system-prompt"]);
        let error = demand_flags(Path::new("x"), "1.2.3", "", &needed).unwrap_err();
        assert_eq!(
            error.to_string(),
            "x 1.2.3 cannot be used: it has no --resume, --system-prompt; install a version that has"
        );
    }
}
