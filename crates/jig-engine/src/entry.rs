//! One entry of a phase: from its first event to its one terminal record.
//!
//! Whatever happens in between, [`Attempt::close`] ends it: it judges the
//! entry's changes if anything of it ran, and leaves exactly one `agent_end`
//! per `agent_start` and one terminal record per entry.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use jig_process::{Deadline, StopReason};
use jig_protocol::envelope::{Envelope, EnvelopeStatus};
use jig_protocol::event::{
    self, AgentEnd, AgentOutcome, EventBody, Handoff, IgnoredTouched, MetadataRestored,
    PathsTouched, PhaseDeath, RollbackFailed, TransientWrite, WriteBoundaryBreach,
};
use jig_protocol::limits;
use jig_protocol::outcome::{
    AttemptEnd, Cause, FailureClass, GateReport, PhaseKindTag, PhaseResult, PhaseStatus,
};
use jig_protocol::repo_path::RepoPath;
use jig_protocol::time::Timestamp;

use crate::attempt::Attempt;
use crate::boundary::{Before, Judge, JudgeKind, Verdict};
use crate::budget::Meter;
use crate::ending::{Ending, chain_text};
use crate::fault::Step;
use crate::state::{Failure, PhaseRun};

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
    pub(crate) reported: std::collections::BTreeSet<String>,
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
            reported: std::collections::BTreeSet::new(),
        });
        let command = match &phase.kind {
            jig_protocol::definition::PhaseKind::Agent { .. } => None,
            jig_protocol::definition::PhaseKind::Code(code) => Some(code.command.clone()),
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
        let close = match close {
            Close::Died { class, error } => {
                return self.close_dead(open, &phase, class, error).await;
            }
            other => other,
        };
        let close = match self.judge(&open, &phase).await {
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
                chain_text(&error)
            ))),
            Err(reason) => Err(Ending::infrastructure(format!(
                "the changes of phase {phase} could not be judged: {reason}"
            ))),
        }
    }

    /// The events of a verdict, a breach aside.
    fn tell(&self, phase: &str, open: &OpenEntry, verdict: &Verdict, passed: bool) {
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
    fn breach(&self, phase: &str, open: &OpenEntry, verdict: &Verdict) -> Ending {
        let total = verdict.breaches.len();
        let list = self.breach_list(phase, open.number, verdict);
        let shown: Vec<_> = verdict
            .breaches
            .iter()
            .take(limits::BREACH_PATHS_SHOWN as usize)
            .cloned()
            .collect();
        let named: Vec<String> = shown
            .iter()
            .map(|breach| format!("{} ({})", breach.path, breach.outcome))
            .collect();
        let rest = if total > shown.len() {
            format!(" and {} more, all listed in {list}", total - shown.len())
        } else {
            String::new()
        };
        let rules = rules_of(&self.definition, open.index);
        self.trace.emit(
            Some(phase),
            &EventBody::WriteBoundaryBreach(WriteBoundaryBreach {
                role: self.actor(open.index),
                writes: rules
                    .writes
                    .map(|writes| writes.iter().map(ToString::to_string).collect()),
                breaches: shown,
                total,
                list,
                build_outputs: verdict.outputs.clone(),
            }),
        );
        Ending::breach(format!(
            "phase {phase} wrote what it may not write, {total} path{}: {}{rest}",
            if total == 1 { "" } else { "s" },
            named.join(", "),
        ))
    }

    /// Writes the whole list of a breach; gives its place, or why there is none.
    fn breach_list(&self, phase: &str, number: u32, verdict: &Verdict) -> String {
        let file = self
            .prepared
            .dirs
            .logs()
            .join(format!("breach-{phase}-{number}.txt"));
        let lines: String = verdict
            .breaches
            .iter()
            .map(|breach| {
                let path = self.trace.redactor().path(&breach.path);
                format!("{path}\t{}\n", breach.outcome)
            })
            .collect();
        match write_private(&file, &lines) {
            Ok(()) => file.to_string_lossy().into_owned(),
            Err(error) => format!("(not written: {error})"),
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
        let undone = self.undo(&open).await;
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
        self.record(&open, phase, PhaseStatus::Fail, Some(error.clone()));
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
                chain_text(&error)
            ))),
            Err(reason) => Err(Ending::infrastructure(format!(
                "a dead entry could not be undone: {reason}"
            ))),
        }
    }

    /// Metadata that steers git is a breach, also when its author died.
    fn dead_breach(&self, open: &OpenEntry, breaches: Vec<event::Breach>) -> Ending {
        let verdict = Verdict {
            breaches,
            ..Verdict::default()
        };
        self.breach(&self.phase_name(open.index), open, &verdict)
    }

    /// The records of an entry whose changes were judged.
    fn record_close(
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
        self.record(&open, phase, status, error.clone());
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

    fn agent_end(
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
                    class,
                },
            },
        );
    }

    fn record(
        &mut self,
        open: &OpenEntry,
        phase: &str,
        status: PhaseStatus,
        error: Option<String>,
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
            started_at: Some(open.started_at),
            ended_at: self.engine.host.clock.now(),
        });
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

    /// The clock of stopping and recording after an end.
    pub(crate) fn unwinding(&self) -> Deadline {
        Deadline::new(Arc::clone(&self.engine.host.clock))
            .and_within(limits::UNWIND_TIMEOUT, StopReason::Unwinding)
    }
}

fn write_private(file: &Path, text: &str) -> std::io::Result<()> {
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?
        .write_all(text.as_bytes())
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
pub(crate) fn kind_of(phase: &jig_protocol::definition::Phase) -> PhaseKindTag {
    if phase.is_agent() {
        PhaseKindTag::Agent
    } else {
        PhaseKindTag::Code
    }
}

fn rules_of(definition: &jig_protocol::definition::Definition, index: usize) -> Judge<'_> {
    use jig_protocol::definition::PhaseKind;
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
