//! One entry's conversation: ask, read the answer, verify it, correct.
//!
//! The outer ladder is the gates: every gate runs in every round, and a round
//! that fails costs one gate correction. The inner ladder is the parser: each
//! answer has its own parse corrections, fresh in every round.

use jig_process::{Deadline, StopReason};
use jig_protocol::definition::bounds::correction_budget;
use jig_protocol::definition::{Phase, Role};
use jig_protocol::envelope::Envelope;
use jig_protocol::event::{EventBody, InvalidEnvelope};
use jig_protocol::outcome::{Cause, FailureClass};
use jig_protocol::{limits, text};
use std::sync::Arc;

use super::prompt;
use super::send::Sent;
use crate::attempt::Attempt;
use crate::ending::Ending;
use crate::entry::{Close, own_failure};
use crate::state::Failure;

/// What stays the same over an entry's conversation.
#[derive(Debug)]
pub(super) struct Ladder<'a> {
    pub(super) phase: &'a Phase,
    pub(super) owner: &'a str,
    pub(super) role: &'a Role,
    /// The entry's clock, and everything above it.
    pub(super) deadline: Deadline,
}

impl Ladder<'_> {
    pub(super) fn name(&self) -> &str {
        self.phase.name.as_str()
    }

    fn failed(cause: Cause, class: Option<FailureClass>, error: String) -> Close {
        Close::Failed {
            failure: Failure { cause, error },
            class,
        }
    }
}

impl Attempt<'_> {
    /// Asks and corrects until the entry ends.
    pub(super) async fn climb(
        &mut self,
        ladder: &Ladder<'_>,
        first_prompt: String,
        repeats: &mut u32,
    ) -> Close {
        let budget = correction_budget(ladder.phase);
        let mut prompt = first_prompt;
        let mut round = 1;
        loop {
            let envelope = match self.answer(ladder, prompt, repeats).await {
                Ok(envelope) => Arc::new(envelope),
                Err(close) => return close,
            };
            if let Some(open) = self.state.open.as_mut() {
                open.envelope = Some(Arc::clone(&envelope));
            }
            let violations = match self
                .run_gates(ladder.phase, round, &envelope, &ladder.deadline)
                .await
            {
                Ok(violations) => violations,
                Err(ending) => {
                    return Close::Ended {
                        ending,
                        class: None,
                    };
                }
            };
            if violations.is_empty() {
                return Close::Finished {
                    failure: own_failure(ladder.name(), &envelope),
                };
            }
            if let Some(close) = self.no_more_rounds(ladder, round, budget, &violations) {
                return close;
            }
            prompt = prompt::gate_correction(self.gate_reports());
            self.state.budgets.gate_corrections += 1;
            round += 1;
        }
    }

    /// Whether a round that failed was the last one, and why.
    fn no_more_rounds(
        &self,
        ladder: &Ladder<'_>,
        round: u32,
        budget: u32,
        violations: &[String],
    ) -> Option<Close> {
        let why = match ladder.deadline.reached() {
            Some(StopReason::PhaseTimeout) => "before the phase's time was up".to_owned(),
            // Other reasons end the next send before it starts.
            _ if round > budget => format!("in {round} rounds"),
            _ => return None,
        };
        Some(Ladder::failed(
            Cause::Gate,
            None,
            format!(
                "the gates of phase {} did not pass {why}: {}",
                ladder.name(),
                violations.join("; ")
            ),
        ))
    }

    /// One answer that is an envelope, parse corrections included.
    async fn answer(
        &mut self,
        ladder: &Ladder<'_>,
        prompt: String,
        repeats: &mut u32,
    ) -> Result<Envelope, Close> {
        let mut prompt = prompt;
        let mut emissions = 0;
        loop {
            let text = match self.ask(ladder, &prompt, repeats).await {
                Sent::Answered(text) => text,
                Sent::Ended(close) => return Err(close),
            };
            emissions += 1;
            let error = match Envelope::extract(&text) {
                Ok(envelope) => return Ok(envelope),
                Err(error) => error.to_string(),
            };
            self.tell_invalid(ladder, emissions, &error, &text);
            if emissions > limits::PARSE_CORRECTIONS {
                return Err(Ladder::failed(
                    Cause::Parse,
                    None,
                    format!(
                        "the agent of phase {} gave no valid envelope in {emissions} answers; the last one: {error}",
                        ladder.name()
                    ),
                ));
            }
            self.state.budgets.parse_corrections += 1;
            prompt = prompt::parse_correction(&error);
        }
    }

    fn tell_invalid(&self, ladder: &Ladder<'_>, emissions: u32, error: &str, answer: &str) {
        let clean = self.trace.redactor().text(answer);
        self.trace.emit(
            Some(ladder.name()),
            &EventBody::InvalidEnvelope(InvalidEnvelope {
                role: ladder.owner.to_owned(),
                parse_attempt: emissions,
                error: error.to_owned(),
                raw: text::head(&clean, limits::INVALID_ENVELOPE_BYTES).to_owned(),
            }),
        );
    }

    /// Ends an entry on an outside reason, as far as the entry's clock is not
    /// the one that fired.
    pub(super) fn outside(reason: StopReason, phase: &str, class: Option<FailureClass>) -> Close {
        Close::Ended {
            ending: Ending::stopped(reason, &format!("during phase {phase}")),
            class,
        }
    }
}
