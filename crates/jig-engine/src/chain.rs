//! The chain: every phase in order, and the loops that edges make.

use std::sync::Arc;

use jig_protocol::definition::{Exhausted, Phase, RepairEdge};
use jig_protocol::envelope::Envelope;
use jig_protocol::event::{Checkpoint, EventBody, PhaseSkipped, RepairEdgeUsed, RepairExhausted};
use jig_protocol::outcome::{Cause, PhaseResult, PhaseStatus};

use crate::attempt::Attempt;
use crate::ending::Ending;
use crate::entry::kind_of;
use crate::fault::Step as FaultStep;
use crate::repair::{self, Decision, RunView, Step};
use crate::state::PhaseRun;

/// What the next phase is handed.
type Handed = Option<Arc<Envelope>>;

impl Attempt<'_> {
    /// Runs the chain to its end.
    pub(crate) async fn run_chain(&mut self) -> Result<(), Ending> {
        let definition = Arc::clone(&self.definition);
        let mut previous: Handed = None;
        for (index, phase) in definition.phases.iter().enumerate() {
            self.check_clocks(&format!("before phase {}", phase.name))?;
            if self.guard_holds(phase) {
                let run = self.run_with_edge(index, phase, previous.clone()).await?;
                previous = run.envelope.or(previous);
            } else {
                self.skip(phase, true);
            }
        }
        Ok(())
    }

    fn guard_holds(&self, phase: &Phase) -> bool {
        phase
            .guard
            .as_ref()
            .is_none_or(|guard| guard.holds(self.state.fields.values()))
    }

    fn skip(&mut self, phase: &Phase, tell: bool) {
        if tell {
            let guard = phase
                .guard
                .as_ref()
                .map_or_else(String::new, ToString::to_string);
            self.trace.emit(
                Some(phase.name.as_str()),
                &EventBody::PhaseSkipped(PhaseSkipped { guard }),
            );
        }
        self.state.records.push(PhaseResult {
            phase: phase.name.to_string(),
            kind: kind_of(phase),
            status: PhaseStatus::Skipped,
            phase_attempt: None,
            envelope: None,
            gates: Vec::new(),
            error: None,
            class: None,
            started_at: None,
            ended_at: self.engine.host.clock.now(),
        });
    }

    /// Runs a phase and whatever its edge asks for, until it passes, fails for
    /// good, or its edge is spent.
    async fn run_with_edge(
        &mut self,
        index: usize,
        phase: &Phase,
        handed: Handed,
    ) -> Result<PhaseRun, Ending> {
        let mut run = self.run_phase(index, phase, handed).await?;
        loop {
            let used = self.edge_uses(phase);
            match repair::decide(phase, view(&run), used) {
                Decision::Pass => return Ok(run),
                Decision::Fail => return Err(failure_of(phase, &run)),
                Decision::Repair { nth } => {
                    let Some(edge) = &phase.on_fail else {
                        return Err(failure_of(phase, &run));
                    };
                    self.state.edge_uses.insert(phase.name.to_string(), nth);
                    self.trace.emit(
                        Some(phase.name.as_str()),
                        &EventBody::RepairEdge(RepairEdgeUsed {
                            run: edge.run.to_string(),
                            r#use: nth,
                            budget: edge.budget,
                        }),
                    );
                    let handed = self.repair(index, edge, run.envelope.clone()).await?;
                    run = self.run_phase(index, phase, handed).await?;
                }
                Decision::Exhausted(policy) => {
                    return self.exhausted(phase, run, policy);
                }
            }
        }
    }

    /// One use of an edge: everything that runs before the failed phase does
    /// again. Gives what that phase is handed.
    async fn repair(
        &mut self,
        failed: usize,
        edge: &RepairEdge,
        envelope: Handed,
    ) -> Result<Handed, Ending> {
        let definition = Arc::clone(&self.definition);
        let steps = repair::plan(&definition, failed, edge, |phase| {
            self.state.first_status(phase)
        })
        .map_err(|error| Ending::configuration(error.to_string()))?;
        let mut handed = envelope;
        for step in steps {
            let (Step::Run(index) | Step::SkipAgain(index) | Step::AskGuard(index)) = step;
            let Some(phase) = definition.phases.get(index) else {
                continue;
            };
            let runs = match step {
                Step::Run(_) => true,
                Step::SkipAgain(_) => {
                    self.skip(phase, false);
                    false
                }
                Step::AskGuard(_) => {
                    let holds = self.guard_holds(phase);
                    if !holds {
                        self.skip(phase, true);
                    }
                    holds
                }
            };
            if !runs {
                continue;
            }
            let run = self.run_phase(index, phase, handed.clone()).await?;
            if run.failure.is_some() {
                let ending = failure_of(phase, &run);
                return Err(Ending {
                    error: format!("repair phase {} failed: {}", phase.name, ending.error),
                    ..ending
                });
            }
            handed = run.envelope.or(handed);
        }
        Ok(handed)
    }

    fn exhausted(
        &self,
        phase: &Phase,
        run: PhaseRun,
        policy: Exhausted,
    ) -> Result<PhaseRun, Ending> {
        let Some(edge) = &phase.on_fail else {
            return Err(failure_of(phase, &run));
        };
        let word = match policy {
            Exhausted::FailJob => "fail-job",
            Exhausted::Proceed => "proceed",
        };
        self.trace.emit(
            Some(phase.name.as_str()),
            &EventBody::RepairExhausted(RepairExhausted {
                budget: edge.budget,
                policy: word.to_owned(),
            }),
        );
        match policy {
            Exhausted::Proceed => Ok(run),
            Exhausted::FailJob => {
                let why = run.failure.map_or_else(
                    || "its own verdict asks for another repair".to_owned(),
                    |failure| failure.error,
                );
                Err(Ending::failed(
                    Cause::RepairExhausted,
                    format!(
                        "the repair budget of phase {} is spent: its edge to {} was used {} of {} times ({why})",
                        phase.name,
                        edge.run,
                        self.edge_uses(phase),
                        edge.budget,
                    ),
                ))
            }
        }
    }

    /// One run of a phase, deaths and corrections included; no edge fires.
    async fn run_phase(
        &mut self,
        index: usize,
        phase: &Phase,
        handed: Handed,
    ) -> Result<PhaseRun, Ending> {
        self.check_clocks(&format!("before phase {}", phase.name))?;
        let run = if phase.is_agent() {
            self.run_agent_phase(index, handed).await?
        } else {
            self.run_code_phase(index).await?
        };
        if run.failure.is_none() {
            self.checkpoint(phase).await?;
        }
        self.trace.flush().await;
        Ok(run)
    }

    /// Keeps what a passed phase left as a commit of its own.
    async fn checkpoint(&mut self, phase: &Phase) -> Result<(), Ending> {
        self.reach(FaultStep::Checkpoint)?;
        self.state.checkpoints += 1;
        let number = self.state.checkpoints;
        let unwinding = self.unwinding();
        let commit = unwinding
            .bound(self.boundary()?.checkpoint(phase.name.as_str(), number))
            .await
            .map_err(|reason| Ending::infrastructure(format!("no checkpoint: {reason}")))?
            .map_err(|error| Ending::broken(&error))?;
        if let Some(commit) = commit {
            self.trace.emit(
                Some(phase.name.as_str()),
                &EventBody::Checkpoint(Checkpoint {
                    phase: phase.name.to_string(),
                    commit,
                }),
            );
        }
        Ok(())
    }

    fn edge_uses(&self, phase: &Phase) -> u32 {
        self.state
            .edge_uses
            .get(phase.name.as_str())
            .copied()
            .unwrap_or(0)
    }

    /// Ends the attempt when a clock or a person asks for it.
    pub(crate) fn check_clocks(&self, when: &str) -> Result<(), Ending> {
        match self.deadline.reached() {
            None => Ok(()),
            Some(reason) => Err(Ending::stopped(reason, when)),
        }
    }
}

fn view(run: &PhaseRun) -> RunView<'_> {
    RunView {
        failed: run.failure.is_some(),
        envelope: run.envelope.as_ref().map(|envelope| &envelope.fields),
    }
}

fn failure_of(phase: &Phase, run: &PhaseRun) -> Ending {
    match &run.failure {
        Some(failure) => Ending::failed(failure.cause, failure.error.clone()),
        None => Ending::infrastructure(format!("phase {} failed without a reason", phase.name)),
    }
}
