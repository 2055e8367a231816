//! What to run and how it went.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use jig_protocol::limits;

use crate::deadline::StopReason;
use crate::environment::Environment;

/// A helper program to run. Made by [`Tool::new`], then adjusted field by field.
#[derive(Debug)]
pub struct Tool {
    /// The program; a bare name is looked up in the `PATH` of `env`.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it works.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Environment,
    /// What it reads. In a pipeline only the first tool's counts.
    pub stdin: ToolStdin,
    /// Where its output goes. In a pipeline only the last tool's counts.
    pub stdout: ToolStdout,
    /// How long it may take. Of a pipeline the longest counts, for the whole.
    pub timeout: Duration,
    /// How many bytes of stderr's end are kept.
    pub stderr_tail: usize,
}

impl Tool {
    /// A tool without arguments or input, whose output is captured up to
    /// 16 MiB, bounded by [`limits::GIT_TIMEOUT`].
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, cwd: impl Into<PathBuf>, env: Environment) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env,
            stdin: ToolStdin::Empty,
            stdout: ToolStdout::Capture {
                max: limits::OUTPUT_FILE_BYTES,
            },
            timeout: limits::GIT_TIMEOUT,
            stderr_tail: limits::OUTPUT_TAIL_BYTES,
        }
    }

    /// The tool with more arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The tool with another input.
    #[must_use]
    pub fn stdin(mut self, stdin: ToolStdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// The tool with another place for its output.
    #[must_use]
    pub fn stdout(mut self, stdout: ToolStdout) -> Self {
        self.stdout = stdout;
        self
    }

    /// The tool with another bound on its time.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

/// What a tool reads.
#[derive(Debug)]
pub enum ToolStdin {
    /// Nothing.
    Empty,
    /// These bytes. A tool that does not read them all is no error.
    Bytes(Vec<u8>),
    /// An open file.
    File(File),
}

/// Takes output as it comes. An error stops the tool.
pub type Sink = Box<dyn FnMut(&[u8]) -> io::Result<()> + Send>;

/// Where a tool's output goes.
pub enum ToolStdout {
    /// Into [`ToolOutput::stdout`]; more than `max` bytes is an error.
    Capture {
        /// The most bytes.
        max: usize,
    },
    /// Into an open file.
    File(File),
    /// To a function, on the thread that runs the tool.
    Sink(Sink),
}

impl fmt::Debug for ToolStdout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture { max } => write!(f, "Capture({max})"),
            Self::File(_) => f.write_str("File"),
            Self::Sink(_) => f.write_str("Sink"),
        }
    }
}

/// How a tool ended of its own accord.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolExit {
    /// With an exit code.
    Code(i32),
    /// By a signal that did not come from here.
    Signal(i32),
}

impl ToolExit {
    pub(super) fn of(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(status.signal().unwrap_or(0)),
        }
    }

    /// Whether it says that all went well.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(0))
    }
}

impl fmt::Display for ToolExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A tool that ran to its own end, whatever its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// How it ended.
    pub exit: ToolExit,
    /// What it wrote, when that was captured; else empty.
    pub stdout: Vec<u8>,
    /// The end of its stderr, as text.
    pub stderr: String,
}

/// A tool that did not run to its own end.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It could not be started.
    #[error("cannot start {} in {}", program.display(), cwd.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Where it should have worked.
        cwd: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It took too long and was stopped.
    #[error("{} took longer than {after:?} and was stopped", program.display())]
    TimedOut {
        /// The program (of a pipeline, the first).
        program: PathBuf,
        /// The bound.
        after: Duration,
    },
    /// Its deadline came and it was stopped.
    #[error("{} was stopped: {reason}", program.display())]
    Stopped {
        /// The program (of a pipeline, the first).
        program: PathBuf,
        /// Why.
        reason: StopReason,
    },
    /// It wrote more than is captured and was stopped.
    #[error("{} wrote more than {limit} bytes and was stopped", program.display())]
    TooMuchOutput {
        /// The program.
        program: PathBuf,
        /// The bound.
        limit: usize,
    },
    /// Its streams could not be served, and it was stopped.
    #[error("cannot {act} {}", program.display())]
    Io {
        /// The program.
        program: PathBuf,
        /// What failed, such as `"read the output of"`.
        act: &'static str,
        /// Why.
        source: io::Error,
    },
}
