//! The one trait every agent adapter implements, and the values it speaks in.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jig_process::capture::StreamFilter;
use jig_process::{
    Confinement, Deadline, Environment, LiveSupervisors, ProcessIdentity, StopReason,
};
use jig_protocol::definition::{Effort, OutputMode, RuntimeName};
use jig_protocol::outcome::FailureClass;
use jig_protocol::time::Timestamp;
use serde_json::Value;

use crate::session::Session;
use crate::usage::Usage;

/// A future that an object-safe trait can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a runtime can do, as its probe found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The adapter's name.
    pub name: RuntimeName,
    /// The CLI's version, as it says it.
    pub version: String,
    /// Whether a session can be continued by a later send.
    pub can_resume: bool,
    /// Whether sends report what they cost.
    pub reports_cost: bool,
    /// Whether a tool allowlist can be enforced.
    pub supports_tools: bool,
    /// Whether a budget per send can be enforced.
    pub supports_budget: bool,
    /// Whether an effort can be asked for.
    pub supports_effort: bool,
    /// Whether [`OutputMode::Structured`] has a mode of the CLI behind it.
    pub supports_structured: bool,
    /// What a person should know, such as a version older than recommended.
    pub warnings: Vec<String>,
}

/// Why a runtime cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The program is not there.
    #[error("{program} was not found on PATH")]
    NotFound {
        /// The program's name.
        program: String,
    },
    /// The program could not be asked, or its answer made no sense.
    #[error("{program} did not answer its version: {detail}")]
    Unusable {
        /// The program.
        program: String,
        /// What happened, in words.
        detail: String,
    },
    /// The program is too old, or lacks something jig needs.
    #[error("{program} {version} cannot be used: {detail}")]
    Unsupported {
        /// The program.
        program: String,
        /// Its version.
        version: String,
        /// What is missing, and what to do.
        detail: String,
    },
}

/// How one send is to be made. The same for every send of an entry, but for the
/// prompt.
#[derive(Debug, Clone)]
pub struct SendRequest {
    /// The role that acts; names the scripted agent's steps.
    pub role: String,
    /// The user prompt.
    pub prompt: String,
    /// The system prompt.
    pub system_prompt: String,
    /// The model, as the definition spells it.
    pub model: String,
    /// How hard to think.
    pub effort: Option<Effort>,
    /// Cap of this send in US dollars; `None` is no cap.
    pub budget_usd: Option<f64>,
    /// Tool allowlist; `None` when none was declared.
    pub tools: Option<Vec<String>>,
    /// How the answer is asked for.
    pub output: OutputMode,
    /// Where the agent works: the root of the work tree.
    pub work_tree: PathBuf,
    /// The role's HOME.
    pub home: PathBuf,
    /// The environment. Beside it only fixed switches of the adapter's own
    /// reach the process, and never over a variable that is set here, but for
    /// one that names where the agent keeps its files: that is below `home`.
    pub env: Environment,
    /// Files that hold a copied login, as paths below `home` (relative to it,
    /// or with it): written by the engine just before the send, removed by the
    /// supervisor at its end, also when jig died.
    pub remove_at_end: Vec<PathBuf>,
    /// What the kernel lets the agent do.
    pub confinement: Confinement,
}

/// What a send says while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum RuntimeEvent {
    /// The send's supervisor lives. Always the first event, for the trace; the
    /// record on disk is [`SendControl::live`]'s.
    Started {
        /// Boot id, pid and start time of the supervisor.
        process: ProcessIdentity,
    },
    /// The agent used a tool.
    ToolCall {
        /// Its name.
        tool: String,
        /// What it was called with, as the CLI said it. Not capped here, since
        /// secrets are taken out before anything is cut; one line of the
        /// stream, `limits::STREAM_LINE_BYTES`, is the bound.
        input: Value,
    },
    /// The agent said something. Its last words are its answer as a rule, and
    /// come again in [`SendEnd::Answered`]. Bounded like a tool call.
    Text {
        /// What it said.
        text: String,
    },
    /// Part of a message that the parts right after it complete: to be joined
    /// until anything else comes. The whole message does not follow.
    TextDelta {
        /// The part.
        text: String,
    },
    /// The parts since the last event are a whole message: what comes next
    /// belongs to another.
    TextEnd,
    /// A log line of the CLI or of the adapter.
    Log {
        /// Its name, such as `system:init` or `line_truncated`.
        log: String,
        /// What it says. Bounded like a tool call.
        text: String,
        /// Details as JSON.
        detail: Option<Value>,
    },
    /// The CLI itself waits before it asks its vendor again.
    Retrying {
        /// Why.
        class: FailureClass,
        /// How long it says it waits.
        wait: Option<Duration>,
    },
}

/// Where a send's events go: in order, with back-pressure, never dropped.
pub type EventSender = tokio::sync::mpsc::Sender<RuntimeEvent>;

/// Why a running send was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// No byte came for the silence limit.
    Silence,
    /// The phase's clock.
    PhaseClock,
    /// The attempt's clock.
    Ceiling,
    /// Someone asked to stop.
    Cancelled,
    /// A sibling of the group ended the attempt.
    Group,
}

impl From<StopReason> for Stopped {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::Silence => Self::Silence,
            StopReason::PhaseTimeout => Self::PhaseClock,
            StopReason::Ceiling => Self::Ceiling,
            // Nothing is sent while an attempt unwinds; should it happen, the
            // attempt is being ended.
            StopReason::Cancelled | StopReason::Unwinding => Self::Cancelled,
            StopReason::GroupStop => Self::Group,
        }
    }
}

/// How a send ended.
#[derive(Debug, Clone, PartialEq)]
pub enum SendEnd {
    /// The agent answered.
    Answered {
        /// Its final text.
        text: String,
    },
    /// The CLI reported an error, or ended without a result.
    Failed {
        /// What kind of failure.
        class: FailureClass,
        /// What was said, bounded, the end of stderr included where it helps.
        message: String,
        /// What to do about it, where that is known.
        hint: Option<String>,
        /// How long the vendor asks to wait.
        retry_after: Option<Duration>,
        /// The CLI's exit code, where it exited.
        exit_code: Option<i32>,
    },
    /// jig ended the send.
    Stopped(Stopped),
    /// No process was started; the send's slot is to be given back.
    NotStarted {
        /// `UnsupportedOption`, `Script`, `Auth`, or `Other`.
        class: FailureClass,
        /// Why.
        message: String,
    },
}

/// Everything a send leaves behind. By the time it exists, nothing that the
/// send started is running any more, [`SendReport::survivors`] aside.
#[derive(Debug, Clone, PartialEq)]
pub struct SendReport {
    /// How it ended.
    pub end: SendEnd,
    /// What it used; `None` when it left no usable figures (unmetered).
    pub usage: Option<Usage>,
    /// What was still running when the CLI ended, and was stopped.
    pub leftovers: Vec<String>,
    /// What could not be stopped. When there is any, the work tree is not safe
    /// to touch.
    pub survivors: Vec<String>,
    /// Files of the copied login that may still be there.
    pub not_removed: Vec<PathBuf>,
}

impl SendReport {
    /// The report of a send that never began.
    #[must_use]
    pub fn not_started(class: FailureClass, message: impl Into<String>) -> Self {
        Self {
            end: SendEnd::NotStarted {
                class,
                message: message.into(),
            },
            usage: None,
            leftovers: Vec::new(),
            survivors: Vec::new(),
            not_removed: Vec::new(),
        }
    }
}

/// Makes the filter of one stream.
pub type FilterSource = Arc<dyn Fn() -> Box<dyn StreamFilter> + Send + Sync>;

/// What ends a send from outside. The engine owns the clocks' values; the
/// supervision loop owns the waiting.
#[derive(Clone)]
pub struct SendControl {
    /// Phase clock, ceiling, cancellation, group stop.
    pub deadline: Deadline,
    /// Longest time without a byte; while a tool call is open the phase's clock
    /// alone counts.
    pub silence: Duration,
    /// Where events go.
    pub events: EventSender,
    /// Who keeps the record of live supervisors: written before the agent runs,
    /// so that a later jig finds what this one could not stop.
    pub live: Option<Arc<dyn LiveSupervisors>>,
    /// Takes secrets out of stderr before anything of it is cut: half a secret
    /// would not be known for one. `None` when there are none.
    pub stderr_filter: Option<FilterSource>,
}

impl std::fmt::Debug for SendControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendControl")
            .field("deadline", &self.deadline)
            .field("silence", &self.silence)
            .finish_non_exhaustive()
    }
}

/// Which files of the operator's login a runtime needs in a role's HOME.
#[derive(Clone, Default)]
pub struct Seed {
    /// Path below HOME and content. Written 0600, removed after the send.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Directories below HOME to make, 0700.
    pub dirs: Vec<PathBuf>,
    /// Until when the login is good, where it says so.
    pub expires_at: Option<Timestamp>,
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the contents: they are secrets.
        let names: Vec<_> = self.files.iter().map(|(path, _)| path).collect();
        f.debug_struct("Seed")
            .field("files", &names)
            .field("dirs", &self.dirs)
            .field("expires_at", &self.expires_at)
            .finish()
    }
}

/// Why a login cannot be handed to a role.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SeedError {
    /// `Auth`, as a rule.
    pub class: FailureClass,
    /// What is missing.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// Where the operator's login may be read from.
#[derive(Clone)]
pub struct OperatorHome {
    /// The operator's home directory.
    pub home: PathBuf,
    /// The operator's environment.
    pub env: BTreeMap<OsString, OsString>,
}

impl std::fmt::Debug for OperatorHome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the variables' values: they may be secrets.
        f.debug_struct("OperatorHome")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

/// An agent adapter.
///
/// Stateless between sends but for what is in the [`Session`] (and, scripted,
/// each role's place in the script): one value serves every attempt of a
/// process, concurrently.
pub trait AgentRuntime: Send + Sync + std::fmt::Debug {
    /// The name definitions use.
    fn name(&self) -> RuntimeName;

    /// Asks the CLI who it is and what it can do. Bounded.
    fn probe(&self) -> BoxFuture<'_, Result<Capabilities, ProbeError>>;

    /// Reads what the role's HOME needs of the operator's login. Called once
    /// per role, serially.
    fn seed<'a>(&'a self, operator: &'a OperatorHome) -> BoxFuture<'a, Result<Seed, SeedError>>;

    /// Starts a session's first send or continues it, and sees it through.
    ///
    /// Returns only when nothing that the send started is running any more.
    /// Dropping the future stops it all the same, unobserved.
    fn send<'a>(
        &'a self,
        session: &'a mut Session,
        request: SendRequest,
        control: SendControl,
    ) -> BoxFuture<'a, SendReport>;
}

/// The runtimes an attempt may use, by name.
pub type Runtimes = BTreeMap<RuntimeName, Arc<dyn AgentRuntime>>;
