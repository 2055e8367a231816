//! The adapter: hands each role its next step.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jig_process::{Host, Program};
use jig_protocol::definition::RuntimeName;
use jig_protocol::outcome::FailureClass;
use jig_runtime::{
    AgentRuntime, BoxFuture, Capabilities, Invocation, OperatorHome, ProbeError, Seed, SeedError,
    SendControl, SendReport, SendRequest, Session, supervise,
};

use crate::agent::AGENT_MODE;
use crate::barrier::Barriers;
use crate::dialect::ScriptedDialect;
use crate::script::{Script, Step};
use crate::wire::Order;

/// A runtime that plays a [`Script`].
///
/// It keeps each role's place in the script, so one value serves one run.
#[derive(Debug)]
pub struct ScriptedRuntime {
    host: Host,
    script: Script,
    barriers: Arc<Barriers>,
    /// Steps taken, by role.
    taken: Mutex<BTreeMap<String, usize>>,
}

impl ScriptedRuntime {
    /// A runtime at the script's start. `host` is the program that calls
    /// [`crate::scripted_agent_main`].
    #[must_use]
    pub fn new(host: Host, script: Script) -> Self {
        Self {
            host,
            script,
            barriers: Arc::default(),
            taken: Mutex::default(),
        }
    }

    /// The script.
    #[must_use]
    pub const fn script(&self) -> &Script {
        &self.script
    }

    /// How many steps of each role were not played; roles without any are left
    /// out. Worth a warning after a run.
    #[must_use]
    pub fn unused_steps(&self) -> BTreeMap<String, usize> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        self.script
            .roles
            .iter()
            .map(|(role, steps)| {
                (
                    role.clone(),
                    steps
                        .len()
                        .saturating_sub(taken.get(role).copied().unwrap_or(0)),
                )
            })
            .filter(|(_, left)| *left > 0)
            .collect()
    }

    /// The role's next step, which counts as played from now on.
    fn take_step(&self, role: &str) -> Result<Step, String> {
        let steps = self.script.roles.get(role).map_or(&[][..], Vec::as_slice);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let at = taken.entry(role.to_owned()).or_default();
        let step = steps.get(*at).cloned().ok_or_else(|| match steps.len() {
            0 => format!("the script has no steps for role `{role}`"),
            count => {
                format!("the script has no step left for role `{role}`: all {count} were played")
            }
        })?;
        *at += 1;
        Ok(step)
    }

    async fn play(
        &self,
        session: &mut Session,
        request: SendRequest,
        control: SendControl,
    ) -> SendReport {
        let refuse = |message: String| SendReport::not_started(FailureClass::Script, message);
        let step = match self.take_step(&request.role) {
            Ok(step) => step,
            Err(message) => return refuse(message),
        };
        let order = Order {
            prompt: request.prompt.clone(),
            home: request.home.clone().into_os_string(),
            session: session
                .native_id
                .clone()
                .unwrap_or_else(|| format!("scripted-{}", session.key)),
            step,
        };
        let mut stdin = match serde_json::to_vec(&order) {
            Ok(line) => line,
            Err(error) => return refuse(format!("the step cannot be handed over: {error}")),
        };
        stdin.push(b'\n');
        let invocation = Invocation {
            program: Program::HostMode(AGENT_MODE),
            args: Vec::new(),
            env: Vec::new(),
            stdin,
            keep_stdin: true,
            private_files: Vec::new(),
        };
        let dialect = ScriptedDialect::new(
            Arc::clone(&self.barriers),
            Arc::clone(control.deadline.clock()),
        );
        supervise(&self.host, invocation, dialect, session, request, control).await
    }
}

impl AgentRuntime for ScriptedRuntime {
    fn name(&self) -> RuntimeName {
        RuntimeName::new(RuntimeName::SCRIPTED)
    }

    fn probe(&self) -> BoxFuture<'_, Result<Capabilities, ProbeError>> {
        Box::pin(async {
            Ok(Capabilities {
                name: self.name(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                can_resume: self.script.can_resume,
                reports_cost: true,
                supports_tools: true,
                supports_budget: true,
                supports_effort: true,
                supports_structured: true,
                warnings: Vec::new(),
            })
        })
    }

    fn seed<'a>(&'a self, _: &'a OperatorHome) -> BoxFuture<'a, Result<Seed, SeedError>> {
        Box::pin(async { Ok(Seed::default()) })
    }

    fn send<'a>(
        &'a self,
        session: &'a mut Session,
        request: SendRequest,
        control: SendControl,
    ) -> BoxFuture<'a, SendReport> {
        Box::pin(self.play(session, request, control))
    }
}
