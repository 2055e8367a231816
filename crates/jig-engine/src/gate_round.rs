//! One round of a phase's gates, and the commands that phases and gates run.

use std::sync::Arc;
use std::time::Duration;

use jig_process::{Deadline, Environment, LiveSupervisors, StopReason};
use jig_protocol::definition::{GateName, Phase};
use jig_protocol::envelope::Envelope;
use jig_protocol::event::{EventBody, GateRound, LeftoversStopped};
use jig_protocol::outcome::GateReport;
use jig_protocol::{limits, text};

use crate::agent_phase::violations;
use crate::attempt::Attempt;
use crate::boundary::Before;
use crate::command::CommandContext;
use crate::ending::Ending;
use crate::fault::Step;
use crate::gates::{EntryChanges, GateContext, GateRun, run_gate};
use crate::home::CommandVars;
use crate::live::RecordedLive;

impl Attempt<'_> {
    /// Runs every gate of the phase, also those that passed before. Gives what
    /// did not hold, nothing when all passed.
    pub(crate) async fn run_gates(
        &mut self,
        phase: &Phase,
        round: u32,
        envelope: &Envelope,
        deadline: &Deadline,
    ) -> Result<Vec<String>, Ending> {
        if phase.gates.is_empty() {
            return Ok(Vec::new());
        }
        let env = if phase.gates.iter().any(|gate| gate.command.is_some()) {
            self.command_env(phase).await?
        } else {
            Environment::empty()
        };
        let mut reports: Vec<GateReport> = Vec::new();
        for (position, gate) in phase.gates.iter().enumerate() {
            self.reach(Step::Gate)?;
            let changed = self.changes_for(gate.name, deadline).await?;
            let run = self
                .one_gate(phase, position, envelope, &env, &changed, deadline)
                .await?;
            self.tell_gate(phase, round, &run);
            self.tell_leftovers(phase.name.as_str(), &run.leftovers, &run.survivors);
            reports.push(run.report);
            if let Some(open) = self.state.open.as_mut() {
                open.gates.clone_from(&reports);
            }
            match run.stopped {
                None | Some(StopReason::PhaseTimeout) => {}
                Some(reason) => {
                    return Err(Ending::stopped(
                        reason,
                        &format!("during gate {} of phase {}", gate.name, phase.name),
                    ));
                }
            }
        }
        Ok(violations(&reports))
    }

    async fn one_gate(
        &self,
        phase: &Phase,
        position: usize,
        envelope: &Envelope,
        env: &Environment,
        changed: &Result<EntryChanges, String>,
        deadline: &Deadline,
    ) -> Result<GateRun, Ending> {
        let Some(gate) = phase.gates.get(position) else {
            return Err(Ending::infrastructure("a gate has no place in its phase"));
        };
        let context = GateContext {
            envelope,
            changed: changed.as_ref().map_err(String::as_str),
            commands: self.commands(),
            env,
            timeout: self.phase_timeout(),
            deadline,
            phase: phase.name.as_str(),
            position,
        };
        run_gate(gate, &context).await.map_err(|error| {
            Ending::infrastructure(format!(
                "gate {} of phase {} could not be run: {}",
                gate.name,
                phase.name,
                text::with_causes(&error)
            ))
        })
    }

    /// What the entry really changed so far, for the one gate that asks.
    async fn changes_for(
        &mut self,
        gate: GateName,
        deadline: &Deadline,
    ) -> Result<Result<EntryChanges, String>, Ending> {
        if gate != GateName::DiffMatchesClaims {
            return Ok(Err("it was not looked at".to_owned()));
        }
        let Some(before) = self.beginning() else {
            return Ok(Err("the entry has no beginning".to_owned()));
        };
        let looked = deadline
            .bound(self.boundary()?.changed_since_entry(&before))
            .await;
        match looked {
            Ok(found) => Ok(found.map_err(|error| text::with_causes(&error))),
            Err(StopReason::PhaseTimeout) => Ok(Err(
                "the phase's time was up while it was looked at".to_owned(),
            )),
            Err(reason) => Err(Ending::stopped(reason, "while changes were looked at")),
        }
    }

    fn tell_gate(&self, phase: &Phase, round: u32, run: &GateRun) {
        let report = &run.report;
        self.trace.emit(
            Some(phase.name.as_str()),
            &EventBody::Gate {
                gate: report.gate.clone(),
                passed: report.passed,
                round: GateRound {
                    attempt: round,
                    position: report.position,
                    checks: report.checks.clone(),
                    violations: violations(std::slice::from_ref(report)),
                },
            },
        );
    }

    /// Tells of what a process left running; what could not be stopped makes
    /// the tree unsafe.
    pub(crate) fn tell_leftovers(&mut self, phase: &str, stopped: &[String], alive: &[String]) {
        if let Some(open) = self.state.open.as_mut() {
            open.survivors.extend_from_slice(alive);
        }
        if stopped.is_empty() {
            return;
        }
        self.trace.emit(
            Some(phase),
            &EventBody::LeftoversStopped(LeftoversStopped {
                count: stopped.len(),
                commands: stopped.to_vec(),
            }),
        );
    }

    /// The tree as the open entry began.
    fn beginning(&self) -> Option<Before> {
        self.state.open.as_ref()?.before.clone()
    }

    /// What the gates of the open entry found in their last round.
    pub(crate) fn gate_reports(&self) -> &[GateReport] {
        self.state
            .open
            .as_ref()
            .map_or(&[], |open| open.gates.as_slice())
    }

    /// How long an entry, a command and a gate may take.
    pub(crate) fn phase_timeout(&self) -> Duration {
        self.definition
            .limits
            .phase_timeout
            .unwrap_or(limits::PHASE_TIMEOUT)
    }

    /// The environment of the phase's commands.
    pub(crate) async fn command_env(&mut self, phase: &Phase) -> Result<Environment, Ending> {
        // Not given up half-way: what jig leaves unfinished in the attempt's
        // repository would be taken for something that an agent put there.
        let unwinding = self.unwinding();
        let before = self
            .beginning()
            .ok_or_else(|| Ending::infrastructure("a command's entry has no beginning"))?;
        let head_sha = unwinding
            .bound(self.boundary()?.head_sha(&before))
            .await
            .map_err(|reason| Ending::stopped(reason, "while JIG_HEAD_SHA was made"))?
            .map_err(|error| Ending::broken(&error))?;
        if let Some(reason) = self.deadline.reached() {
            return Err(Ending::stopped(reason, "while JIG_HEAD_SHA was made"));
        }
        let vars = CommandVars {
            base_sha: self.prepared.base_sha(),
            head_sha,
            attempt_id: self.attempt_id.clone(),
            phase: phase.name.to_string(),
        };
        let owner = phase
            .owner()
            .and_then(|owner| self.definition.roster.get(owner));
        Ok(self.prepared.homes.command_env(owner, &vars))
    }

    /// How commands are run.
    pub(crate) fn commands(&self) -> CommandContext<'_> {
        CommandContext {
            host: &self.engine.host.host,
            work_tree: &self.prepared.work_tree,
            logs: &self.logs,
            redactor: self.trace.redactor(),
            live: Some(self.live_supervisors()),
        }
    }

    /// Marks the open entry as having acted; gives the name its command's
    /// output is kept under.
    pub(crate) fn begin_command(&mut self, phase: &Phase) -> (String, CommandContext<'_>) {
        let number = self.state.open.as_mut().map_or(0, |open| {
            open.acted = true;
            open.number
        });
        (format!("{}-{number}", phase.name), self.commands())
    }

    /// Who records supervisors while they live.
    pub(crate) fn live_supervisors(&self) -> Arc<dyn LiveSupervisors> {
        Arc::new(RecordedLive(self.prepared.manifest.clone()))
    }
}
