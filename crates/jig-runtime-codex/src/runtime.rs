//! The adapter.

use std::path::PathBuf;

use jig_protocol::definition::{OutputMode, RuntimeName};
use jig_protocol::outcome::FailureClass;
use jig_runtime::probe::{Asker, demand_flags};
use jig_runtime::{
    AgentRuntime, BoxFuture, Capabilities, OperatorHome, ProbeError, Seed, SeedError, SendControl,
    SendReport, SendRequest, Session, supervise,
};
use uuid::Uuid;

use crate::command_line::{self, NEEDED_FLAGS};
use crate::operator::Operator;
use crate::translate::CodexDialect;
use crate::{login, probe};

/// What the adapter needs from whoever makes it.
#[derive(Debug, Clone)]
pub struct CodexConfig {
    /// The CLI: an absolute path, found by the caller on the operator's PATH,
    /// so that a role's environment need not find it.
    pub program: PathBuf,
    /// How the CLI is asked about itself. Its environment must have a HOME.
    pub asker: Asker,
    /// What of the operator's configuration holds for sends.
    pub operator: Operator,
}

/// Codex as a runtime.
#[derive(Debug)]
pub struct CodexRuntime {
    config: CodexConfig,
}

impl CodexRuntime {
    /// The adapter; nothing is started yet.
    #[must_use]
    pub const fn new(config: CodexConfig) -> Self {
        Self { config }
    }

    /// The variable from which the operator's model provider takes its key.
    #[must_use]
    pub fn key_variable(&self) -> Option<&str> {
        self.config.operator.key_variable()
    }

    async fn ask_who_it_is(&self) -> Result<Capabilities, ProbeError> {
        let CodexConfig {
            program,
            asker,
            operator,
        } = &self.config;
        let found = asker
            .version(program, probe::MINIMUM_VERSION, probe::version_word)
            .await?;
        let help = asker.ask(program, ["exec", "--help"]).await?.stdout;
        let resume = asker.ask(program, ["exec", "resume", "--help"]).await?;
        let can_resume = resume.code == 0 && resume.stdout.contains("SESSION_ID");
        demand_flags(program, &found.word, &help, &NEEDED_FLAGS)?;
        if can_resume {
            demand_flags(program, &found.word, &resume.stdout, &NEEDED_FLAGS)?;
        }
        let warnings = found.warning.into_iter();
        Ok(Capabilities {
            name: self.name(),
            version: found.word,
            can_resume,
            reports_cost: false,
            supports_tools: false,
            supports_budget: false,
            supports_effort: true,
            supports_structured: help.contains("--output-schema"),
            warnings: warnings.chain(operator.left_out().to_vec()).collect(),
        })
    }

    async fn make_send(
        &self,
        session: &mut Session,
        request: SendRequest,
        control: SendControl,
    ) -> SendReport {
        let unsupported = [
            (request.tools.is_some(), "a tool allowlist"),
            (
                request.budget_usd.is_some_and(|budget| budget > 0.0),
                "a cap of one send",
            ),
        ];
        if let Some((_, what)) = unsupported.iter().find(|(asked, _)| *asked) {
            return SendReport::not_started(
                FailureClass::UnsupportedOption,
                format!("the runtime {} cannot enforce {what}", self.name()),
            );
        }
        let thread = session.native_id.clone().filter(|_| session.sends > 0);
        if let Some(id) = thread.as_ref().filter(|id| Uuid::try_parse(id).is_err()) {
            return SendReport::not_started(
                FailureClass::Other,
                format!("{id:?} is no thread of Codex"),
            );
        }
        let CodexConfig {
            program,
            asker,
            operator,
        } = &self.config;
        let invocation = command_line::invocation(program, thread.as_deref(), &request, operator);
        let structured = request.output == OutputMode::Structured;
        supervise(
            &asker.host,
            invocation,
            CodexDialect::new(thread).structured(structured),
            session,
            request,
            control,
        )
        .await
    }
}

impl AgentRuntime for CodexRuntime {
    fn name(&self) -> RuntimeName {
        RuntimeName::new(RuntimeName::CODEX)
    }

    fn probe(&self) -> BoxFuture<'_, Result<Capabilities, ProbeError>> {
        Box::pin(self.ask_who_it_is())
    }

    fn seed<'a>(&'a self, operator: &'a OperatorHome) -> BoxFuture<'a, Result<Seed, SeedError>> {
        Box::pin(async move { login::seed(operator, &self.config.operator) })
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
