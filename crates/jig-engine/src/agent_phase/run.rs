//! A run of an agent phase: entries until one of them does not die.

use std::sync::Arc;

use jig_process::StopReason;
use jig_protocol::definition::bounds::correction_budget;
use jig_protocol::definition::{Name, Phase, Role};
use jig_protocol::envelope::Envelope;
use jig_protocol::event::{AgentStart, EventBody};
use jig_protocol::outcome::Cause;
use jig_protocol::text;

use super::ladder::Ladder;
use super::prompt::{self, PromptValues};
use crate::attempt::Attempt;
use crate::boundary::EntryKind;
use crate::budget::backoff;
use crate::ending::Ending;
use crate::entry::{Close, Closed};
use crate::fault::Step;
use crate::home::HomeError;
use crate::state::{Failure, PhaseRun};

impl Attempt<'_> {
    /// Runs an agent phase: as many entries as deaths make necessary and its
    /// budget allows.
    pub(crate) async fn run_agent_phase(
        &mut self,
        index: usize,
        handed: Option<Arc<Envelope>>,
    ) -> Result<PhaseRun, Ending> {
        let definition = Arc::clone(&self.definition);
        let (phase, owner, role) = acting(&definition, index)?;
        let budget = correction_budget(phase);
        let mut repeats = 0;
        let mut deaths = 0;
        loop {
            let closed = self
                .agent_entry(index, phase, owner, role, handed.as_deref(), &mut repeats)
                .await?;
            let error = match closed {
                Closed::Run(run) => return Ok(run),
                Closed::Died { error } => error,
            };
            deaths += 1;
            self.state.budgets.deaths += 1;
            let attempt = self.attempt_id.clone();
            self.state.renew_session(&attempt, owner.as_str(), false);
            if deaths > budget {
                return Ok(PhaseRun::failed(Failure {
                    cause: Cause::Death,
                    error: format!(
                        "the agent of phase {} died {deaths} times; the last time: {error}",
                        phase.name
                    ),
                }));
            }
            self.pause(deaths, phase).await?;
        }
    }

    /// Waits a little after a death: what killed the agent may still be going
    /// on.
    async fn pause(&mut self, deaths: u32, phase: &Phase) -> Result<(), Ending> {
        let wait = backoff(deaths, None, self.jitter()).mul_f64(self.engine.wait_scale);
        let during = format!("before phase {} was entered again", phase.name);
        match self.deadline.bound(self.sleep(wait)).await {
            Ok(()) => self
                .deadline
                .reached()
                .map_or(Ok(()), |reason| Err(Ending::stopped(reason, &during))),
            Err(reason) => Err(Ending::stopped(reason, &during)),
        }
    }

    /// One entry, closed whichever way it ends.
    async fn agent_entry(
        &mut self,
        index: usize,
        phase: &Phase,
        owner: &Name,
        role: &Role,
        handed: Option<&Envelope>,
        repeats: &mut u32,
    ) -> Result<Closed, Ending> {
        self.open_entry(index);
        let close = match self.enter(phase, owner, role, handed).await {
            Ok(first_prompt) => {
                let ladder = Ladder {
                    phase,
                    owner: owner.as_str(),
                    role,
                    deadline: self
                        .deadline
                        .and_within(self.phase_timeout(), StopReason::PhaseTimeout),
                };
                self.climb(&ladder, first_prompt, repeats).await
            }
            Err(ending) => Close::Ended {
                ending,
                class: None,
            },
        };
        self.close(close).await
    }

    /// Everything before the first send; gives its prompt.
    async fn enter(
        &mut self,
        phase: &Phase,
        owner: &Name,
        role: &Role,
        handed: Option<&Envelope>,
    ) -> Result<String, Ending> {
        self.capture_before(EntryKind::Agent).await?;
        self.seed(owner).await?;
        let prompts = self.prepared.prompts.get(owner.as_str()).ok_or_else(|| {
            Ending::infrastructure(format!("the prompts of role {owner} were not read"))
        })?;
        let handoff = self.prepared.dirs.handoff();
        let text = prompt::compose(
            &prompts.user,
            &PromptValues {
                parameters: &self.parameters,
                previous: handed.map(|envelope| envelope.raw.get()),
                handoff_dir: &handoff.to_string_lossy(),
                base_sha: &self.prepared.base_sha(),
            },
        );
        self.announce(phase, owner, role)?;
        Ok(text)
    }

    fn announce(&mut self, phase: &Phase, owner: &Name, role: &Role) -> Result<(), Ending> {
        let capabilities = self.runtime_of(owner.as_str())?.capabilities.clone();
        let attempt = self.attempt_id.clone();
        let session = self
            .state
            .session(&attempt, owner.as_str())
            .session
            .key
            .clone();
        let Some(open) = self.state.open.as_mut() else {
            return Err(Ending::infrastructure("no entry is open"));
        };
        open.agent = Some(owner.to_string());
        let start = AgentStart {
            model: role.model.clone(),
            session,
            can_resume: capabilities.can_resume,
            effort: role.effort.map(|effort| effort.as_str().to_owned()),
            budget_usd: role.budget_usd,
            tools: role.tools.clone(),
            phase_attempt: open.number,
            runtime: capabilities.name.to_string(),
        };
        self.trace.emit(
            Some(phase.name.as_str()),
            &EventBody::AgentStart {
                role: owner.to_string(),
                start,
            },
        );
        Ok(())
    }

    /// Captures the tree before an entry, bounded by the attempt's clocks.
    pub(crate) async fn capture_before(&mut self, kind: EntryKind) -> Result<(), Ending> {
        self.reach(Step::Capture)?;
        let deadline = self.deadline.clone();
        let captured = deadline
            .bound(self.boundary()?.before_entry(kind))
            .await
            .map_err(|reason| Ending::stopped(reason, "while the work tree was captured"))?;
        let before = captured.map_err(|error| {
            Ending::infrastructure(format!(
                "the work tree could not be captured: {}",
                text::with_causes(&error)
            ))
        })?;
        if let Some(open) = self.state.open.as_mut() {
            open.before = Some(before);
        }
        Ok(())
    }

    /// Reads the operator's login for a role, once.
    async fn seed(&mut self, owner: &Name) -> Result<(), Ending> {
        if !self.seed_auth {
            return Ok(());
        }
        self.reach(Step::Seed)?;
        let runtime = Arc::clone(&self.runtime_of(owner.as_str())?.runtime);
        let seeded = self
            .deadline
            .bound(self.prepared.homes.seed(owner.as_str(), runtime.as_ref()))
            .await
            .map_err(|reason| Ending::stopped(reason, "while a login was read"))?;
        seeded.map_err(|error| match error {
            HomeError::Login(login) => Ending::failed(
                login.class.into(),
                format!("{}; {}", login.message, login.hint),
            ),
            other => Ending::broken(&other),
        })
    }
}

/// The phase at `index`, with who acts in it.
fn acting(
    definition: &jig_protocol::definition::Definition,
    index: usize,
) -> Result<(&Phase, &Name, &Role), Ending> {
    let phase = definition.phases.get(index);
    phase
        .and_then(|phase| {
            let owner = phase.owner()?;
            Some((phase, owner, definition.roster.get(owner)?))
        })
        .ok_or_else(|| {
            Ending::configuration(format!("phase number {} has no role that acts", index + 1))
        })
}
