//! The values of a group of parallel writers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::name::Name;

/// Two to four agent phases that write at the same time in trees of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct ParallelWriters {
    /// Consecutive agent phases in chain order.
    pub members: Vec<WriterMember>,
    /// Every path with two owners.
    pub shared: Vec<crate::repo_path::RepoPath>,
    /// How edits of a shared file are merged.
    pub shared_merge: SharedMerge,
    /// What runs on a conflict.
    pub on_conflict: Option<OnConflict>,
    /// What happens when the members cannot run in parallel.
    pub on_ineligible: OnIneligible,
    /// Whether each child's sandbox must be verified.
    pub require_sandbox: bool,
}

/// One member of a group of writers.
#[derive(Debug, Clone, PartialEq)]
pub struct WriterMember {
    /// The phase.
    pub phase: Name,
    /// The files it owns.
    pub owns: Vec<crate::repo_path::RepoPath>,
    /// Resources no two members may hold at once.
    pub locks: Vec<String>,
    /// Commands that judge the member's result.
    pub checks: Vec<WriterCheck>,
}

/// A command that judges a member's result.
#[derive(Debug, Clone, PartialEq)]
pub struct WriterCheck {
    /// Unique within the member.
    pub id: Name,
    /// The command.
    pub command: String,
    /// Literal variables; `$JIG_TMP` is replaced.
    pub env: BTreeMap<String, String>,
    /// What the unchanged baseline may do.
    pub baseline: Baseline,
    /// Exit codes that count as the expected failure.
    pub fail_exits: Vec<i32>,
    /// How long it may take.
    pub timeout: Option<Duration>,
}

/// What a check may do on the unchanged baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// It must pass.
    #[default]
    MustPass,
    /// It may fail with one of `fail_exits`.
    MayFail,
}

/// How edits of a shared file are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SharedMerge {
    /// Edits may touch; overlapping ones conflict (strict).
    #[default]
    Adjacent,
    /// Only edits that merge cleanly.
    Clean,
    /// Any edit by two members conflicts.
    Never,
}

/// What runs on a conflict between writers.
#[derive(Debug, Clone, PartialEq)]
pub struct OnConflict {
    /// The agent phase that reconciles.
    pub run: Name,
    /// How often.
    pub budget: u32,
    /// What happens then.
    pub exhausted: ConflictExhausted,
}

/// What happens when reconciliation is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictExhausted {
    /// A person decides.
    #[default]
    Hold,
    /// The attempt fails.
    FailJob,
}

/// What happens when writers cannot run in parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnIneligible {
    /// They run in order, with the same gates; the reason is recorded.
    #[default]
    Sequential,
    /// The attempt fails.
    FailJob,
}
