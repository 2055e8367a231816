//! A place in which the adapter makes sends with the genuine program.

use std::sync::Arc;

use jig_protocol::outcome::FailureClass;
use jig_runtime::{SendEnd, SendRequest, Session};
use jig_runtime_claude::{ClaudeConfig, ClaudeRuntime};
use jig_testkit::model::{ModelServer, Script, Step};
use jig_testkit::stub::{Sent, Stub};

pub(super) struct Lab {
    pub(super) stub: Stub,
    pub(super) server: ModelServer,
    runtime: ClaudeRuntime,
}

impl Lab {
    /// `None`, after a line that says so, where the program is not installed.
    pub(super) fn new(steps: impl IntoIterator<Item = Step>) -> Option<Self> {
        let program = jig_testkit::real::claude()?;
        let stub = Stub::new("unused", "", "");
        std::fs::create_dir(stub.dir().join("tmp")).unwrap();
        let runtime = ClaudeRuntime::new(ClaudeConfig {
            program,
            asker: stub.asker(),
            random: Arc::new(|| *b"0123456789abcdef"),
        });
        Some(Self {
            server: ModelServer::start(Script::new().anthropic(steps)),
            stub,
            runtime,
        })
    }

    pub(super) const fn runtime(&self) -> &ClaudeRuntime {
        &self.runtime
    }

    /// A request whose environment is the program's own and nothing else.
    pub(super) fn request(&self) -> SendRequest {
        let mut request = self.stub.request();
        let mut env = request.env.clone();
        env.set("TMPDIR", self.stub.dir().join("tmp"));
        for (name, value) in self.server.claude_env() {
            env.set(name, value);
        }
        // One failure is enough to be classified.
        env.set("CLAUDE_CODE_MAX_RETRIES", "0");
        request.env = env;
        request
    }

    pub(super) async fn send(&self, session: &mut Session) -> Sent {
        self.send_as(session, self.request()).await
    }

    pub(super) async fn send_as(&self, session: &mut Session, request: SendRequest) -> Sent {
        self.stub.send(&self.runtime, session, request).await
    }
}

/// How it failed: class, message, whether there is advice.
#[track_caller]
pub(super) fn failed(sent: &Sent) -> (FailureClass, &str, bool) {
    match &sent.report.end {
        SendEnd::Failed {
            class,
            message,
            hint,
            ..
        } => (*class, message, hint.is_some()),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub(super) fn answer(sent: &Sent) -> &str {
    match &sent.report.end {
        SendEnd::Answered { text } => text,
        other => panic!("{other:?}"),
    }
}
