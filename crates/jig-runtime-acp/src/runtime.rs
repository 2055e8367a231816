//! The adapter.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jig_protocol::definition::{Name, RuntimeName};
use jig_protocol::limits;
use jig_protocol::outcome::FailureClass;
use jig_runtime::probe::Asker;
use jig_runtime::{
    AgentRuntime, BoxFuture, Capabilities, Confinement, Deadline, Invocation, OperatorHome,
    ProbeError, Program, Seed, SeedError, SendControl, SendEnd, SendReport, SendRequest, Session,
    StopReason, Stopped, supervise,
};

use crate::agents::{Agent, Word};
use crate::dialect::{AcpDialect, Plan};
use crate::greeting::Greeting;
use crate::{seed, settings};

/// What the adapter needs from whoever makes it.
#[derive(Debug, Clone)]
pub struct AcpConfig {
    /// The operator's name of the agent.
    pub name: Name,
    /// What the operator wrote of it.
    pub agent: Agent,
    /// Its program: an absolute path. A path that is not absolute is one that
    /// was not found, and is reported by the probe.
    pub program: PathBuf,
    /// How it is asked who it is.
    pub asker: Asker,
    /// How long each request before a prompt may take.
    pub patience: Duration,
}

/// One agent that speaks the protocol, as a runtime.
#[derive(Debug)]
pub struct AcpRuntime {
    config: AcpConfig,
}

impl AcpRuntime {
    /// The adapter; nothing is started yet.
    #[must_use]
    pub const fn new(config: AcpConfig) -> Self {
        Self { config }
    }

    /// Asks the agent who it is: starts it, and ends it once it has answered.
    ///
    /// # Errors
    ///
    /// [`ProbeError::NotFound`] when there is no such program,
    /// [`ProbeError::Unusable`] when it did not answer in time, and
    /// [`ProbeError::Unsupported`] when it speaks another version.
    pub async fn greet(&self) -> Result<Greeting, ProbeError> {
        let AcpConfig { program, asker, .. } = &self.config;
        let shown = program.display().to_string();
        if !program.is_absolute() || !program.exists() {
            return Err(ProbeError::NotFound { program: shown });
        }
        let said = self.ask_who_it_is(asker).await;
        let said = said.map_err(|detail| ProbeError::Unusable {
            program: shown.clone(),
            detail,
        })?;
        let greeting = serde_json::from_str(&said).map(|said| Greeting::read(&said));
        let greeting = greeting.unwrap_or_default();
        if !greeting.is_understood() {
            return Err(ProbeError::Unsupported {
                program: shown,
                version: greeting.title(),
                detail: "it does not speak version 1 of the Agent Client Protocol".to_owned(),
            });
        }
        Ok(greeting)
    }

    /// The agent's answer to `initialize`, or what went wrong in words.
    async fn ask_who_it_is(&self, asker: &Asker) -> Result<String, String> {
        let home = asker.env.get("HOME").map(PathBuf::from);
        let request = SendRequest {
            role: String::new(),
            prompt: String::new(),
            system_prompt: String::new(),
            model: String::new(),
            effort: None,
            budget_usd: None,
            tools: None,
            output: Default::default(),
            work_tree: asker.dir.clone(),
            home: home.unwrap_or_else(|| asker.dir.clone()),
            env: asker.env.clone(),
            remove_at_end: Vec::new(),
            confinement: Confinement::None,
        };
        // Nobody listens to what it says on the way.
        let (events, _) = tokio::sync::mpsc::channel(1);
        // The dialect gives up first, and knows what was missing.
        let bound = asker.bound.saturating_add(limits::DRAIN_GRACE);
        let control = SendControl {
            deadline: Deadline::new(Arc::clone(&asker.clock))
                .and_within(bound, StopReason::PhaseTimeout),
            silence: bound,
            events,
            live: None,
            stderr_filter: None,
        };
        let report = supervise(
            &asker.host,
            self.invocation(),
            AcpDialect::greeting(asker.bound),
            &mut Session::new("who-are-you"),
            request,
            control,
        )
        .await;
        match report.end {
            SendEnd::Answered { text } => Ok(text),
            SendEnd::Failed { message, .. } | SendEnd::NotStarted { message, .. } => Err(message),
            SendEnd::Stopped(Stopped::Cancelled) => Err("it was stopped".to_owned()),
            SendEnd::Stopped(_) => Err(format!("it took longer than {} s", bound.as_secs())),
        }
    }

    fn invocation(&self) -> Invocation {
        let args = self.config.agent.command.args();
        Invocation {
            program: Program::At(self.config.program.clone()),
            args: args.iter().map(Into::into).collect(),
            env: Vec::new(),
            stdin: Vec::new(),
            keep_stdin: true,
            private_files: Vec::new(),
        }
    }

    /// What is asked of the agent; refuses what the protocol cannot ask for.
    fn plan(&self, session: &Session, request: &SendRequest) -> Result<Plan, String> {
        let unsupported = [
            (request.tools.is_some(), "a tool allowlist"),
            (
                request.budget_usd.is_some_and(|budget| budget > 0.0),
                "a cap of one send",
            ),
            (request.effort.is_some(), "an effort"),
        ];
        if let Some((_, what)) = unsupported.iter().find(|(asked, _)| *asked) {
            return Err(format!("the runtime {} cannot enforce {what}", self.name()));
        }
        let Some(work_tree) = request.work_tree.to_str() else {
            return Err(format!(
                "the work tree {} has a path that the protocol cannot carry",
                request.work_tree.display()
            ));
        };
        let agent = &self.config.agent;
        let word = |word: &Option<Word>| word.as_ref().map(|word| word.as_str().to_owned());
        let model = word(&agent.model).unwrap_or_else(|| request.model.clone());
        let began = session.sends > 0;
        Ok(Plan {
            work_tree: work_tree.to_owned(),
            continues: session.native_id.clone().filter(|_| began && agent.resume),
            auth_method: word(&agent.auth_method),
            mode: word(&agent.mode),
            model: Some(model).filter(|model| !model.is_empty() && model != settings::DEFAULT),
            system_prompt: request.system_prompt.clone(),
            prompt: request.prompt.clone(),
        })
    }

    async fn make_send(
        &self,
        session: &mut Session,
        request: SendRequest,
        control: SendControl,
    ) -> SendReport {
        let plan = match self.plan(session, &request) {
            Ok(plan) => plan,
            Err(message) => {
                return SendReport::not_started(FailureClass::UnsupportedOption, message);
            }
        };
        supervise(
            &self.config.asker.host,
            self.invocation(),
            AcpDialect::new(plan, self.config.patience),
            session,
            request,
            control,
        )
        .await
    }
}

impl AgentRuntime for AcpRuntime {
    fn name(&self) -> RuntimeName {
        RuntimeName::acp(&self.config.name)
    }

    fn probe(&self) -> BoxFuture<'_, Result<Capabilities, ProbeError>> {
        Box::pin(async {
            let greeting = self.greet().await?;
            Ok(Capabilities {
                name: self.name(),
                version: greeting.title(),
                can_resume: greeting.continues() && self.config.agent.resume,
                // Some do, and none says so beforehand.
                reports_cost: false,
                supports_tools: false,
                supports_budget: false,
                supports_effort: false,
                supports_structured: false,
                warnings: Vec::new(),
            })
        })
    }

    fn seed<'a>(&'a self, operator: &'a OperatorHome) -> BoxFuture<'a, Result<Seed, SeedError>> {
        let AcpConfig { name, agent, .. } = &self.config;
        Box::pin(async move { seed::read(name.as_str(), &agent.seed, operator) })
    }

    fn send<'a>(
        &'a self,
        session: &'a mut Session,
        request: SendRequest,
        control: SendControl,
    ) -> BoxFuture<'a, SendReport> {
        Box::pin(self.make_send(session, request, control))
    }
}
