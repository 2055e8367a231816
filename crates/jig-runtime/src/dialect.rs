//! What an adapter adds to the supervision loop: how its CLI is started, and
//! what the CLI's stream means.
//!
//! A dialect holds the state of one send and does no I/O. Everything that
//! waits, reads, writes or stops is in [`mod@crate::supervise`].

use std::ffi::OsString;
use std::time::Duration;

use jig_process::Program;

use crate::failure::Failure;
use crate::runtime::{BoxFuture, RuntimeEvent};
use crate::session::Session;
use crate::usage::Usage;

/// What is to be started for one send.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The program.
    pub program: Program,
    /// Its arguments, without the program. Never a prompt: arguments can be
    /// read by every user of the machine.
    pub args: Vec<OsString>,
    /// Variables on top of the request's environment.
    pub env: Vec<(OsString, OsString)>,
    /// What is written to its stdin.
    pub stdin: Vec<u8>,
    /// Whether stdin stays open after that, for [`Heard::Write`] and
    /// [`Heard::Reply`].
    pub keep_stdin: bool,
    /// Files to make below HOME before the start and to remove at the end:
    /// relative path and content. Directories on the way are made and stay.
    pub private_files: Vec<(String, Vec<u8>)>,
}

/// What a line of the stream said.
pub enum Heard {
    /// Something for the engine.
    Event(RuntimeEvent),
    /// A tool call began; until it closes, silence is no sign of a hang.
    ToolOpened(String),
    /// A tool call ended.
    ToolClosed(String),
    /// The stream holds its final result now. The last one counts.
    Terminal,
    /// The final result is not final: the CLI goes on.
    Reopened,
    /// Bytes to write to stdin once they are known. Needs
    /// [`Invocation::keep_stdin`].
    Reply(BoxFuture<'static, Vec<u8>>),
    /// Bytes to write to stdin now, after those before them. Needs
    /// [`Invocation::keep_stdin`].
    Write(Vec<u8>),
    /// Nothing more will be written: stdin closes after what still waits.
    CloseInput,
    /// What the dialect waits for has to come within this time from now, also
    /// when the agent is anything but silent; `None` takes that back. When the
    /// time is up, the send ends: with the final result if it is there, else
    /// with [`Exit::GivenUp`].
    Within(Option<Duration>),
}

impl std::fmt::Debug for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Event(event) => f.debug_tuple("Event").field(event).finish(),
            Self::ToolOpened(id) => f.debug_tuple("ToolOpened").field(id).finish(),
            Self::ToolClosed(id) => f.debug_tuple("ToolClosed").field(id).finish(),
            Self::Terminal => f.write_str("Terminal"),
            Self::Reopened => f.write_str("Reopened"),
            Self::Reply(_) => f.write_str("Reply"),
            Self::Write(bytes) => f
                .debug_tuple("Write")
                .field(&String::from_utf8_lossy(bytes))
                .finish(),
            Self::CloseInput => f.write_str("CloseInput"),
            Self::Within(time) => f.debug_tuple("Within").field(time).finish(),
        }
    }
}

/// How the process ended, as far as anybody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited by itself.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It had answered but did not exit, so jig ended it.
    EndedAfterResult,
    /// What the dialect waited for did not come in time, so jig ended it.
    GivenUp,
    /// Its supervisor vanished; nobody saw its end.
    Unknown,
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::EndedAfterResult => f.write_str("ended by jig after its result"),
            Self::GivenUp => f.write_str("ended by jig for want of an answer"),
            Self::Unknown => f.write_str("an unseen end"),
        }
    }
}

impl Exit {
    /// The exit code, where there was one.
    #[must_use]
    pub const fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            _ => None,
        }
    }
}

/// What a dialect makes of a stream that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The final text, or what went wrong.
    pub outcome: Result<String, Failure>,
    /// What the send used, where the stream said so.
    pub usage: Option<Usage>,
}

/// One send's translator.
pub trait Dialect: Send {
    /// What there is to do before the first line, such as a first
    /// [`Heard::Within`].
    fn begin(&mut self) -> Vec<Heard> {
        Vec::new()
    }

    /// What a line of stdout says, without its line feed. Lines that mean
    /// nothing give nothing, except that a line which is no JSON is worth a log
    /// entry: see [`crate::line_stream::unparsed`].
    fn line(&mut self, line: &[u8]) -> Vec<Heard>;

    /// Judges the send once the process has ended and the streams are drained.
    ///
    /// A final result outranks `exit`, which counts only where there was none.
    /// `stderr` is the end of what was said there, bounded. Also called for a
    /// send that was stopped, so that figures of its stream are kept; `session`
    /// is where the CLI's id and the ledger live.
    fn end(&mut self, session: &mut Session, exit: Exit, stderr: &str) -> Verdict;
}
