//! How things end: a send, a phase, an attempt; and the result document.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::SandboxTier;
use crate::repo_path::RepoPath;
use crate::time::Timestamp;

/// Why a send, a phase or an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The vendor has no capacity; retried with back-off.
    Overloaded,
    /// Too many requests; retried after the stated time.
    RateLimited,
    /// Not logged in, or the login expired. Fatal.
    Auth,
    /// The account's spending limit was reached. Fatal.
    SpendCap,
    /// The runtime cannot do what the role asks. Fatal.
    UnsupportedOption,
    /// The model declined. Fatal.
    Refused,
    /// The CLI's own turn limit was reached.
    MaxTurns,
    /// The process ended without a result.
    Crashed,
    /// A clock ended the send.
    KilledByClock,
    /// The session was lost; a fresh one is needed.
    Discontinuity,
    /// The scripted agent's script is wrong or used up. Fatal.
    Script,
    /// Anything else.
    Other,
}

impl FailureClass {
    /// Whether waiting and sending again may help.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Overloaded | Self::RateLimited)
    }

    /// Whether the attempt ends at once.
    #[must_use]
    pub const fn is_fatal(self) -> bool {
        matches!(
            self,
            Self::Auth | Self::SpendCap | Self::UnsupportedOption | Self::Refused | Self::Script
        )
    }

    /// Whether the entry counts as a death: undone, then tried afresh.
    #[must_use]
    pub const fn is_death(self) -> bool {
        matches!(
            self,
            Self::Crashed | Self::KilledByClock | Self::Discontinuity
        )
    }

    /// The class as records spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overloaded => "overloaded",
            Self::RateLimited => "rate_limited",
            Self::Auth => "auth",
            Self::SpendCap => "spend_cap",
            Self::UnsupportedOption => "unsupported_option",
            Self::Refused => "refused",
            Self::MaxTurns => "max_turns",
            Self::Crashed => "crashed",
            Self::KilledByClock => "killed_by_clock",
            Self::Discontinuity => "discontinuity",
            Self::Script => "script",
            Self::Other => "other",
        }
    }
}

/// How the engine's work on an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// The chain ran to its end; acceptance then judges.
    Completed,
    /// A phase failed.
    Failed,
    /// Something was written that may not be written.
    Breach,
    /// Someone asked to stop.
    Cancelled,
    /// The attempt took too long.
    Ceiling,
    /// The attempt asked an agent too often.
    SendBudget,
    /// The attempt cost too much.
    SpendCeiling,
    /// Something broke that is neither the agent's nor the work's fault.
    Infrastructure,
}

/// The machine-readable reason of a rejection or a missing verdict, as in the
/// `cause` of `jig run --json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Accepted, but held for a person.
    Held,
    /// The acceptance predicate does not hold.
    Acceptance,
    /// No valid envelope within the corrections allowed.
    Parse,
    /// A gate did not pass within the corrections allowed.
    Gate,
    /// The agent itself reported `status: fail`.
    AgentFail,
    /// A repair edge's budget is spent.
    RepairExhausted,
    /// A code phase failed.
    Command,
    /// An agent died more often than allowed.
    Death,
    /// A write that was not allowed.
    Breach,
    /// The attempt's clock.
    Ceiling,
    /// The attempt's sends.
    SendBudget,
    /// The attempt's money.
    SpendCeiling,
    /// Someone asked to stop.
    Cancelled,
    /// The scripted agent's script.
    Script,
    /// What was asked for cannot be done as configured.
    Configuration,
    /// Something broke in or below jig.
    Infrastructure,
    /// See [`FailureClass::Overloaded`].
    Overloaded,
    /// See [`FailureClass::RateLimited`].
    RateLimited,
    /// See [`FailureClass::Auth`].
    Auth,
    /// See [`FailureClass::SpendCap`].
    SpendCap,
    /// See [`FailureClass::UnsupportedOption`].
    UnsupportedOption,
    /// See [`FailureClass::Refused`].
    Refused,
    /// See [`FailureClass::MaxTurns`].
    MaxTurns,
    /// See [`FailureClass::Other`].
    Other,
}

impl From<FailureClass> for Cause {
    fn from(class: FailureClass) -> Self {
        match class {
            FailureClass::Overloaded => Self::Overloaded,
            FailureClass::RateLimited => Self::RateLimited,
            FailureClass::Auth => Self::Auth,
            FailureClass::SpendCap => Self::SpendCap,
            FailureClass::UnsupportedOption => Self::UnsupportedOption,
            FailureClass::Refused => Self::Refused,
            FailureClass::MaxTurns => Self::MaxTurns,
            FailureClass::Crashed | FailureClass::KilledByClock | FailureClass::Discontinuity => {
                Self::Death
            }
            FailureClass::Script => Self::Script,
            FailureClass::Other => Self::Other,
        }
    }
}

impl Cause {
    /// Whether jig could not reach a verdict at all (exit code 1).
    #[must_use]
    pub const fn is_no_verdict(self) -> bool {
        matches!(
            self,
            Self::Auth
                | Self::SpendCap
                | Self::UnsupportedOption
                | Self::Script
                | Self::Configuration
                | Self::Infrastructure
        )
    }
}

/// A phase's kind, as records spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseKindTag {
    /// An agent acted.
    Agent,
    /// A command ran.
    Code,
}

/// How one entry of a phase ended. Success must be earned: it is no default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseStatus {
    /// Everything asked of it held.
    Success,
    /// It did not.
    Fail,
    /// Its guard did not hold.
    Skipped,
}

/// One checked item of a gate or of acceptance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked.
    pub item: String,
    /// Whether it held.
    pub ok: bool,
    /// What was found.
    pub note: String,
}

impl Check {
    /// A check that held.
    #[must_use]
    pub fn pass(item: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            item: item.into(),
            ok: true,
            note: note.into(),
        }
    }

    /// A check that did not hold.
    #[must_use]
    pub fn fail(item: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            item: item.into(),
            ok: false,
            note: note.into(),
        }
    }
}

/// What one gate found in its last round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateReport {
    /// The gate's name.
    pub gate: String,
    /// Its place among the phase's gates, from 0.
    pub position: usize,
    /// Whether every check held and there was at least one.
    pub passed: bool,
    /// The checks.
    pub checks: Vec<Check>,
}

/// The acceptance verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acceptance {
    /// Whether every check held.
    pub passed: bool,
    /// The checks, in the order of the definition.
    pub checks: Vec<Check>,
}

/// The terminal record of one entry of a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// The phase.
    pub phase: String,
    /// Its kind.
    pub kind: PhaseKindTag,
    /// How it ended.
    pub status: PhaseStatus,
    /// Which entry of the phase this was, from 1; absent when skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_attempt: Option<u32>,
    /// The accepted envelope, or what stands for one too large to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<Value>,
    /// What its gates found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateReport>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The class of the runtime's failure, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    /// When the entry began; absent when skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// What became of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishMarker {
    /// A local branch holds the result.
    LocalBranch,
    /// Accepted without a change.
    NothingToPublish,
    /// Accepted, but a person must look first.
    Held,
    /// Nothing was delivered.
    NotAttempted,
}

/// Metered use of agents, summed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spend {
    /// US dollars, over the sends that reported a cost; those of `late_usd` are
    /// among them.
    pub cost_usd: f64,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Sends started.
    pub sends: u32,
    /// Sends that ended without usable figures.
    pub unmetered_sends: u32,
    /// US dollars of sends that ended without figures and whose cost a later
    /// total of their session told.
    #[serde(default)]
    pub late_usd: f64,
    /// How many sends that were; they are not among the unmetered ones.
    #[serde(default)]
    pub late_sends: u32,
}

/// How far each budget was drawn on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budgets {
    /// Parse corrections sent.
    pub parse_corrections: u32,
    /// Gate corrections sent.
    pub gate_corrections: u32,
    /// Deaths.
    pub deaths: u32,
    /// Runs of the parallel group.
    pub group_runs: u32,
    /// Repair edges, in chain order.
    pub repairs: Vec<RepairUse>,
}

/// How far one repair edge was drawn on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairUse {
    /// The phase that owns the edge.
    pub phase: String,
    /// Uses.
    pub used: u32,
    /// Uses allowed.
    pub budget: u32,
}

/// What the kernel sandbox offered an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReport {
    /// The tier used.
    pub tier: SandboxTier,
    /// The Landlock ABI, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abi: Option<u32>,
    /// Whether the self-test proved the tier's promises.
    pub verified: bool,
    /// What is not prevented.
    pub not_covered: Vec<String>,
}

/// What nothing but a kernel sandbox holds back, in the words of
/// [`SandboxReport::not_covered`].
const BEYOND_THE_BOUNDARY: [&str; 9] = [
    "reads",
    "writes_outside_the_tree",
    "metadata",
    "signals",
    "unix_sockets",
    "abstract_sockets",
    "network",
    "pids",
    "memory",
];

impl SandboxReport {
    /// No sandbox: the write boundary alone.
    #[must_use]
    pub fn none() -> Self {
        Self {
            tier: SandboxTier::None,
            abi: None,
            verified: false,
            not_covered: BEYOND_THE_BOUNDARY.map(str::to_owned).to_vec(),
        }
    }
}

/// The result document of an attempt, bounded (see [`crate::limits`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultDocument {
    /// How the engine ended.
    pub end: AttemptEnd,
    /// Every entry's terminal record, in order of their ends.
    pub phases: Vec<PhaseResult>,
    /// What changed, ignored files and build outputs aside; sorted, each once.
    pub changed_paths: Vec<RepoPath>,
    /// What became of the result.
    pub publish: PublishMarker,
    /// Why it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_hold: Option<String>,
    /// The verdict; absent when the chain did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<Acceptance>,
    /// Why it was not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Metered use.
    pub spend: Spend,
    /// Budgets drawn on.
    pub budgets: Budgets,
    /// What the sandbox offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxReport>,
    /// Set when the document was cut to its bound; says what was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
}

impl ResultDocument {
    /// The result of an attempt that ended before anything of it was run.
    #[must_use]
    pub fn never_began(end: AttemptEnd, cause: Cause) -> Self {
        Self {
            end,
            phases: Vec::new(),
            changed_paths: Vec::new(),
            publish: PublishMarker::NotAttempted,
            publish_hold: None,
            acceptance: None,
            cause: Some(cause),
            spend: Spend::default(),
            budgets: Budgets::default(),
            sandbox: None,
            truncation: None,
        }
    }
}

/// What a result document lost to its bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncation {
    /// Which bound, in words.
    pub reason: String,
    /// How many changed paths there were.
    pub changed_paths_total: usize,
    /// How many phase results there were.
    pub phases_total: usize,
}
