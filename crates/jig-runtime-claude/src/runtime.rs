//! The adapter.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use jig_protocol::definition::RuntimeName;
use jig_protocol::outcome::FailureClass;
use jig_runtime::probe::{Asker, demand_flags};
use jig_runtime::{
    AgentRuntime, BoxFuture, Capabilities, OperatorHome, ProbeError, Seed, SeedError, SendControl,
    SendReport, SendRequest, Session, supervise,
};
use uuid::Uuid;

use crate::command_line::{self, Conversation};
use crate::translate::ClaudeDialect;
use crate::{login, probe};

/// What the adapter needs from whoever makes it.
#[derive(Clone)]
pub struct ClaudeConfig {
    /// The CLI: an absolute path, found by the caller on the operator's PATH,
    /// so that a role's environment need not find it.
    pub program: PathBuf,
    /// How the CLI is asked about itself, and a keychain about the login. Its
    /// environment must have a HOME: without one the CLI takes the user's own.
    pub asker: Asker,
    /// Fresh random bytes, for the ids of conversations.
    pub random: Arc<dyn Fn() -> [u8; 16] + Send + Sync>,
}

impl fmt::Debug for ClaudeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaudeConfig")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

/// Claude Code as a runtime.
#[derive(Debug)]
pub struct ClaudeRuntime {
    config: ClaudeConfig,
}

impl ClaudeRuntime {
    /// The adapter; nothing is started yet.
    #[must_use]
    pub const fn new(config: ClaudeConfig) -> Self {
        Self { config }
    }

    async fn ask_who_it_is(&self) -> Result<Capabilities, ProbeError> {
        let ClaudeConfig { program, asker, .. } = &self.config;
        let found = asker
            .version(program, probe::MINIMUM_VERSION, probe::version_word)
            .await?;
        let help = asker.ask(program, ["--help"]).await?;
        demand_flags(
            program,
            &found.word,
            &help.stdout,
            &command_line::NEEDED_FLAGS,
        )?;
        Ok(Capabilities {
            name: self.name(),
            can_resume: true,
            reports_cost: true,
            supports_tools: true,
            supports_budget: true,
            supports_effort: help.stdout.contains("--effort"),
            supports_structured: help.stdout.contains("--json-schema"),
            warnings: found.warning.into_iter().collect(),
            version: found.word,
        })
    }

    /// The login in the system's keychain.
    #[cfg(target_os = "macos")]
    async fn keychain(&self) -> Option<Vec<u8>> {
        const ITEM: [&str; 4] = [
            "find-generic-password",
            "-s",
            "Claude Code-credentials",
            "-w",
        ];
        let mut asker = self.config.asker.clone();
        // A keychain may ask its user; nobody may be there.
        asker.bound = std::time::Duration::from_secs(10);
        let answer = asker
            .ask(std::path::Path::new("/usr/bin/security"), ITEM)
            .await
            .ok()?;
        let login = answer.stdout.trim();
        (answer.code == 0 && !login.is_empty()).then(|| login.as_bytes().to_vec())
    }

    /// The login in the system's keychain: there is none here.
    #[cfg(not(target_os = "macos"))]
    #[expect(
        clippy::unused_async,
        reason = "asking a keychain waits where there is one"
    )]
    async fn keychain(&self) -> Option<Vec<u8>> {
        None
    }

    async fn make_send(
        &self,
        session: &mut Session,
        request: SendRequest,
        control: SendControl,
    ) -> SendReport {
        // An id that was used once is taken, also when that send failed.
        let known = session.native_id.clone().filter(|_| session.sends > 0);
        let id = known.clone().unwrap_or_else(|| {
            let bytes = (self.config.random)();
            uuid::Builder::from_random_bytes(bytes)
                .into_uuid()
                .as_hyphenated()
                .to_string()
        });
        session.native_id = Some(id.clone());
        let conversation = match &known {
            Some(id) if Uuid::try_parse(id).is_err() => {
                return SendReport::not_started(
                    FailureClass::Other,
                    format!("{id:?} is no session of Claude Code"),
                );
            }
            Some(id) => Conversation::Known(id),
            None => Conversation::New(&id),
        };
        let invocation = command_line::invocation(&self.config.program, conversation, &request);
        let dialect = ClaudeDialect::new(known);
        supervise(
            &self.config.asker.host,
            invocation,
            dialect,
            session,
            request,
            control,
        )
        .await
    }
}

impl AgentRuntime for ClaudeRuntime {
    fn name(&self) -> RuntimeName {
        RuntimeName::new(RuntimeName::CLAUDE_CODE)
    }

    fn probe(&self) -> BoxFuture<'_, Result<Capabilities, ProbeError>> {
        Box::pin(self.ask_who_it_is())
    }

    fn seed<'a>(&'a self, operator: &'a OperatorHome) -> BoxFuture<'a, Result<Seed, SeedError>> {
        Box::pin(async move { login::seed(operator, self.keychain().await) })
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
