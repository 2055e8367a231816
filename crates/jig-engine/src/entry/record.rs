//! The records an entry leaves: exactly one terminal record, and one
//! `agent_end` per `agent_start`.

use jig_protocol::event::{self, AgentEnd, AgentOutcome, EventBody, Handoff};
use jig_protocol::outcome::{Cause, FailureClass, PhaseKindTag, PhaseResult, PhaseStatus};

use super::close::{Close, Closed, OpenEntry, kind_of};
use crate::attempt::Attempt;
use crate::ending::Ending;
use crate::state::{Failure, PhaseRun};

impl Attempt<'_> {
    /// The records of an entry whose changes were judged.
    pub(super) fn record_close(
        &mut self,
        mut open: OpenEntry,
        phase: &str,
        close: Close,
    ) -> Result<Closed, Ending> {
        let (outcome, class, failure, ending) = match close {
            Close::Finished { failure } => {
                self.hand_on(&open, phase);
                let outcome = if failure.is_none() {
                    AgentOutcome::Passed
                } else {
                    AgentOutcome::Failed
                };
                (outcome, None, failure, None)
            }
            Close::Failed { failure, class } => {
                open.envelope = None;
                (AgentOutcome::Failed, class, Some(failure), None)
            }
            Close::Ended { ending, class } => {
                open.envelope = None;
                let failure = Failure {
                    cause: ending.cause,
                    error: ending.error.clone(),
                };
                (ending.agent_outcome(), class, Some(failure), Some(ending))
            }
            Close::Died { class, error } => {
                let failure = Failure {
                    cause: Cause::Death,
                    error,
                };
                (AgentOutcome::Died, Some(class), Some(failure), None)
            }
        };
        self.agent_end(&open, phase, outcome, class);
        let status = if failure.is_none() {
            PhaseStatus::Success
        } else {
            PhaseStatus::Fail
        };
        let error = failure.as_ref().map(|failure| failure.error.clone());
        self.record(&open, phase, status, error.clone(), class);
        self.trace.emit(
            Some(phase),
            &EventBody::PhaseEnd(event::PhaseEnd { status, error }),
        );
        match ending {
            Some(ending) => Err(ending),
            None => Ok(Closed::Run(PhaseRun {
                envelope: open.envelope,
                failure,
            })),
        }
    }

    /// Merges an envelope into the field view and tells of it.
    fn hand_on(&mut self, open: &OpenEntry, phase: &str) {
        let Some(envelope) = open.envelope.as_ref() else {
            return;
        };
        let Some(role) = &open.agent else {
            self.state
                .fields
                .merge_code(phase, &envelope.fields, &open.reported);
            return;
        };
        for refused in self.state.fields.merge_agent(role, &envelope.fields) {
            self.trace
                .emit(Some(phase), &EventBody::ReportedFieldProtected(refused));
        }
        self.trace.emit(
            Some(phase),
            &EventBody::Handoff {
                role: role.clone(),
                handoff: Handoff {
                    artifacts: envelope.artifacts.clone().unwrap_or_default(),
                    summary: envelope.summary.clone(),
                },
            },
        );
    }

    pub(super) fn agent_end(
        &self,
        open: &OpenEntry,
        phase: &str,
        outcome: AgentOutcome,
        class: Option<FailureClass>,
    ) {
        let Some(role) = &open.agent else { return };
        self.trace.emit(
            Some(phase),
            &EventBody::AgentEnd {
                role: role.clone(),
                end: AgentEnd {
                    outcome,
                    tokens: open.meter.tokens(),
                    cost: open.meter.spend.cost_usd,
                    context_tokens: open.meter.context_tokens,
                    sends: open.meter.spend.sends,
                    unmetered_sends: open.meter.spend.unmetered_sends,
                    late_usd: open.meter.spend.late_usd,
                    late_sends: open.meter.spend.late_sends,
                    class,
                },
            },
        );
    }

    pub(super) fn record(
        &mut self,
        open: &OpenEntry,
        phase: &str,
        status: PhaseStatus,
        error: Option<String>,
        class: Option<FailureClass>,
    ) {
        self.state
            .gates
            .insert(phase.to_owned(), open.gates.clone());
        let kind = self
            .definition
            .phases
            .get(open.index)
            .map_or(PhaseKindTag::Code, kind_of);
        self.state.records.push(PhaseResult {
            phase: phase.to_owned(),
            kind,
            status,
            phase_attempt: Some(open.number),
            envelope: open
                .envelope
                .as_ref()
                .map(|envelope| serde_json::Value::Object(envelope.fields.clone())),
            gates: open.gates.clone(),
            error,
            class,
            started_at: Some(open.started_at),
            ended_at: self.engine.host.clock.now(),
        });
    }
}
