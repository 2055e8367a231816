//! Beginning an entry, ending it, undoing it.

use std::collections::BTreeSet;
use std::sync::Arc;

use jig_process::Deadline;
use jig_protocol::definition::{Phase, PhaseKind};
use jig_protocol::envelope::{Envelope, EnvelopeStatus};
use jig_protocol::event::{self, AgentOutcome, EventBody, PhaseDeath, RollbackFailed};
use jig_protocol::outcome::{
    AttemptEnd, Cause, FailureClass, GateReport, PhaseKindTag, PhaseStatus,
};
use jig_protocol::text;
use jig_protocol::time::Timestamp;

use super::verdict::rules_of;
use crate::attempt::Attempt;
use crate::boundary::{Before, Verdict};
use crate::budget::Meter;
use crate::ending::Ending;
use crate::fault::Step;
use crate::state::{Failure, PhaseRun};
use crate::unwind::caught;

/// An entry that has begun and has no terminal record yet.
#[derive(Debug)]
pub(crate) struct OpenEntry {
    /// The phase's place in the chain.
    pub(crate) index: usize,
    /// Which entry of the phase this is, from 1.
    pub(crate) number: u32,
    /// When it began.
    pub(crate) started_at: Timestamp,
    /// The tree when it began.
    pub(crate) before: Option<Before>,
    /// The role, once `agent_start` was emitted.
    pub(crate) agent: Option<String>,
    /// Whether anything was run that could have changed the tree.
    pub(crate) acted: bool,
    /// What could not be stopped: the tree is not safe to touch.
    pub(crate) survivors: Vec<String>,
    /// A send is under way and not counted yet.
    pub(crate) sending: bool,
    /// Metered use of this entry.
    pub(crate) meter: Meter,
    /// What its gates found in their last round.
    pub(crate) gates: Vec<GateReport>,
    /// The envelope it hands on.
    pub(crate) envelope: Option<Arc<Envelope>>,
    /// Fields that a successful report named.
    pub(crate) reported: BTreeSet<String>,
}

/// How an entry ends.
#[derive(Debug)]
pub(crate) enum Close {
    /// It ran to its end with an envelope; `failure` when that says so, or when
    /// a code phase failed.
    Finished {
        /// Why it failed all the same.
        failure: Option<Failure>,
    },
    /// It failed without an envelope.
    Failed {
        /// Why.
        failure: Failure,
        /// The class of the runtime's failure, where it was one.
        class: Option<FailureClass>,
    },
    /// The agent died: all of the entry is undone.
    Died {
        /// What kind of death.
        class: FailureClass,
        /// What happened.
        error: String,
    },
    /// The attempt ends with it.
    Ended {
        /// How.
        ending: Ending,
        /// The class of the runtime's failure, where it was one.
        class: Option<FailureClass>,
    },
}

impl Close {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Finished { failure } => failure.as_ref().map(|failure| failure.error.as_str()),
            Self::Failed { failure, .. } => Some(&failure.error),
            Self::Died { error, .. } => Some(error),
            Self::Ended { ending, .. } => Some(&ending.error),
        }
    }
}

impl Attempt<'_> {
    /// The name of the phase at `index`.
    pub(crate) fn phase_name(&self, index: usize) -> String {
        self.definition
            .phases
            .get(index)
            .map_or_else(String::new, |phase| phase.name.to_string())
    }

    /// Begins an entry.
    pub(crate) fn open_entry(&mut self, index: usize) {
        let definition = Arc::clone(&self.definition);
        let Some(phase) = definition.phases.get(index) else {
            return;
        };
        let number = self.state.count_entry(phase.name.as_str());
        self.state.gates.remove(phase.name.as_str());
        self.state.open = Some(OpenEntry {
            index,
            number,
            started_at: self.engine.host.clock.now(),
            before: None,
            agent: None,
            acted: false,
            survivors: Vec::new(),
            sending: false,
            meter: Meter::default(),
            gates: Vec::new(),
            envelope: None,
            reported: BTreeSet::new(),
        });
        let command = match &phase.kind {
            PhaseKind::Agent { .. } => None,
            PhaseKind::Code(code) => Some(code.command.clone()),
        };
        self.trace.emit(
            Some(phase.name.as_str()),
            &EventBody::PhaseStart(event::PhaseStart {
                kind: kind_of(phase),
                phase_attempt: number,
                owner: phase.owner().map(ToString::to_string),
                command,
            }),
        );
    }

    /// Ends the open entry, whichever way. The value is what the chain sees;
    /// an error ends the attempt.
    pub(crate) async fn close(&mut self, close: Close) -> Result<Closed, Ending> {
        let Some(mut open) = self.state.open.take() else {
            return Err(Ending::infrastructure("an entry was closed twice"));
        };
        if std::mem::take(&mut open.sending) {
            open.meter.count(None);
            self.state.meter.count(None);
        }
        let phase = self.phase_name(open.index);
        if matches!(close, Close::Ended { .. }) {
            self.ends();
        }
        let close = match close {
            Close::Died { class, error } => {
                return self.close_dead(open, &phase, class, error).await;
            }
            other => other,
        };
        // Also when judging itself panics, the entry gets its records.
        let judged = caught(self.judge(&open, &phase))
            .await
            .unwrap_or_else(|panic| Err(Ending::infrastructure(panic)));
        let close = match judged {
            Ok(None) => close,
            Ok(Some(verdict)) => {
                let passed = matches!(close, Close::Finished { .. });
                self.tell(&phase, &open, &verdict, passed);
                if verdict.breaches.is_empty() {
                    close
                } else {
                    let ending = self.breach(&phase, &open, &verdict);
                    Close::Ended {
                        ending: ending.after(close.text()),
                        class: None,
                    }
                }
            }
            Err(ending) => Close::Ended {
                ending: ending.after(close.text()),
                class: None,
            },
        };
        self.record_close(open, &phase, close)
    }

    /// Judges what the entry changed, on a clock of its own. `None` when
    /// nothing of it ran.
    async fn judge(&mut self, open: &OpenEntry, phase: &str) -> Result<Option<Verdict>, Ending> {
        let (true, Some(before)) = (open.acted, open.before.as_ref()) else {
            return Ok(None);
        };
        still_running(open)?;
        self.reach(Step::Enforce)?;
        let definition = Arc::clone(&self.definition);
        let rules = rules_of(&definition, open.index);
        let unwinding = self.unwinding();
        let boundary = self.boundary()?;
        match unwinding.bound(boundary.after_entry(before, rules)).await {
            Ok(Ok(verdict)) => Ok(Some(verdict)),
            Ok(Err(error)) => Err(Ending::infrastructure(format!(
                "the changes of phase {phase} could not be judged: {}",
                text::with_causes(&error)
            ))),
            Err(reason) => Err(Ending::infrastructure(format!(
                "the changes of phase {phase} could not be judged: {reason}"
            ))),
        }
    }

    /// Undoes a dead entry exactly, breaches included.
    async fn close_dead(
        &mut self,
        open: OpenEntry,
        phase: &str,
        class: FailureClass,
        error: String,
    ) -> Result<Closed, Ending> {
        self.agent_end(&open, phase, AgentOutcome::Died, Some(class));
        self.trace.emit(
            Some(phase),
            &EventBody::PhaseDeath {
                role: self.actor(open.index),
                death: PhaseDeath {
                    phase_attempt: open.number,
                    error: error.clone(),
                    class,
                },
            },
        );
        let undone = caught(self.undo(&open))
            .await
            .unwrap_or_else(|panic| Err(Ending::infrastructure(panic)));
        if let Err(ending) = &undone
            && ending.end != AttemptEnd::Breach
        {
            self.trace.emit(
                Some(phase),
                &EventBody::RollbackFailed(RollbackFailed {
                    error: ending.error.clone(),
                }),
            );
        }
        self.record(
            &open,
            phase,
            PhaseStatus::Fail,
            Some(error.clone()),
            Some(class),
        );
        self.trace.flush().await;
        undone.map_err(|ending| ending.after(Some(&error)))?;
        Ok(Closed::Died { error })
    }

    async fn undo(&mut self, open: &OpenEntry) -> Result<(), Ending> {
        let (true, Some(before)) = (open.acted, open.before.as_ref()) else {
            return Ok(());
        };
        still_running(open)?;
        self.reach(Step::Restore)?;
        let unwinding = self.unwinding();
        let boundary = self.boundary()?;
        match unwinding.bound(boundary.restore(before)).await {
            Ok(Ok(undone)) if undone.breaches.is_empty() => Ok(()),
            Ok(Ok(undone)) => Err(self.dead_breach(open, undone.breaches)),
            Ok(Err(error)) => Err(Ending::infrastructure(format!(
                "a dead entry could not be undone: {}",
                text::with_causes(&error)
            ))),
            Err(reason) => Err(Ending::infrastructure(format!(
                "a dead entry could not be undone: {reason}"
            ))),
        }
    }

    /// Who acts in a phase, as records name it: the role, or a command without
    /// one by its phase.
    pub(crate) fn actor(&self, index: usize) -> String {
        self.definition
            .phases
            .get(index)
            .map_or_else(String::new, |phase| {
                phase.owner().unwrap_or(&phase.name).to_string()
            })
    }

    /// The clock of judging, undoing and recording. What has reached the
    /// attempt's own clocks has ended.
    pub(crate) fn unwinding(&mut self) -> Deadline {
        if self.deadline.reached().is_some() {
            self.ends();
        }
        self.unwinding.deadline(&self.engine.host.clock)
    }

    /// The attempt ends: from now on all that is left has one clock.
    pub(crate) fn ends(&mut self) {
        self.unwinding.begin(&self.engine.host.clock);
    }
}

/// While something that was started may still write, nothing can be judged or
/// undone.
fn still_running(open: &OpenEntry) -> Result<(), Ending> {
    if open.survivors.is_empty() {
        return Ok(());
    }
    Err(Ending::infrastructure(format!(
        "{} processes could not be stopped, so the work tree was left as it is: {}",
        open.survivors.len(),
        open.survivors.join(", ")
    )))
}

/// What an entry left for the chain.
#[derive(Debug)]
pub(crate) enum Closed {
    /// The run of the phase is over.
    Run(PhaseRun),
    /// The agent died and its entry was undone.
    Died {
        /// What happened.
        error: String,
    },
}

/// Why an accepted envelope is a failure all the same: it says so itself.
pub(crate) fn own_failure(phase: &str, envelope: &Envelope) -> Option<Failure> {
    (envelope.status == EnvelopeStatus::Fail).then(|| Failure {
        cause: Cause::AgentFail,
        error: format!(
            "the agent of phase {phase} reported status \"fail\": {}",
            envelope.summary
        ),
    })
}

/// A phase's kind, as records spell it.
pub(crate) fn kind_of(phase: &Phase) -> PhaseKindTag {
    if phase.is_agent() {
        PhaseKindTag::Agent
    } else {
        PhaseKindTag::Code
    }
}
