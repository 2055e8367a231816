//! A run of a code phase.

use std::sync::Arc;

use jig_process::{CommandEnd, Deadline, StopReason};
use jig_protocol::definition::{CodePhase, Phase, PhaseKind};
use jig_protocol::event::{CommandResult, EventBody};
use jig_protocol::outcome::Cause;
use jig_protocol::{limits, text};

use super::report::{Adapted, adapt};
use crate::attempt::Attempt;
use crate::boundary::EntryKind;
use crate::command::end_text;
use crate::ending::Ending;
use crate::entry::{Close, Closed};
use crate::fault::Step;
use crate::state::{Failure, PhaseRun};

/// Of a failed command's output in the attempt's error.
const SHOWN_BYTES: usize = 1024;

impl Attempt<'_> {
    /// Runs a code phase once.
    pub(crate) async fn run_code_phase(&mut self, index: usize) -> Result<PhaseRun, Ending> {
        let definition = Arc::clone(&self.definition);
        let Some((phase, code)) = definition.phases.get(index).and_then(command_of) else {
            return Err(Ending::configuration(format!(
                "phase number {} has no command",
                index + 1
            )));
        };
        self.open_entry(index);
        let close = match self.perform(phase, code).await {
            Ok(close) => close,
            Err(ending) => Close::Ended {
                ending,
                class: None,
            },
        };
        match self.close(close).await? {
            Closed::Run(run) => Ok(run),
            Closed::Died { error } => Err(Ending::infrastructure(error)),
        }
    }

    async fn perform(&mut self, phase: &Phase, code: &CodePhase) -> Result<Close, Ending> {
        self.capture_before(EntryKind::Code).await?;
        let limit = self.phase_timeout();
        let deadline = self.deadline.and_within(limit, StopReason::PhaseTimeout);
        let adapted = self.command(phase, code, &deadline).await?;
        self.tell_result(phase, &adapted);
        let envelope = Arc::new(adapted.envelope.clone());
        if let Some(open) = self.state.open.as_mut() {
            open.envelope = Some(Arc::clone(&envelope));
            open.reported.clone_from(&adapted.reported);
        }
        let round = self.state.open.as_ref().map_or(1, |open| open.number);
        let violations = self.run_gates(phase, round, &envelope, &deadline).await?;
        let failure = match adapted.failure {
            Some(how) => Some(Failure {
                cause: Cause::Command,
                error: format!(
                    "the command of phase {} failed: {how}{}",
                    phase.name,
                    shown(&envelope)
                ),
            }),
            None if violations.is_empty() => None,
            None => Some(Failure {
                cause: Cause::Gate,
                error: format!(
                    "the gates of phase {} did not pass: {}",
                    phase.name,
                    violations.join("; ")
                ),
            }),
        };
        Ok(Close::Finished { failure })
    }

    /// Runs the command to its end. A stop from outside ends the attempt; the
    /// phase's own clock is a failure of the command.
    async fn command(
        &mut self,
        phase: &Phase,
        code: &CodePhase,
        deadline: &Deadline,
    ) -> Result<Adapted, Ending> {
        let env = self.command_env(phase).await?;
        self.reach(Step::Command)?;
        self.trace.flush().await;
        let (name, commands) = self.begin_command(phase);
        let last_line = code.reports_fields.then_some(limits::REPORT_LINE_BYTES);
        let outcome = commands
            .run(&code.command, &env, &name, last_line, deadline)
            .await
            .map_err(|error| {
                Ending::infrastructure(format!(
                    "the command of phase {} could not be run: {}",
                    phase.name,
                    text::with_causes(&error)
                ))
            })?;
        self.tell_leftovers(
            phase.name.as_str(),
            &outcome.teardown.leftovers,
            &outcome.teardown.survivors,
        );
        self.reach(Step::CommandEnded)?;
        match outcome.end {
            CommandEnd::Stopped(reason) if reason != StopReason::PhaseTimeout => Err(
                Ending::stopped(reason, &format!("during phase {}", phase.name)),
            ),
            end => {
                let how = end_text(&end, self.phase_timeout());
                Ok(adapt(&code.command, &outcome, how, code.reports_fields))
            }
        }
    }

    fn tell_result(&self, phase: &Phase, adapted: &Adapted) {
        let text_of = |field: &str| {
            adapted
                .envelope
                .field(field)
                .and_then(serde_json::Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        self.trace.emit(
            Some(phase.name.as_str()),
            &EventBody::CommandResult(CommandResult {
                exit_code: adapted.exit_code,
                timed_out: adapted.timed_out,
                output_tail: text_of("output_tail"),
                stderr_tail: text_of("stderr_tail"),
                reported_fields: adapted.reported.iter().cloned().collect(),
            }),
        );
    }
}

fn command_of(phase: &Phase) -> Option<(&Phase, &CodePhase)> {
    match &phase.kind {
        PhaseKind::Code(code) => Some((phase, code)),
        PhaseKind::Agent { .. } => None,
    }
}

/// The end of what a failed command said, for people.
fn shown(envelope: &jig_protocol::envelope::Envelope) -> String {
    let said = |field: &str| {
        envelope
            .field(field)
            .and_then(serde_json::Value::as_str)
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    match said("stderr_tail").or_else(|| said("output_tail")) {
        Some(said) => format!("; it said: {}", text::tail(said, SHOWN_BYTES)),
        None => String::new(),
    }
}
