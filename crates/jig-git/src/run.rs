//! Hardened runs of the `git` program.
//!
//! A repository's own configuration can name programs (hooks, filters,
//! `core.fsmonitor`, `core.sshCommand`, pagers, text converters). Every run
//! here has an exact environment and overrides that keep such names from being
//! executed; it is bounded in time and lies in a process group of its own.
//! These overrides are the second line: the first is that nothing is run at all
//! with a configuration that an agent could have written.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jig_process::SystemClock;
use jig_process::deadline::Deadline;
use jig_process::tool::ToolError;
use jig_protocol::limits;

use crate::tool;

/// The oldest git that does what jig needs (`--attr-source`).
pub const MINIMUM_VERSION: (u32, u32) = (2, 41);

/// How git is run: everything the environment would otherwise decide.
#[derive(Debug, Clone)]
pub struct GitConfig {
    /// The program: a path, or a name that is looked up in `path`.
    pub program: PathBuf,
    /// The value of `PATH` for git and its own helpers.
    pub path: OsString,
    /// The operator's home, only to follow `~/` in `include.path` lines when a
    /// repository's metadata is recorded; git itself is run without a home.
    pub home: Option<PathBuf>,
    /// The bound of one run that is not a checkout.
    pub timeout: Duration,
}

impl GitConfig {
    /// `git` from `path`, with the usual bound and no home.
    #[must_use]
    pub fn new(path: impl Into<OsString>) -> Self {
        Self {
            program: PathBuf::from("git"),
            path: path.into(),
            home: None,
            timeout: limits::GIT_TIMEOUT,
        }
    }
}

/// Why a run of git gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program could not be started.
    #[error("could not start {}", program.display())]
    Start {
        /// The program as configured.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The run took too long and was stopped.
    #[error("git {act} was stopped after {} s", after.as_secs())]
    TimedOut {
        /// The subcommand.
        act: String,
        /// The bound.
        after: Duration,
    },
    /// The run was stopped, or its streams broke.
    #[error("git {act} did not run to its end")]
    Interrupted {
        /// The subcommand.
        act: String,
        /// What stopped it.
        #[source]
        source: Box<ToolError>,
    },
    /// git reported a failure.
    #[error("git {act} failed{}: {stderr}", code.map(|code| format!(" ({code})")).unwrap_or_default())]
    Failed {
        /// The subcommand.
        act: String,
        /// The exit code; `None` when a signal ended it.
        code: Option<i32>,
        /// The end of what git wrote to stderr.
        stderr: String,
    },
    /// git answered with something that cannot be read.
    #[error("git {act} answered with something unexpected: {answer:?}")]
    Unexpected {
        /// The subcommand.
        act: String,
        /// The start of the answer.
        answer: String,
    },
    /// The installed git is too old.
    #[error(
        "git {found} is too old: {}.{} or newer is needed",
        MINIMUM_VERSION.0,
        MINIMUM_VERSION.1
    )]
    TooOld {
        /// The installed version, as git prints it.
        found: String,
    },
}

/// A way to run git. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Git {
    config: Arc<GitConfig>,
    deadline: Deadline,
}

/// What a run printed.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// What a run reads from stdin.
#[derive(Debug, Default)]
pub(crate) enum Input {
    #[default]
    Nothing,
    Bytes(Vec<u8>),
    File(PathBuf),
}

/// One run: arguments, where, and the few variables that are its own.
#[derive(Debug)]
pub(crate) struct Invocation {
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    safe: Vec<PathBuf>,
    directory: Option<PathBuf>,
    input: Input,
    timeout: Option<Duration>,
}

impl Invocation {
    /// `git <subcommand> …`; the subcommand comes first in `args`.
    pub(crate) fn new<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Self {
        Self {
            args: args
                .into_iter()
                .map(|arg| arg.as_ref().to_owned())
                .collect(),
            env: Vec::new(),
            safe: Vec::new(),
            directory: None,
            input: Input::Nothing,
            timeout: None,
        }
    }

    /// Uses this repository; its owner does not matter.
    pub(crate) fn git_dir(mut self, git_dir: &Path) -> Self {
        self.env.push(("GIT_DIR".into(), git_dir.into()));
        self.safe.push(git_dir.to_owned());
        self
    }

    /// Uses this work tree, which is also the working directory.
    pub(crate) fn work_tree(mut self, tree: &Path) -> Self {
        self.env.push(("GIT_WORK_TREE".into(), tree.into()));
        self.safe.push(tree.to_owned());
        self.directory = Some(tree.to_owned());
        self
    }

    pub(crate) fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    pub(crate) fn input(mut self, input: Input) -> Self {
        self.input = input;
        self
    }

    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The subcommand, for messages.
    fn act(&self) -> String {
        self.args
            .iter()
            .map(|arg| arg.to_string_lossy())
            .find(|arg| !arg.starts_with('-') && !arg.contains('='))
            .unwrap_or_default()
            .into_owned()
    }
}

/// Overrides of anything in a repository's configuration that names a program
/// or starts work in the background.
const OVERRIDES: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.sshCommand=false",
    "core.askPass=",
    "core.editor=false",
    "core.pager=cat",
    "core.quotePath=false",
    "core.commitGraph=false",
    "core.multiPackIndex=false",
    "core.useReplaceRefs=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.filesRefLockTimeout=10000",
    "core.packedRefsTimeout=10000",
    "credential.helper=",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "diff.external=",
    "gc.auto=0",
    "gc.autoDetach=false",
    "maintenance.auto=false",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "advice.detachedHead=false",
];

impl Git {
    /// Runs git as `config` says. Nothing is started here.
    #[must_use]
    pub fn new(config: GitConfig) -> Self {
        Self {
            config: Arc::new(config),
            deadline: Deadline::new(Arc::new(SystemClock::new())),
        }
    }

    /// The same git, whose runs also end when `deadline` comes.
    #[must_use]
    pub fn until(&self, deadline: &Deadline) -> Self {
        Self {
            config: self.config.clone(),
            deadline: deadline.clone(),
        }
    }

    /// The same git, for what outlasts the deadline, and for cleaning up.
    #[must_use]
    pub fn lasting(&self) -> Self {
        Self {
            config: self.config.clone(),
            deadline: Deadline::new(Arc::new(SystemClock::new())),
        }
    }

    /// How this git is run.
    #[must_use]
    pub fn config(&self) -> &GitConfig {
        &self.config
    }

    /// The installed version.
    ///
    /// # Errors
    /// When git cannot be run, or is older than [`MINIMUM_VERSION`].
    pub async fn check_version(&self) -> Result<(u32, u32), GitError> {
        let output = self.run(Invocation::new(["version"])).await?;
        let text = String::from_utf8_lossy(&output).trim().to_owned();
        let version = parse_version(&text).ok_or_else(|| GitError::Unexpected {
            act: "version".into(),
            answer: text.clone(),
        })?;
        if version < MINIMUM_VERSION {
            let found = text
                .strip_prefix("git version ")
                .unwrap_or(&text)
                .to_owned();
            return Err(GitError::TooOld { found });
        }
        Ok(version)
    }

    /// Runs git and gives what it printed; any exit code but 0 is an error.
    pub(crate) async fn run(&self, invocation: Invocation) -> Result<Vec<u8>, GitError> {
        let act = invocation.act();
        let output = self.run_any(invocation).await?;
        if output.code == Some(0) {
            return Ok(output.stdout);
        }
        let text = output.stderr;
        let stderr =
            jig_protocol::text::tail(text.trim(), limits::STDERR_IN_ERROR_BYTES).to_owned();
        Err(GitError::Failed {
            act,
            code: output.code,
            stderr,
        })
    }

    /// Runs git and gives its answer whatever the exit code.
    pub(crate) async fn run_any(&self, invocation: Invocation) -> Result<Output, GitError> {
        let mut args: Vec<OsString> = Vec::new();
        for setting in OVERRIDES {
            args.push("-c".into());
            args.push(setting.into());
        }
        for path in &invocation.safe {
            let mut setting = OsString::from("safe.directory=");
            setting.push(path);
            args.push("-c".into());
            args.push(setting);
        }
        let act = invocation.act();
        args.extend(invocation.args);
        let mut env = self.environment();
        env.extend(invocation.env);
        let run = tool::Run {
            program: &self.config.program,
            args,
            env,
            directory: invocation.directory.as_deref(),
            input: invocation.input,
            timeout: invocation.timeout.unwrap_or(self.config.timeout),
            act,
        };
        tool::run(run, &self.deadline).await
    }

    /// The whole environment of a run, but for the invocation's own variables.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut env: Vec<(OsString, OsString)> = vec![("PATH".into(), self.config.path.clone())];
        for (name, value) in [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_LFS_SKIP_SMUDGE", "1"),
            ("GIT_DEFAULT_REF_FORMAT", "files"),
            ("GIT_PAGER", "cat"),
            ("LC_ALL", "C"),
        ] {
            env.push((name.into(), value.into()));
        }
        env
    }
}

/// `git version 2.47.3.windows.1` and the like.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix("git version ")?.split(['.', ' ', '-']);
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_vendors_print_them() {
        for (text, version) in [
            ("git version 2.47.3", Some((2, 47))),
            ("git version 2.39.5 (Apple Git-154)", Some((2, 39))),
            ("git version 2.41.0.windows.1", Some((2, 41))),
            ("git version 2.50-rc1", Some((2, 50))),
            ("hub version 2.14", None),
            ("", None),
        ] {
            assert_eq!(parse_version(text), version, "{text}");
        }
    }

    #[test]
    fn the_act_is_the_subcommand() {
        let invocation = Invocation::new(["--attr-source=abc", "-c", "a.b=c", "hash-object", "-w"]);
        assert_eq!(invocation.act(), "hash-object");
    }
}
