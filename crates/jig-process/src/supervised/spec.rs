//! What to run, and how it ended.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jig_protocol::limits;
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::identity::ProcessIdentity;
use crate::supervisor::Confinement;

/// A command to run below a supervisor.
#[derive(Clone)]
pub struct Spec {
    /// What is executed.
    pub program: Program,
    /// Its arguments; for [`Program::Shell`] those after the command text.
    pub args: Vec<OsString>,
    /// Where it works.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Environment,
    /// What it reads.
    pub stdin: Stdin,
    /// Files the supervisor removes when all has ended, also when jig died.
    pub remove_at_end: Vec<RemoveAtEnd>,
    /// What the kernel lets it do.
    pub confinement: Confinement,
    /// Between TERM and KILL when nobody asks for another grace: for what the
    /// command leaves behind, and when jig dies.
    pub grace: Duration,
    /// Who keeps the record of live supervisors.
    pub live: Option<Arc<dyn LiveSupervisors>>,
}

impl Spec {
    /// A command without arguments, input or files to remove.
    #[must_use]
    pub fn new(program: Program, cwd: impl Into<PathBuf>, env: Environment) -> Self {
        Self {
            program,
            args: Vec::new(),
            cwd: cwd.into(),
            env,
            stdin: Stdin::Empty,
            remove_at_end: Vec::new(),
            confinement: Confinement::None,
            grace: limits::STOP_GRACE,
            live: None,
        }
    }

    /// A command line for `/bin/sh`.
    #[must_use]
    pub fn shell(line: impl Into<OsString>, cwd: impl Into<PathBuf>, env: Environment) -> Self {
        Self::new(Program::Shell(line.into()), cwd, env)
    }

    /// The command with more arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The command with another input.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and input may hold what is not for logs.
        f.debug_struct("Spec")
            .field("program", &self.program)
            .field("cwd", &self.cwd)
            .field("env", &self.env)
            .finish_non_exhaustive()
    }
}

/// What is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program; a bare name is looked up in the `PATH` of its environment.
    At(PathBuf),
    /// A command line, run as `/bin/sh -c <line>`.
    Shell(OsString),
    /// A hidden mode of the host executable, see [`crate::hidden_mode`].
    HostMode(&'static str),
}

/// What a command reads.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    #[default]
    Empty,
    /// These bytes, then the end. Not reading them all is no error.
    Bytes(Vec<u8>),
    /// What is written to [`crate::Supervised::take_stdin`].
    Piped,
}

/// A file that must not outlive the command, such as a copy of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveAtEnd {
    /// A directory that the command cannot replace.
    pub root: PathBuf,
    /// The file's path below it. No link on the way is followed.
    pub below: PathBuf,
}

/// Keeps the record of live supervisors, from which a later jig can find and
/// stop what this one could not.
pub trait LiveSupervisors: Send + Sync {
    /// A supervisor exists and has nothing to run yet.
    ///
    /// # Errors
    ///
    /// When the record could not be made; then nothing is run.
    fn opened(&self, supervisor: &ProcessIdentity) -> io::Result<()>;

    /// A supervisor has ended and left nothing behind.
    fn closed(&self, supervisor: &ProcessIdentity);
}

/// What failed of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartStage {
    /// Entering the working directory.
    Directory,
    /// Executing the program.
    Exec,
}

/// Why a command did not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartError {
    /// What failed.
    pub stage: StartStage,
    /// The system's error number.
    pub errno: i32,
}

impl StartError {
    /// The system's error.
    #[must_use]
    pub fn cause(&self) -> io::Error {
        io::Error::from_raw_os_error(self.errno)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let act = match self.stage {
            StartStage::Directory => "enter the working directory",
            StartStage::Exec => "execute the program",
        };
        write!(f, "cannot {act}: {}", self.cause())
    }
}

impl std::error::Error for StartError {}

/// How a command's first process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With an exit code.
    Code(i32),
    /// By a signal, also one of a stop.
    Signal(i32),
    /// It never ran.
    NotStarted(StartError),
    /// Its supervisor was ended by somebody, and it with it.
    SupervisorDied,
}

/// What is left when all has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Teardown {
    /// Command lines of processes that were alive when the stop began: after
    /// the command's own exit, what it left in the background. At most 32.
    pub leftovers: Vec<String>,
    /// Command lines of processes that could not be ended. When there are any,
    /// the work tree is not safe to touch.
    pub survivors: Vec<String>,
    /// Files of [`Spec::remove_at_end`] that may still be there.
    pub not_removed: Vec<PathBuf>,
}

impl Teardown {
    /// Whether nothing runs any more.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.survivors.is_empty()
    }
}
