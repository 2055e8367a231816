//! A place to send from.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jig_protocol::definition::OutputMode;
use jig_protocol::outcome::FailureClass;
use jig_protocol::time::Clock;
use jig_runtime::{
    AgentRuntime, Confinement, Deadline, Environment, RuntimeEvent, SendControl, SendEnd,
    SendReport, SendRequest, Session,
};
use jig_runtime_scripted::{Script, ScriptedRuntime};
use tokio::sync::mpsc;

pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) runtime: Arc<ScriptedRuntime>,
    pub(crate) deadline: Deadline,
}

pub(crate) struct Sent {
    pub(crate) report: SendReport,
    pub(crate) session: Session,
    pub(crate) events: Vec<RuntimeEvent>,
}

impl Bench {
    pub(crate) fn new(script: &str) -> Self {
        Self::with_clock(script, Arc::new(jig_process::SystemClock::new()))
    }

    pub(crate) fn with_clock(script: &str, clock: Arc<dyn Clock>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        std::fs::create_dir(dir.path().join("tree")).unwrap();
        let script = script.replace("{dir}", dir.path().to_str().unwrap());
        let script = Script::parse(&script).unwrap();
        Self {
            dir,
            runtime: Arc::new(ScriptedRuntime::new(jig_testkit::host(), script)),
            deadline: Deadline::new(clock),
        }
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Makes one send of a session, to its end.
    pub(crate) fn send_in(
        &self,
        role: &str,
        prompt: &str,
        mut session: Session,
    ) -> impl Future<Output = Sent> + Send + 'static {
        let (events, mut receiver) = mpsc::channel(8);
        let control = SendControl {
            deadline: self.deadline.clone(),
            silence: Duration::from_secs(300),
            events,
            live: None,
            stderr_filter: None,
        };
        let request = SendRequest {
            role: role.to_owned(),
            prompt: prompt.to_owned(),
            system_prompt: String::new(),
            model: String::new(),
            effort: None,
            budget_usd: None,
            tools: None,
            output: OutputMode::Text,
            work_tree: self.tree(),
            home: self.home(),
            env: Environment::empty()
                .with(
                    "PATH",
                    std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()),
                )
                .with("HOME", self.home()),
            remove_at_end: Vec::new(),
            confinement: Confinement::None,
        };
        let runtime = Arc::clone(&self.runtime);
        async move {
            let sending = runtime.send(&mut session, request, control);
            let taking = async {
                let mut events = Vec::new();
                while let Some(event) = receiver.recv().await {
                    events.push(event);
                }
                events
            };
            let both = async { tokio::join!(sending, taking) };
            let (report, events) = tokio::time::timeout(jig_testkit::BOUND, both)
                .await
                .expect("the end of the send");
            Sent {
                report,
                session,
                events,
            }
        }
    }

    pub(crate) async fn send(&self, role: &str, prompt: &str) -> Sent {
        self.send_in(role, prompt, Session::new(format!("attempt-{role}")))
            .await
    }
}

impl Sent {
    pub(crate) fn answer(&self) -> &str {
        match &self.report.end {
            SendEnd::Answered { text } => text,
            other => panic!("{other:?}"),
        }
    }

    /// The class and the message of a failure.
    pub(crate) fn failure(&self) -> (FailureClass, &str) {
        match &self.report.end {
            SendEnd::Failed { class, message, .. } | SendEnd::NotStarted { class, message } => {
                (*class, message)
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn log(&self, name: &str) -> Option<(&str, Option<&serde_json::Value>)> {
        self.events.iter().find_map(|event| match event {
            RuntimeEvent::Log { log, text, detail } if log == name => {
                Some((text.as_str(), detail.as_ref()))
            }
            _ => None,
        })
    }
}
