//! What an attempt has come to so far. No I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use jig_protocol::definition::Definition;
use jig_protocol::envelope::Envelope;
use jig_protocol::outcome::{Budgets, GateReport, PhaseResult, PhaseStatus, RepairUse};
use jig_runtime::Session;

use crate::acceptance::Last;
use crate::agent_phase::Exchange;
use crate::budget::Meter;
use crate::entry::OpenEntry;
use crate::fields::FieldView;

/// The changing half of an attempt.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// What envelopes and reports have said.
    pub(crate) fields: FieldView,
    /// Every entry's terminal record, in order of their ends.
    pub(crate) records: Vec<PhaseResult>,
    /// Gates of the last entry of each phase, by name.
    pub(crate) gates: BTreeMap<String, Vec<GateReport>>,
    /// Entries so far of each phase, by name.
    pub(crate) entries: BTreeMap<String, u32>,
    /// Metered use.
    pub(crate) meter: Meter,
    /// Corrections and deaths; repairs are in `edge_uses`.
    pub(crate) budgets: Budgets,
    /// Uses of each phase's edge, by the phase's name.
    pub(crate) edge_uses: BTreeMap<String, u32>,
    /// The conversation of each role.
    pub(crate) sessions: BTreeMap<String, RoleSession>,
    /// Number of the last fresh session.
    pub(crate) fresh_sessions: u32,
    /// Number of the last checkpoint.
    pub(crate) checkpoints: u32,
    /// The entry that has begun and has no terminal record yet.
    pub(crate) open: Option<OpenEntry>,
}

/// One role's conversation in this attempt.
#[derive(Debug)]
pub(crate) struct RoleSession {
    /// The session as the runtime knows it.
    pub(crate) session: Session,
    /// What was said in it and in those it replaced, for a runtime that cannot
    /// resume.
    pub(crate) transcript: Vec<Exchange>,
    /// Whether anything was sent in it yet.
    pub(crate) used: bool,
}

impl State {
    /// Counts an entry of `phase`; the first is 1.
    pub(crate) fn count_entry(&mut self, phase: &str) -> u32 {
        let count = self.entries.entry(phase.to_owned()).or_insert(0);
        *count += 1;
        *count
    }

    /// The status of the first record of `phase`, the decision that a replay
    /// keeps.
    pub(crate) fn first_status(&self, phase: &str) -> Option<PhaseStatus> {
        self.records
            .iter()
            .find(|record| record.phase == phase)
            .map(|record| record.status)
    }

    /// The last entry of `phase`, for the verdict.
    pub(crate) fn last(&self, phase: &str) -> Option<Last<'_>> {
        let record = self
            .records
            .iter()
            .rev()
            .find(|record| record.phase == phase)?;
        Some(Last {
            status: record.status,
            gates: self.gates.get(phase).map_or(&[], Vec::as_slice),
        })
    }

    /// How far each budget was drawn on.
    pub(crate) fn budgets(&self, definition: &Definition) -> Budgets {
        let repairs = definition
            .phases
            .iter()
            .filter_map(|phase| {
                let edge = phase.on_fail.as_ref()?;
                Some(RepairUse {
                    phase: phase.name.to_string(),
                    used: self
                        .edge_uses
                        .get(phase.name.as_str())
                        .copied()
                        .unwrap_or(0),
                    budget: edge.budget,
                })
            })
            .collect();
        Budgets {
            repairs,
            ..self.budgets.clone()
        }
    }

    /// The conversation of `role`, begun when there is none.
    pub(crate) fn session(&mut self, attempt: &str, role: &str) -> &mut RoleSession {
        self.sessions
            .entry(role.to_owned())
            .or_insert_with(|| RoleSession {
                session: Session::new(format!("{attempt}-{role}")),
                transcript: Vec::new(),
                used: false,
            })
    }

    /// Replaces the conversation of `role` by a fresh one under a new key. What
    /// was said is forgotten unless `remember`.
    pub(crate) fn renew_session(&mut self, attempt: &str, role: &str, remember: bool) {
        self.fresh_sessions += 1;
        let key = format!("{attempt}-{role}-r{}", self.fresh_sessions);
        let before = self.sessions.remove(role);
        let transcript = match before {
            Some(before) if remember => before.transcript,
            _ => Vec::new(),
        };
        self.sessions.insert(
            role.to_owned(),
            RoleSession {
                session: Session::new(key),
                transcript,
                used: false,
            },
        );
    }
}

/// How a run of a phase ended, as the chain and its edges see it.
#[derive(Debug, Clone)]
pub(crate) struct PhaseRun {
    /// What it handed on, if it got that far.
    pub(crate) envelope: Option<Arc<Envelope>>,
    /// Why it failed; `None` when it passed.
    pub(crate) failure: Option<Failure>,
}

/// Why a run failed without ending the attempt by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// For machines.
    pub(crate) cause: jig_protocol::outcome::Cause,
    /// For people.
    pub(crate) error: String,
}

impl PhaseRun {
    /// A run that failed before it could hand anything on.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self {
            envelope: None,
            failure: Some(failure),
        }
    }
}
