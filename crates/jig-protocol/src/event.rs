//! The trace: one closed envelope, every payload a typed struct.
//!
//! On disk an event is one line of JSON: `seq, type, phase?, name?, payload?,
//! started_at`. [`EventBody`] is the closed set of what may be said; it decides
//! `type`, `name` and `payload`. Readers use [`Event`], which keeps a payload
//! as plain JSON so that a newer writer never breaks an older reader.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definition::SandboxTier;
use crate::outcome::{
    Acceptance, AttemptEnd, Cause, Check, FailureClass, PhaseKindTag, PhaseStatus,
};
use crate::repo_path::RepoPath;
use crate::time::Timestamp;

/// One event as it is written and read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Place in the attempt's trace, gapless from 1.
    pub seq: u64,
    /// What kind of event.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// The phase it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// What it is called: a role, a gate, a tool, or the name of a log entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its content; see the payload structs of this module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// When it happened.
    pub started_at: Timestamp,
}

/// Every type of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the variants are the wire words; EventBody documents them"
)]
pub enum EventKind {
    PhaseStart,
    AgentStart,
    ToolCall,
    Handoff,
    GatePass,
    GateFail,
    Log,
    AgentEnd,
    PhaseEnd,
    Error,
    PhaseDeath,
    AttemptEnd,
}

impl EventKind {
    /// The type as it stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PhaseStart => "phase_start",
            Self::AgentStart => "agent_start",
            Self::ToolCall => "tool_call",
            Self::Handoff => "handoff",
            Self::GatePass => "gate_pass",
            Self::GateFail => "gate_fail",
            Self::Log => "log",
            Self::AgentEnd => "agent_end",
            Self::PhaseEnd => "phase_end",
            Self::Error => "error",
            Self::PhaseDeath => "phase_death",
            Self::AttemptEnd => "attempt_end",
        }
    }
}

/// How an agent's entry ended, as `agent_end` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the words of the trace; docs/ARCHITECTURE.md explains them"
)]
pub enum AgentOutcome {
    Passed,
    Failed,
    Died,
    Aborted,
    Cancelled,
    Ceiling,
    SendBudget,
    SpendCeiling,
    Stopped,
}

/// One path that was breached, and what is on disk now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    /// The path, or an absolute one of git's metadata.
    pub path: RepoPath,
    /// What is there now: `restored`, `deleted`, `restored metadata`, or why not.
    pub outcome: String,
}

macro_rules! payloads {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident : $type:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            #[expect(missing_docs, reason = "the fields are the words of the trace")]
            pub struct $name {
                $($(#[$attr])* pub $field: $type),*
            }
        )*
    };
}

payloads! {
    /// The attempt begins: what runs, on what, with which prompt files.
    AttemptStart {
        attempt_id: String, job_id: String, attempt_number: u32, definition: String,
        definition_digest: String, base: String,
        /// One per runtime in use.
        runtimes: Vec<RuntimeInUse>,
        /// Path and BLAKE3 digest of every prompt read from the base commit.
        prompts: Vec<PromptDigest>,
    }
    /// A runtime an attempt uses.
    RuntimeInUse { name: String, version: String, can_resume: bool }
    /// A prompt file as it was read.
    PromptDigest { role: String, path: String, digest: String }
    /// A phase is entered.
    PhaseStart {
        kind: PhaseKindTag, phase_attempt: u32,
        #[serde(skip_serializing_if = "Option::is_none", default)] owner: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] command: Option<String>,
    }
    /// An agent's entry begins.
    AgentStart {
        model: String, session: String, can_resume: bool,
        effort: Option<String>, budget_usd: Option<f64>, tools: Option<Vec<String>>, phase_attempt: u32,
        runtime: String,
    }
    /// An agent's entry ended, with its metered use.
    AgentEnd {
        outcome: AgentOutcome, tokens: u64, cost: f64, context_tokens: u64,
        sends: u32, unmetered_sends: u32,
        #[serde(default)] late_usd: f64,
        #[serde(default)] late_sends: u32,
        #[serde(skip_serializing_if = "Option::is_none", default)] class: Option<FailureClass>,
    }
    /// An accepted envelope is handed on.
    Handoff { artifacts: Vec<String>, summary: String }
    /// One gate's round.
    GateRound { attempt: u32, position: usize, checks: Vec<Check>, violations: Vec<String> }
    /// A phase was left.
    PhaseEnd {
        status: PhaseStatus,
        #[serde(skip_serializing_if = "Option::is_none", default)] error: Option<String>,
    }
    /// An agent died; its entry was undone.
    PhaseDeath { phase_attempt: u32, error: String, class: FailureClass }
    /// The attempt ended. Exactly one per attempt, always last.
    AttemptEnded {
        end: AttemptEnd, state: String, outcome: String,
        #[serde(skip_serializing_if = "Option::is_none", default)] cause: Option<Cause>,
        #[serde(skip_serializing_if = "Option::is_none", default)] error: Option<String>,
    }
    /// A guard did not hold.
    PhaseSkipped { guard: String }
    /// A command of a code phase ended.
    CommandResult {
        exit_code: i32, timed_out: bool, output_tail: String, stderr_tail: String,
        reported_fields: Vec<String>,
    }
    /// An answer that held no valid envelope.
    InvalidEnvelope { role: String, parse_attempt: u32, error: String, raw: String }
    /// A correction without the session's memory.
    DegradedCorrection { role: String, session: String, reason: String }
    /// Paths a role changed as permitted, or outputs a build wrote.
    PathsTouched { role: String, paths: Vec<RepoPath> }
    /// Ignored paths that changed.
    IgnoredTouched { count: usize, first: Vec<RepoPath> }
    /// Paths that were changed and changed back.
    TransientWrite { paths: Vec<RepoPath> }
    /// Git metadata a code phase changed, put back.
    MetadataRestored { paths: Vec<String> }
    /// An agent claimed a field that a code phase owns.
    ReportedFieldProtected {
        role: String, field: String, reported_by: String, kept: Value, ignored: Value,
    }
    /// A repair edge is used.
    RepairEdgeUsed { run: String, r#use: u32, budget: u32 }
    /// A repair edge is spent.
    RepairExhausted { budget: u32, policy: String }
    /// Publishing is held.
    PublishHeld { reason: String }
    /// Waiting because the vendor asked for it.
    RateLimited { class: FailureClass, wait_ms: u64 }
    /// What the sandbox allows a role.
    Sandbox {
        tier: SandboxTier,
        #[serde(skip_serializing_if = "Option::is_none", default)] abi: Option<u32>,
        verified: bool, hidden_paths: Vec<String>, writable: Vec<String>, not_covered: Vec<String>,
    }
    /// A phase that passed, kept as a commit.
    Checkpoint { phase: String, commit: String }
    /// Free text of an agent.
    AgentText { text: String }
    /// A log line of a runtime.
    RuntimeLog {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none", default)] detail: Option<Value>,
    }
    /// Something broke in or below the engine.
    EngineError { error: String }
    /// A write that was not allowed.
    WriteBoundaryBreach {
        role: String, writes: Option<Vec<String>>,
        /// The first 20.
        breaches: Vec<Breach>,
        total: usize,
        /// Where the whole list is.
        list: String,
        build_outputs: Vec<RepoPath>,
    }
    /// Undoing a dead entry did not succeed.
    RollbackFailed { error: String }
    /// The attempt's clock ran out.
    CeilingExceeded { ceiling_ms: u64 }
    /// The attempt's sends ran out.
    SendBudgetExhausted { max_sends: u32, sends: u32 }
    /// The attempt's money ran out.
    SpendCeilingReached { budget_usd: f64, spent_usd: f64 }
    /// What was left running and was stopped.
    LeftoversStopped { count: usize, commands: Vec<String> }
}

/// Everything an engine may say. Decides `type`, `name` and `payload`.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is documented at its payload")]
pub enum EventBody {
    AttemptStart(AttemptStart),
    PhaseStart(PhaseStart),
    AgentStart {
        role: String,
        start: AgentStart,
    },
    ToolCall {
        tool: String,
        input: Value,
    },
    Handoff {
        role: String,
        handoff: Handoff,
    },
    Gate {
        gate: String,
        passed: bool,
        round: GateRound,
    },
    AgentEnd {
        role: String,
        end: AgentEnd,
    },
    PhaseEnd(PhaseEnd),
    PhaseDeath {
        role: String,
        death: PhaseDeath,
    },
    AttemptEnd(AttemptEnded),
    PhaseSkipped(PhaseSkipped),
    CommandResult(CommandResult),
    InvalidEnvelope(InvalidEnvelope),
    DegradedCorrection(DegradedCorrection),
    PathsTouched(PathsTouched),
    BuildOutputsTouched(PathsTouched),
    IgnoredTouched(IgnoredTouched),
    TransientWrite(TransientWrite),
    MetadataRestored(MetadataRestored),
    ReportedFieldProtected(ReportedFieldProtected),
    RepairEdge(RepairEdgeUsed),
    RepairExhausted(RepairExhausted),
    Acceptance(Acceptance),
    PublishHeld(PublishHeld),
    AttemptCancelled,
    RateLimited(RateLimited),
    Sandbox(Sandbox),
    Checkpoint(Checkpoint),
    AgentText(AgentText),
    RuntimeLog {
        log: String,
        entry: RuntimeLog,
    },
    LeftoversStopped(LeftoversStopped),
    EngineError(EngineError),
    WriteBoundaryBreach(WriteBoundaryBreach),
    RollbackFailed(RollbackFailed),
    CeilingExceeded(CeilingExceeded),
    SendBudgetExhausted(SendBudgetExhausted),
    SpendCeilingReached(SpendCeilingReached),
}

impl EventBody {
    /// The event's type.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        match self {
            Self::PhaseStart(_) => EventKind::PhaseStart,
            Self::AgentStart { .. } => EventKind::AgentStart,
            Self::ToolCall { .. } => EventKind::ToolCall,
            Self::Handoff { .. } => EventKind::Handoff,
            Self::Gate { passed: true, .. } => EventKind::GatePass,
            Self::Gate { passed: false, .. } => EventKind::GateFail,
            Self::AgentEnd { .. } => EventKind::AgentEnd,
            Self::PhaseEnd(_) => EventKind::PhaseEnd,
            Self::PhaseDeath { .. } => EventKind::PhaseDeath,
            Self::AttemptEnd(_) => EventKind::AttemptEnd,
            Self::EngineError(_)
            | Self::WriteBoundaryBreach(_)
            | Self::RollbackFailed(_)
            | Self::CeilingExceeded(_)
            | Self::SendBudgetExhausted(_)
            | Self::SpendCeilingReached(_) => EventKind::Error,
            _ => EventKind::Log,
        }
    }

    /// The event's name, where it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        Some(match self {
            Self::AttemptStart(_) => "attempt_start",
            Self::PhaseStart(_) | Self::PhaseEnd(_) | Self::AttemptEnd(_) => return None,
            Self::AgentStart { role, .. }
            | Self::Handoff { role, .. }
            | Self::AgentEnd { role, .. }
            | Self::PhaseDeath { role, .. } => role,
            Self::ToolCall { tool, .. } => tool,
            Self::Gate { gate, .. } => gate,
            Self::RuntimeLog { log, .. } => log,
            Self::PhaseSkipped(_) => "phase_skipped",
            Self::CommandResult(_) => "command_result",
            Self::InvalidEnvelope(_) => "invalid_envelope",
            Self::DegradedCorrection(_) => "degraded_correction",
            Self::PathsTouched(_) => "paths_touched",
            Self::BuildOutputsTouched(_) => "build_outputs_touched",
            Self::IgnoredTouched(_) => "ignored_touched",
            Self::TransientWrite(_) => "transient_write",
            Self::MetadataRestored(_) => "metadata_restored",
            Self::ReportedFieldProtected(_) => "reported_field_protected",
            Self::RepairEdge(_) => "repair_edge",
            Self::RepairExhausted(_) => "repair_exhausted",
            Self::Acceptance(_) => "acceptance",
            Self::PublishHeld(_) => "publish_held",
            Self::AttemptCancelled => "attempt_cancelled",
            Self::RateLimited(_) => "rate_limited",
            Self::Sandbox(_) => "sandbox",
            Self::Checkpoint(_) => "checkpoint",
            Self::AgentText(_) => "agent_text",
            Self::LeftoversStopped(_) => "leftovers_stopped",
            Self::EngineError(_) => "engine_error",
            Self::WriteBoundaryBreach(_) => "write_boundary_breach",
            Self::RollbackFailed(_) => "rollback_failed",
            Self::CeilingExceeded(_) => "attempt_ceiling_exceeded",
            Self::SendBudgetExhausted(_) => "attempt_send_budget_exhausted",
            Self::SpendCeilingReached(_) => "attempt_spend_ceiling_reached",
        })
    }

    /// The event's content as JSON; `None` for an event without any.
    ///
    /// A payload that cannot be encoded becomes `{"encode_error": …}`: the
    /// trace loses the detail, never the event.
    #[must_use]
    pub fn payload(&self) -> Option<Value> {
        let encoded = match self {
            Self::AttemptCancelled => return None,
            // A call without input has no payload, on disk as in the store.
            Self::ToolCall { input, .. } => return (!input.is_null()).then(|| input.clone()),
            Self::AttemptStart(body) => serde_json::to_value(body),
            Self::PhaseStart(body) => serde_json::to_value(body),
            Self::AgentStart { start, .. } => serde_json::to_value(start),
            Self::Handoff { handoff, .. } => serde_json::to_value(handoff),
            Self::Gate { round, .. } => serde_json::to_value(round),
            Self::AgentEnd { end, .. } => serde_json::to_value(end),
            Self::PhaseEnd(body) => serde_json::to_value(body),
            Self::PhaseDeath { death, .. } => serde_json::to_value(death),
            Self::AttemptEnd(body) => serde_json::to_value(body),
            Self::PhaseSkipped(body) => serde_json::to_value(body),
            Self::CommandResult(body) => serde_json::to_value(body),
            Self::InvalidEnvelope(body) => serde_json::to_value(body),
            Self::DegradedCorrection(body) => serde_json::to_value(body),
            Self::PathsTouched(body) | Self::BuildOutputsTouched(body) => {
                serde_json::to_value(body)
            }
            Self::IgnoredTouched(body) => serde_json::to_value(body),
            Self::TransientWrite(body) => serde_json::to_value(body),
            Self::MetadataRestored(body) => serde_json::to_value(body),
            Self::ReportedFieldProtected(body) => serde_json::to_value(body),
            Self::RepairEdge(body) => serde_json::to_value(body),
            Self::RepairExhausted(body) => serde_json::to_value(body),
            Self::Acceptance(body) => serde_json::to_value(body),
            Self::PublishHeld(body) => serde_json::to_value(body),
            Self::RateLimited(body) => serde_json::to_value(body),
            Self::Sandbox(body) => serde_json::to_value(body),
            Self::Checkpoint(body) => serde_json::to_value(body),
            Self::AgentText(body) => serde_json::to_value(body),
            Self::RuntimeLog { entry, .. } => serde_json::to_value(entry),
            Self::LeftoversStopped(body) => serde_json::to_value(body),
            Self::EngineError(body) => serde_json::to_value(body),
            Self::WriteBoundaryBreach(body) => serde_json::to_value(body),
            Self::RollbackFailed(body) => serde_json::to_value(body),
            Self::CeilingExceeded(body) => serde_json::to_value(body),
            Self::SendBudgetExhausted(body) => serde_json::to_value(body),
            Self::SpendCeilingReached(body) => serde_json::to_value(body),
        };
        Some(encoded.unwrap_or_else(|error| {
            let mut map = Map::new();
            map.insert("encode_error".to_owned(), Value::String(error.to_string()));
            Value::Object(map)
        }))
    }
}
