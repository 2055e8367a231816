//! What a verdict over an entry's changes means: its events, and a breach.

use jig_protocol::definition::{Definition, PhaseKind};
use jig_protocol::event::{
    self, EventBody, IgnoredTouched, MetadataRestored, PathsTouched, TransientWrite,
};
use jig_protocol::limits;
use jig_protocol::repo_path::RepoPath;

use super::close::OpenEntry;
use crate::attempt::Attempt;
use crate::boundary::{Judge, JudgeKind, Verdict};
use crate::breach::{self, Breached};
use crate::ending::Ending;

impl Attempt<'_> {
    /// The events of a verdict, a breach aside.
    pub(super) fn tell(&self, phase: &str, open: &OpenEntry, verdict: &Verdict, passed: bool) {
        let role = self.actor(open.index);
        let touched = |paths: &[RepoPath]| PathsTouched {
            role: role.clone(),
            paths: paths.to_vec(),
        };
        let emit = |body: EventBody| self.trace.emit(Some(phase), &body);
        if !verdict.metadata_restored.is_empty() {
            emit(EventBody::MetadataRestored(MetadataRestored {
                paths: verdict.metadata_restored.clone(),
            }));
        }
        if !verdict.outputs.is_empty() {
            emit(EventBody::BuildOutputsTouched(touched(&verdict.outputs)));
        }
        if !verdict.ignored.is_empty() {
            emit(EventBody::IgnoredTouched(IgnoredTouched {
                count: verdict.ignored.len(),
                first: first_of(&verdict.ignored),
            }));
        }
        if !verdict.transient.is_empty() {
            emit(EventBody::TransientWrite(TransientWrite {
                paths: verdict.transient.clone(),
            }));
        }
        if passed && verdict.breaches.is_empty() && !verdict.touched.is_empty() {
            emit(EventBody::PathsTouched(touched(&verdict.touched)));
        }
    }

    /// Tells of a breach and ends the attempt with it.
    pub(super) fn breach(&self, phase: &str, open: &OpenEntry, verdict: &Verdict) -> Ending {
        let rules = rules_of(&self.definition, open.index);
        let breached = Breached {
            phase: Some(phase),
            role: self.actor(open.index),
            writes: rules
                .writes
                .map(|writes| writes.iter().map(ToString::to_string).collect()),
            breaches: &verdict.breaches,
            outputs: &verdict.outputs,
            list: format!("breach-{phase}-{}", open.number),
        };
        let paths = breach::tell(&self.trace, &self.logs, breached);
        Ending::breach(format!(
            "phase {phase} wrote what it may not write, {paths}"
        ))
    }

    /// Metadata that steers git is a breach, also when its author died.
    pub(super) fn dead_breach(&self, open: &OpenEntry, breaches: Vec<event::Breach>) -> Ending {
        let verdict = Verdict {
            breaches,
            ..Verdict::default()
        };
        self.breach(&self.phase_name(open.index), open, &verdict)
    }
}

/// The rules that a phase's changes are judged by.
pub(super) fn rules_of(definition: &Definition, index: usize) -> Judge<'_> {
    let phase = definition.phases.get(index);
    let owner = phase.and_then(|phase| phase.owner());
    let name = owner.or(phase.map(|phase| &phase.name));
    let mut rules = Judge {
        role: name.map_or("", |name| name.as_str()),
        // Nothing may be written where no rule is known.
        writes: Some(&[]),
        build_outputs: &definition.build_outputs,
        commits: false,
        kind: JudgeKind::Agent,
    };
    match phase.map(|phase| &phase.kind) {
        Some(PhaseKind::Code(code)) => {
            rules.writes = code.writes.as_deref();
            rules.commits = true;
            rules.kind = JudgeKind::Code;
        }
        Some(PhaseKind::Agent { owner }) => {
            if let Some(role) = definition.roster.get(owner) {
                rules.writes = role.writes.as_deref();
                rules.commits = role.commits;
            }
        }
        None => {}
    }
    rules
}

fn first_of(paths: &[RepoPath]) -> Vec<RepoPath> {
    paths
        .iter()
        .take(limits::BREACH_PATHS_SHOWN as usize)
        .cloned()
        .collect()
}
