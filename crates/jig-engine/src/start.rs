//! What happens before the first phase: who acts, and whether they can.

use std::collections::BTreeMap;
use std::sync::Arc;

use jig_process::StopReason;
use jig_protocol::definition::features::not_yet_runnable;
use jig_protocol::definition::{RuntimeName, SandboxTier};
use jig_protocol::event::{AttemptStart, EventBody, RuntimeInUse, Sandbox};
use jig_protocol::outcome::{Cause, SandboxReport};
use jig_protocol::{limits, text};
use jig_runtime::{AgentRuntime, Capabilities};

use crate::attempt::{Attempt, Request};
use crate::boundary::Boundary;
use crate::ending::Ending;
use crate::fault::Step;

/// The agent of one role.
#[derive(Debug, Clone)]
pub(crate) struct RoleRuntime {
    pub(crate) runtime: Arc<dyn AgentRuntime>,
    pub(crate) capabilities: Capabilities,
}

/// The agents of the roles that act, by role.
pub(crate) type RoleRuntimes = BTreeMap<String, RoleRuntime>;

impl Attempt<'_> {
    /// Finds the agents, tells of the start and captures the tree.
    pub(crate) async fn start(&mut self, request: &Request) -> Result<(), Ending> {
        self.refuse_what_cannot_run()?;
        self.find_runtimes(request).await?;
        self.announce_start(request);
        self.check_capabilities()?;
        self.open_boundary().await
    }

    fn refuse_what_cannot_run(&self) -> Result<(), Ending> {
        let missing = not_yet_runnable(&self.definition);
        if !missing.is_empty() {
            return Err(Ending::configuration(format!(
                "this version cannot run a definition that uses {}",
                missing.join(", ")
            )));
        }
        match self.definition.sandbox.require {
            None | Some(SandboxTier::None) => Ok(()),
            Some(tier) => Err(Ending::configuration(format!(
                "the definition requires the sandbox tier {}, and there is none",
                tier.as_str()
            ))),
        }
    }

    /// Resolves and probes the runtime of every role that owns an agent phase.
    async fn find_runtimes(&mut self, request: &Request) -> Result<(), Ending> {
        let definition = Arc::clone(&self.definition);
        let mut probed: BTreeMap<RuntimeName, RoleRuntime> = BTreeMap::new();
        for phase in definition.phases.iter().filter(|phase| phase.is_agent()) {
            let Some(owner) = phase.owner() else { continue };
            let Some(role) = definition.roster.get(owner) else {
                continue;
            };
            let name = definition.runtime_of(
                role,
                request.runtime_override.as_ref(),
                request.default_runtime.as_ref(),
            );
            let found = match probed.get(&name) {
                Some(found) => found.clone(),
                None => {
                    let found = self.probe(&name).await?;
                    probed.insert(name, found.clone());
                    found
                }
            };
            self.runtimes.insert(owner.to_string(), found);
        }
        Ok(())
    }

    async fn probe(&self, name: &RuntimeName) -> Result<RoleRuntime, Ending> {
        self.reach(Step::Probe)?;
        let runtime = self.engine.runtimes.get(name).ok_or_else(|| {
            Ending::configuration(format!("the runtime {name} is not available here"))
        })?;
        if let Some(known) = self.engine.known.get(name) {
            return Ok(RoleRuntime {
                runtime: Arc::clone(runtime),
                capabilities: known.clone(),
            });
        }
        let bound = self
            .deadline
            .and_within(limits::PROBE_TIMEOUT, StopReason::PhaseTimeout);
        match bound.bound(runtime.probe()).await {
            Ok(Ok(capabilities)) => Ok(RoleRuntime {
                runtime: Arc::clone(runtime),
                capabilities,
            }),
            Ok(Err(error)) => Err(Ending::configuration(format!(
                "the runtime {name} cannot be used: {}",
                text::with_causes(&error)
            ))),
            Err(StopReason::PhaseTimeout) => Err(Ending::configuration(format!(
                "the runtime {name} did not say who it is within {} s",
                limits::PROBE_TIMEOUT.as_secs()
            ))),
            Err(reason) => Err(Ending::stopped(reason, "while a runtime was probed")),
        }
    }

    fn announce_start(&self, request: &Request) {
        let in_use: BTreeMap<&RuntimeName, &Capabilities> = self
            .runtimes
            .values()
            .map(|role| (&role.capabilities.name, &role.capabilities))
            .collect();
        self.trace.emit(
            None,
            &EventBody::AttemptStart(AttemptStart {
                attempt_id: request.attempt_id.to_string(),
                job_id: request.job_id.to_string(),
                attempt_number: request.attempt_number,
                definition: self.definition.name.to_string(),
                definition_digest: blake3::hash(request.snapshot.as_bytes())
                    .to_hex()
                    .to_string(),
                base: self.prepared.base_sha(),
                runtimes: in_use
                    .values()
                    .map(|found| RuntimeInUse {
                        name: found.name.to_string(),
                        version: found.version.clone(),
                        can_resume: found.can_resume,
                    })
                    .collect(),
                prompts: self
                    .prepared
                    .prompts
                    .values()
                    .flat_map(|role| role.files.iter().cloned())
                    .collect(),
            }),
        );
        let sandbox = SandboxReport::none();
        self.trace.emit(
            None,
            &EventBody::Sandbox(Sandbox {
                tier: sandbox.tier,
                abi: sandbox.abi,
                verified: sandbox.verified,
                hidden_paths: Vec::new(),
                writable: Vec::new(),
                not_covered: sandbox.not_covered,
            }),
        );
    }

    /// An option that a runtime cannot honour is known before it is asked.
    fn check_capabilities(&self) -> Result<(), Ending> {
        for (name, found) in &self.runtimes {
            let role = self
                .definition
                .roster
                .iter()
                .find(|(role, _)| role.as_str() == name);
            let Some((_, role)) = role else { continue };
            let cannot = [
                (
                    role.tools.as_ref().is_some_and(|tools| !tools.is_empty())
                        && !found.capabilities.supports_tools,
                    "tools",
                ),
                (
                    role.budget_usd.is_some_and(|cap| cap > 0.0)
                        && !found.capabilities.supports_budget,
                    "budget_usd",
                ),
            ];
            if let Some((_, option)) = cannot.iter().find(|(cannot, _)| *cannot) {
                return Err(Ending::failed(
                    Cause::UnsupportedOption,
                    format!(
                        "role {name} declares {option}, which the runtime {} cannot enforce; \
                         remove it or choose another runtime",
                        found.capabilities.name
                    ),
                ));
            }
        }
        Ok(())
    }

    async fn open_boundary(&mut self) -> Result<(), Ending> {
        self.reach(Step::Open)?;
        let opened = self
            .deadline
            .bound(Boundary::open(
                self.prepared,
                &self.definition,
                Arc::clone(&self.engine.host.clock),
            ))
            .await
            .map_err(|reason| Ending::stopped(reason, "while the work tree was captured"))?;
        self.boundary = Some(opened.map_err(|error| {
            Ending::infrastructure(format!(
                "the work tree could not be captured: {}",
                text::with_causes(&error)
            ))
        })?);
        Ok(())
    }

    /// The agent of a role.
    pub(crate) fn runtime_of(&self, role: &str) -> Result<&RoleRuntime, Ending> {
        self.runtimes
            .get(role)
            .ok_or_else(|| Ending::infrastructure(format!("role {role} has no runtime")))
    }
}
