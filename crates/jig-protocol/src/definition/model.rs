//! The values of a validated definition.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::name::Name;
use super::pattern::{DirGrant, PathPattern};
pub use super::runtime_name::RuntimeName;
pub use super::writers::*;
use crate::predicate::{Guard, Predicate};

/// A workflow, validated.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Its identity.
    pub name: Name,
    /// What it is for, for people.
    pub description: String,
    /// The default runtime of all roles; `None` means any.
    pub runtime: Option<RuntimeName>,
    /// Who may act, by role name.
    pub roster: BTreeMap<Name, Role>,
    /// The chain, in order; at least one.
    pub phases: Vec<Phase>,
    /// The read-only group; empty when there is none.
    pub parallel: Vec<Name>,
    /// The group of writers, when there is one.
    pub parallel_writers: Option<ParallelWriters>,
    /// What must hold in the end, besides `all_phases_passed`.
    pub acceptance: Vec<AcceptanceCheck>,
    /// Delivery policy.
    pub publish: Option<Publish>,
    /// Directories every role's build may write into.
    pub build_outputs: Vec<DirGrant>,
    /// Whether download caches outlive an attempt.
    pub caches: CachePolicy,
    /// Ceiling of the metered spend of one attempt, in US dollars.
    pub budget_usd: Option<f64>,
    /// Clocks of this definition; `None` means the table's value.
    pub limits: Clocks,
    /// What the kernel sandbox must offer.
    pub sandbox: SandboxRules,
}

impl Definition {
    /// The phase called `name`, with its place in the chain.
    #[must_use]
    pub fn phase(&self, name: &str) -> Option<(usize, &Phase)> {
        self.phases
            .iter()
            .enumerate()
            .find(|(_, phase)| phase.name.as_str() == name)
    }

    /// The runtime a role runs on: what replaces all, its own, what replaces
    /// the definition's default, that default, and without any Claude Code.
    #[must_use]
    pub fn runtime_of(
        &self,
        role: &Role,
        replaces_all: Option<&RuntimeName>,
        replaces_default: Option<&RuntimeName>,
    ) -> RuntimeName {
        replaces_all
            .or(role.runtime.as_ref())
            .or(replaces_default)
            .or(self.runtime.as_ref())
            .cloned()
            .unwrap_or_else(|| RuntimeName::new(RuntimeName::CLAUDE_CODE))
    }

    /// Every environment name that any role needs, sorted, each once.
    #[must_use]
    pub fn required_environment(&self) -> BTreeSet<String> {
        self.roster
            .values()
            .flat_map(|role| role.env.iter().cloned())
            .collect()
    }

    /// Every environment name whose value is secret, sorted, each once.
    #[must_use]
    pub fn sensitive_environment(&self) -> BTreeSet<String> {
        self.roster
            .values()
            .flat_map(|role| role.sensitive_env.iter().cloned())
            .collect()
    }
}

/// One member of the roster.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    /// Handed to the agent's CLI as it is.
    pub model: String,
    /// Overrides the definition's runtime.
    pub runtime: Option<RuntimeName>,
    /// How hard the model should think.
    pub effort: Option<Effort>,
    /// Cap of one send in US dollars, enforced by the CLI.
    pub budget_usd: Option<f64>,
    /// Where the system prompt comes from.
    pub system_prompt: PromptSource,
    /// Where the template of the user prompt comes from.
    pub user_prompt: PromptSource,
    /// Tool allowlist handed to the CLI; `None` when it was not given.
    pub tools: Option<Vec<String>>,
    /// What the role may write; `None` is anything, empty is read-only.
    pub writes: Option<Vec<PathPattern>>,
    /// How the answer is asked for.
    pub output: OutputMode,
    /// Whether the role may move the attempt branch forward.
    pub commits: bool,
    /// Names of the variables the role receives.
    pub env: Vec<String>,
    /// Names whose values are redacted everywhere; a subset of `env`.
    pub sensitive_env: Vec<String>,
}

impl Role {
    /// Whether the role may write nothing at all.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.writes.as_ref().is_some_and(Vec::is_empty)
    }
}

/// How hard a model should think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Least.
    Low,
    /// The middle.
    Medium,
    /// More.
    High,
    /// Much.
    Xhigh,
    /// As much as there is.
    Max,
}

impl Effort {
    /// Every level, least first.
    pub const ALL: [Self; 5] = [Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// The level as definitions spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// A prompt in the definition itself, or a file of the base commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptSource {
    /// The text.
    Inline(String),
    /// A repository-relative path, read from the pinned base commit.
    Path(crate::repo_path::RepoPath),
}

/// How an agent is asked for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputMode {
    /// A JSON object at the end of free text.
    #[default]
    Text,
    /// The CLI's own schema mode, where it has one.
    Structured,
}

/// One step of the chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Unique in the chain, ignoring case.
    pub name: Name,
    /// An agent or a command.
    pub kind: PhaseKind,
    /// When to run it; `None` is always.
    pub guard: Option<Guard>,
    /// What verifies it, in declared order.
    pub gates: Vec<Gate>,
    /// What to do when it fails.
    pub on_fail: Option<RepairEdge>,
}

impl Phase {
    /// The role whose environment and allowlist apply, if any.
    #[must_use]
    pub fn owner(&self) -> Option<&Name> {
        match &self.kind {
            PhaseKind::Agent { owner } => Some(owner),
            PhaseKind::Code(code) => code.owner.as_ref(),
        }
    }

    /// Whether an agent does it.
    #[must_use]
    pub fn is_agent(&self) -> bool {
        matches!(self.kind, PhaseKind::Agent { .. })
    }
}

/// What kind of step a phase is.
#[derive(Debug, Clone, PartialEq)]
pub enum PhaseKind {
    /// An agent of the roster acts.
    Agent {
        /// The role that acts.
        owner: Name,
    },
    /// A command of the operator runs.
    Code(CodePhase),
}

/// A command run by `/bin/sh -c` in the work tree.
#[derive(Debug, Clone, PartialEq)]
pub struct CodePhase {
    /// The role whose `env` applies.
    pub owner: Option<Name>,
    /// The command.
    pub command: String,
    /// Whether the last line of stdout is a report.
    pub reports_fields: bool,
    /// What the command may change; `None` is anything.
    pub writes: Option<Vec<PathPattern>>,
}

/// A verification of a phase's claims.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// Which check.
    pub name: GateName,
    /// The command of `tests_pass`.
    pub command: Option<String>,
    /// Corrections allowed; 0 means the default.
    pub budget: u32,
    /// Globs exempt from `tests_intact`.
    pub allow: Vec<String>,
}

/// Every gate there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateName {
    /// Every claimed artifact exists.
    ArtifactsExist,
    /// No claimed artifact is an empty file.
    FilesNonEmpty,
    /// `changed_files` equals the real change.
    DiffMatchesClaims,
    /// `approved`, `blocking` and `findings` agree.
    VerdictConsistent,
    /// A command exits 0.
    TestsPass,
    /// No test was weakened since the base commit.
    TestsIntact,
}

impl GateName {
    /// Every gate, in the order of their spelling.
    pub const ALL: [Self; 6] = [
        Self::ArtifactsExist,
        Self::DiffMatchesClaims,
        Self::FilesNonEmpty,
        Self::TestsIntact,
        Self::TestsPass,
        Self::VerdictConsistent,
    ];

    /// The gate as definitions spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ArtifactsExist => "artifacts_exist",
            Self::FilesNonEmpty => "files_non_empty",
            Self::DiffMatchesClaims => "diff_matches_claims",
            Self::VerdictConsistent => "verdict_consistent",
            Self::TestsPass => "tests_pass",
            Self::TestsIntact => "tests_intact",
        }
    }
}

impl fmt::Display for GateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A bounded loop back: what to run when a phase fails, and what to do then.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairEdge {
    /// Agent phases: the condition on that phase's own envelope. Code: `None`.
    pub when: Option<Predicate>,
    /// The phase that repairs.
    pub run: Name,
    /// What runs after it.
    pub then: Rerun,
    /// How often the edge may be used, 1 to 20.
    pub budget: u32,
    /// What happens when the budget is spent.
    pub exhausted: Exhausted,
}

/// What follows a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rerun {
    /// The failed phase again.
    RerunSelf,
    /// Everything between the repair and the failed phase, then that phase.
    RerunChain,
}

/// What happens when a repair edge's budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exhausted {
    /// The attempt fails.
    #[default]
    FailJob,
    /// The chain goes on; acceptance still judges.
    Proceed,
}

/// One entry of `acceptance`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AcceptanceCheck {
    /// Every phase passed or was skipped. Always judged, listed or not.
    AllPhasesPassed,
    /// Every instance of the gate passed.
    Gate(GateName),
    /// The gate of that one phase ran and passed.
    PhaseGate(Name, GateName),
}

impl fmt::Display for AcceptanceCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllPhasesPassed => f.write_str("all_phases_passed"),
            Self::Gate(gate) => gate.fmt(f),
            Self::PhaseGate(phase, gate) => write!(f, "{phase}.{gate}"),
        }
    }
}

/// Delivery policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Publish {
    /// Judged over the field view after acceptance; holding needs a person.
    pub hold_when: Option<Predicate>,
    /// What CI means for this definition.
    pub ci: Option<CiPolicy>,
}

/// What CI means for a definition.
#[derive(Debug, Clone, PartialEq)]
pub struct CiPolicy {
    /// Whether a green CI is part of accepted.
    pub wait: bool,
    /// How long to wait on one head.
    pub timeout: Duration,
    /// How often a red CI is run again before it counts.
    pub rerun_budget: Option<u32>,
    /// Which phase repairs a red CI.
    pub on_fail: Option<CiRepair>,
}

/// The repair of a red CI.
#[derive(Debug, Clone, PartialEq)]
pub struct CiRepair {
    /// The agent phase that repairs.
    pub run: Name,
    /// Rounds, 1 to 3.
    pub budget: u32,
}

/// Whether download caches of toolchains outlive an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CachePolicy {
    /// Shared by the commands of one repository, and by each role of it.
    #[default]
    Shared,
    /// Private to each attempt.
    Off,
}

/// Clocks that a definition may tighten; `None` is the value of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clocks {
    /// One entry of a phase, one code command, one gate command.
    pub phase_timeout: Option<Duration>,
    /// No byte from the agent for this long ends the send.
    pub silence_timeout: Option<Duration>,
    /// The whole attempt.
    pub attempt_ceiling: Option<Duration>,
}

/// What the kernel sandbox must offer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxRules {
    /// Refuse to run below this tier.
    pub require: Option<SandboxTier>,
    /// More paths to hide from agents.
    pub hide: Vec<String>,
    /// Hidden paths to show all the same.
    pub allow: Vec<String>,
}

/// How much the kernel prevents, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxTier {
    /// The boundary alone.
    None,
    /// A Landlock domain.
    Landlock,
    /// Namespaces and a Landlock domain.
    Namespace,
}

impl SandboxTier {
    /// The tier as flags and records spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Landlock => "landlock",
            Self::Namespace => "namespace",
        }
    }
}
