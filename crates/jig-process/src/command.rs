//! Running a command below a supervisor to its end, with what is kept of its
//! output: for code phases and gates.

use std::fmt;
use std::io;
use std::path::PathBuf;

use jig_protocol::limits;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::capture::{FileCapture, LastLine, Line, StreamFilter, Tail};
use crate::deadline::{Deadline, StopReason};
use crate::host::Host;
use crate::supervised::{Exit, Spec, StartError, SuperviseError, Supervised, Teardown};

/// A command to run to its end.
#[derive(Debug)]
pub struct CommandSpec {
    /// The command. [`crate::Stdin::Piped`] reads as empty, since nobody
    /// writes.
    pub spec: Spec,
    /// What is kept of its output.
    pub stdout: Keep,
    /// What is kept of its errors.
    pub stderr: Keep,
}

/// What is kept of one stream. The default keeps a tail of
/// [`limits::OUTPUT_TAIL_BYTES`] and nothing else.
pub struct Keep {
    /// Bytes of the stream's end.
    pub tail: usize,
    /// Keep the last line that is not blank, up to this many bytes.
    pub last_line: Option<usize>,
    /// Keep the start of the stream in a new file.
    pub file: Option<KeepFile>,
    /// Applied before anything is kept.
    pub filter: Option<Box<dyn StreamFilter>>,
}

/// A file for the start of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepFile {
    /// Where; nothing may be there yet.
    pub path: PathBuf,
    /// The most bytes.
    pub max: usize,
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            tail: limits::OUTPUT_TAIL_BYTES,
            last_line: None,
            file: None,
            filter: None,
        }
    }
}

impl fmt::Debug for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keep")
            .field("tail", &self.tail)
            .field("last_line", &self.last_line)
            .field("file", &self.file)
            .field("filter", &self.filter.is_some())
            .finish()
    }
}

/// How a command ended, or was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    /// It exited.
    Code(i32),
    /// A signal ended it that did not come from here.
    Signal(i32),
    /// It never ran.
    NotStarted(StartError),
    /// It was stopped.
    Stopped(StopReason),
    /// Its supervisor was killed, and it with it.
    SupervisorDied,
}

/// What was kept of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// The stream's end.
    pub tail: String,
    /// Its last line that is not blank, when asked for and there is one.
    pub last_line: Option<Line>,
    /// Bytes that came by, as filtered.
    pub bytes: u64,
    /// Whether the file holds less than came by.
    pub file_truncated: bool,
    /// Why the file could not be written to the end.
    pub file_error: Option<String>,
}

/// A command that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// How.
    pub end: CommandEnd,
    /// What was kept of its output.
    pub stdout: Kept,
    /// What was kept of its errors.
    pub stderr: Kept,
    /// What became of all it started.
    pub teardown: Teardown,
}

/// A command that could not be run at all; that it could not be executed is
/// [`CommandEnd::NotStarted`].
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There was no supervisor for it.
    #[error("cannot run the command")]
    Supervise(#[from] SuperviseError),
    /// A file for its output could not be made.
    #[error("cannot make {}", path.display())]
    OutputFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Runs a command to its end or until the deadline; then it is stopped. Either
/// way nothing that it started is left when this returns, unless the teardown
/// names survivors. Dropping the future stops it too, in the background.
///
/// # Errors
///
/// When it could not be run at all.
pub async fn run_command(
    host: &Host,
    command: CommandSpec,
    deadline: &Deadline,
) -> Result<CommandOutcome, CommandError> {
    let stdout_keeper = Keeper::new(command.stdout)?;
    let stderr_keeper = Keeper::new(command.stderr)?;
    let grace = command.spec.grace;
    if let Some(reason) = deadline.reached() {
        return Ok(CommandOutcome {
            end: CommandEnd::Stopped(reason),
            stdout: stdout_keeper.finish(),
            stderr: stderr_keeper.finish(),
            teardown: Teardown::default(),
        });
    }
    let mut supervised = Supervised::start(host, command.spec).await?;
    drop(supervised.take_stdin());
    let stdout = Reading::start(supervised.take_stdout(), stdout_keeper);
    let stderr = Reading::start(supervised.take_stderr(), stderr_keeper);
    let (end, teardown) = match deadline.bound(supervised.wait_exit()).await {
        Ok(exit) => (CommandEnd::from(exit), supervised.wait_gone().await),
        Err(reason) => (CommandEnd::Stopped(reason), supervised.stop(grace).await),
    };
    let drained_by = tokio::time::Instant::now() + limits::DRAIN_GRACE;
    Ok(CommandOutcome {
        end,
        stdout: stdout.finish(drained_by).await,
        stderr: stderr.finish(drained_by).await,
        teardown,
    })
}

impl From<Exit> for CommandEnd {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Code(code),
            Exit::Signal(signal) => Self::Signal(signal),
            Exit::NotStarted(error) => Self::NotStarted(error),
            Exit::SupervisorDied => Self::SupervisorDied,
        }
    }
}

/// A stream being read, to its end or until nobody waits for that any more.
struct Reading {
    task: tokio::task::JoinHandle<Keeper>,
    enough: tokio::sync::oneshot::Sender<()>,
}

impl Reading {
    fn start<R>(stream: Option<R>, mut keeper: Keeper) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
    {
        let (enough, mut told) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let Some(mut stream) = stream else {
                return keeper;
            };
            let mut buffer = vec![0; 64 * 1024];
            loop {
                tokio::select! {
                    biased;
                    read = stream.read(&mut buffer) => match read {
                        Ok(0) | Err(_) => return keeper,
                        Ok(read) => keeper.push(&buffer[..read]),
                    },
                    _ = &mut told => return keeper,
                }
            }
        });
        Self { task, enough }
    }

    async fn finish(mut self, by: tokio::time::Instant) -> Kept {
        let keeper = match tokio::time::timeout_at(by, &mut self.task).await {
            Ok(keeper) => keeper,
            Err(_) => {
                // Somebody still holds the stream; what came so far counts.
                let _ = self.enough.send(());
                self.task.await
            }
        };
        keeper.map_or_else(|_| Kept::default(), Keeper::finish)
    }
}

/// Keeps of a stream what was asked for.
struct Keeper {
    filter: Option<Box<dyn StreamFilter>>,
    tail: Tail,
    last_line: Option<LastLine>,
    file: Option<FileCapture>,
}

impl Keeper {
    fn new(keep: Keep) -> Result<Self, CommandError> {
        let file = match keep.file {
            None => None,
            Some(KeepFile { path, max }) => Some(
                FileCapture::create(&path, max)
                    .map_err(|source| CommandError::OutputFile { path, source })?,
            ),
        };
        Ok(Self {
            filter: keep.filter,
            tail: Tail::new(keep.tail),
            last_line: keep.last_line.map(LastLine::new),
            file,
        })
    }

    fn push(&mut self, bytes: &[u8]) {
        match &mut self.filter {
            None => self.keep(bytes),
            Some(filter) => {
                let filtered = filter.push(bytes);
                self.keep(&filtered);
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.tail.push(bytes);
        if let Some(last_line) = &mut self.last_line {
            last_line.push(bytes);
        }
        if let Some(file) = &mut self.file {
            file.push(bytes);
        }
    }

    fn finish(mut self) -> Kept {
        if let Some(mut filter) = self.filter.take() {
            let rest = filter.finish();
            self.keep(&rest);
        }
        let (file_truncated, file_error) = match self.file.map(FileCapture::finish) {
            None => (false, None),
            Some(Ok(truncated)) => (truncated, None),
            Some(Err(error)) => (true, Some(error.to_string())),
        };
        Kept {
            tail: self.tail.text(),
            last_line: self.last_line.and_then(LastLine::finish),
            bytes: self.tail.seen(),
            file_truncated,
            file_error,
        }
    }
}
