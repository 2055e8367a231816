//! From a gate's name to its checks.

use std::time::Duration;

use jig_process::command::CommandError;
use jig_process::{Deadline, Environment, StopReason};
use jig_protocol::definition::{Gate, GateName};
use jig_protocol::envelope::Envelope;
use jig_protocol::outcome::{Check, GateReport};

use super::artifacts::{artifacts_exist, files_non_empty};
use super::diff::{EntryChanges, diff_matches_claims};
use super::tests_pass::tests_pass;
use super::verdict::verdict_consistent;
use crate::command::CommandContext;

/// Everything a gate may look at.
#[derive(Debug, Clone)]
pub struct GateContext<'a> {
    /// What the phase claims.
    pub envelope: &'a Envelope,
    /// What the entry really changed so far, or why that is not known; looked
    /// at by `diff_matches_claims` alone.
    pub changed: Result<&'a EntryChanges, &'a str>,
    /// How gate commands are run.
    pub commands: CommandContext<'a>,
    /// Their environment.
    pub env: &'a Environment,
    /// How long one gate command may take.
    pub timeout: Duration,
    /// What ends every wait of the entry.
    pub deadline: &'a Deadline,
    /// The phase.
    pub phase: &'a str,
    /// The gate's place among the phase's gates, from 0.
    pub position: usize,
}

/// What a gate found, and what its command left behind.
#[derive(Debug, Clone, PartialEq)]
pub struct GateRun {
    /// The checks and the verdict.
    pub report: GateReport,
    /// Set when the entry's deadline ended the gate's command: the verdict then
    /// says nothing about the work.
    pub stopped: Option<StopReason>,
    /// Command lines of what the command left running; all of it is gone.
    pub leftovers: Vec<String>,
    /// Command lines of what could not be ended; the tree is not safe to touch.
    pub survivors: Vec<String>,
}

/// What a gate's function gives back.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) checks: Vec<Check>,
    pub(super) stopped: Option<StopReason>,
    pub(super) leftovers: Vec<String>,
    pub(super) survivors: Vec<String>,
}

impl From<Vec<Check>> for Found {
    fn from(checks: Vec<Check>) -> Self {
        Self {
            checks,
            ..Self::default()
        }
    }
}

/// Runs one gate.
///
/// # Errors
/// When a command's supervisor could not be started; everything else is a
/// check.
pub async fn run_gate(gate: &Gate, cx: &GateContext<'_>) -> Result<GateRun, CommandError> {
    let tree = cx.commands.work_tree;
    let found = match gate.name {
        GateName::ArtifactsExist => artifacts_exist(tree, cx.envelope).into(),
        GateName::FilesNonEmpty => files_non_empty(tree, cx.envelope).into(),
        GateName::DiffMatchesClaims => diff_matches_claims(cx.envelope, cx.changed).into(),
        GateName::VerdictConsistent => verdict_consistent(cx.envelope).into(),
        GateName::TestsPass => tests_pass(gate, cx).await?,
        GateName::TestsIntact => not_available(gate.name).into(),
    };
    Ok(finish(gate, cx, found))
}

fn finish(gate: &Gate, cx: &GateContext<'_>, mut found: Found) -> GateRun {
    if found.checks.is_empty() {
        let nothing = "checked nothing: no claim that this gate could look at";
        found.checks.push(Check::fail(gate.name.as_str(), nothing));
    }
    let redact = |text: &str| cx.commands.redactor.text(text).into_owned();
    for check in &mut found.checks {
        check.item = redact(&check.item);
        check.note = redact(&check.note);
    }
    GateRun {
        report: GateReport {
            gate: gate.name.as_str().to_owned(),
            position: cx.position,
            passed: found.checks.iter().all(|check| check.ok),
            checks: found.checks,
        },
        stopped: found.stopped,
        leftovers: found.leftovers,
        survivors: found.survivors,
    }
}

/// A gate that this version cannot run fails, whatever let it get here.
fn not_available(name: GateName) -> Vec<Check> {
    vec![Check::fail(
        name.as_str(),
        "is not available in this version of jig",
    )]
}
