//! A place in which an adapter makes sends with the genuine program, whose model
//! is scripted on loopback.

use std::ffi::OsString;

use jig_protocol::outcome::FailureClass;
use jig_runtime::{AgentRuntime, SendEnd, SendRequest, Session};

use crate::model::ModelServer;
use crate::stub::{Sent, Stub};

/// The place.
pub struct Lab<R> {
    /// HOME, work tree, deadline.
    pub stub: Stub,
    /// What the program talks to.
    pub server: ModelServer,
    /// The adapter.
    pub runtime: R,
    env: Vec<(OsString, OsString)>,
}

impl<R: AgentRuntime> Lab<R> {
    /// A place whose sends have `env` and what every send has.
    pub fn new(
        server: ModelServer,
        env: Vec<(OsString, OsString)>,
        make: impl FnOnce(&Stub, &ModelServer) -> R,
    ) -> Self {
        let stub = Stub::new("unused", "", "");
        std::fs::create_dir(stub.dir().join("tmp"))
            .unwrap_or_else(|error| panic!("no directory for temporary files: {error}"));
        Self {
            runtime: make(&stub, &server),
            stub,
            server,
            env,
        }
    }

    /// A request whose environment is the program's own and nothing else.
    pub fn request(&self) -> SendRequest {
        let mut request = self.stub.request();
        request.env.set("TMPDIR", self.stub.dir().join("tmp"));
        for (name, value) in &self.env {
            request.env.set(name, value);
        }
        request
    }

    /// A plain send.
    pub async fn send(&self, session: &mut Session) -> Sent {
        self.send_as(session, self.request()).await
    }

    /// A send.
    pub async fn send_as(&self, session: &mut Session, request: SendRequest) -> Sent {
        self.stub.send(&self.runtime, session, request).await
    }

    /// Nothing that was started here is left.
    ///
    /// # Panics
    ///
    /// When something is.
    #[track_caller]
    pub fn assert_nobody_left(&self) {
        crate::processes::assert_none_marked(&self.stub.dir().display().to_string());
    }
}

impl Sent {
    /// How it failed: class, message, whether there is advice.
    ///
    /// # Panics
    ///
    /// When it did not.
    #[must_use]
    #[track_caller]
    pub fn failure(&self) -> (FailureClass, &str, bool) {
        match &self.report.end {
            SendEnd::Failed {
                class,
                message,
                hint,
                ..
            } => (*class, message, hint.is_some()),
            other => panic!("no failure: {other:?}"),
        }
    }

    /// Its answer.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    #[track_caller]
    pub fn answer(&self) -> &str {
        match &self.report.end {
            SendEnd::Answered { text } => text,
            other => panic!("no answer: {other:?}"),
        }
    }
}
