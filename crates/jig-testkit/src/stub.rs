//! A stub in an agent program's place, and sends made through it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jig_process::{Confinement, Deadline, Environment, SystemClock};
use jig_protocol::definition::OutputMode;
use jig_runtime::probe::Asker;
use jig_runtime::{AgentRuntime, RuntimeEvent, SendControl, SendReport, SendRequest, Session};

use crate::wait::BOUND;

/// A directory with a HOME, a work tree and a program of the test's own.
pub struct Stub {
    dir: tempfile::TempDir,
    name: &'static str,
    /// What bounds the sends.
    pub deadline: Deadline,
}

/// A send that has ended, and what it said.
pub struct Sent {
    /// How it ended.
    pub report: SendReport,
    /// What it said, in order.
    pub events: Vec<RuntimeEvent>,
}

impl Stub {
    /// A shell script in the place of the program `name`: it answers questions
    /// as `probe` says (branches of a `case` over all its arguments), records
    /// `args`, `env` and `stdin`, and then does `act`. `@DIR@` in either stands
    /// for the directory.
    #[must_use]
    pub fn new(name: &'static str, probe: &str, act: &str) -> Self {
        let dir = must("a directory", tempfile::tempdir());
        for name in ["home", "tree"] {
            must("a directory", std::fs::create_dir(dir.path().join(name)));
        }
        let stub = Self {
            dir,
            name,
            deadline: Deadline::new(Arc::new(SystemClock::new())),
        };
        stub.install(&format!(
            r#"#!/bin/sh
case "$*" in
{probe}
esac
env > @DIR@/env
for word in "$@"; do printf '%s\n' "$word"; done > @DIR@/args
cat > @DIR@/stdin
{act}
"#
        ));
        stub
    }

    /// The directory that everything of it lies in.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.dir.path().join(self.name)
    }

    /// Puts another script in the program's place.
    pub fn install(&self, script: &str) {
        let script = script.replace("@DIR@", &self.dir.path().display().to_string());
        // Written beside and renamed: an open script cannot be executed.
        let beside = self.dir.path().join("new");
        must("the script", std::fs::write(&beside, script));
        let mode = std::fs::Permissions::from_mode(0o755);
        must("its mode", std::fs::set_permissions(&beside, mode));
        must("the program", std::fs::rename(beside, self.program()));
    }

    /// What the stub recorded under a name.
    #[must_use]
    pub fn recorded(&self, name: &str) -> String {
        must(name, std::fs::read_to_string(self.dir.path().join(name)))
    }

    /// The arguments of the last send.
    #[must_use]
    pub fn args(&self) -> Vec<String> {
        self.recorded("args").lines().map(str::to_owned).collect()
    }

    /// The names in the environment of the last send, sorted, without those
    /// that the shell sets by itself.
    #[must_use]
    pub fn variables(&self) -> Vec<String> {
        let env = self.recorded("env");
        let names = env.lines().filter_map(|line| line.split_once('='));
        let mut names: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
        names.retain(|name| !["_", "SHLVL", "OLDPWD"].contains(&name.as_str()));
        names.sort_unstable();
        names
    }

    /// How the program is asked who it is.
    #[must_use]
    pub fn asker(&self) -> Asker {
        Asker {
            host: crate::host(),
            clock: Arc::new(SystemClock::new()),
            dir: self.dir.path().join("tree"),
            env: Environment::empty()
                .with("PATH", "/usr/bin:/bin")
                .with("HOME", self.dir.path().join("home")),
            bound: BOUND,
        }
    }

    /// A plain request.
    #[must_use]
    pub fn request(&self) -> SendRequest {
        let home = self.dir.path().join("home");
        SendRequest {
            role: "builder".into(),
            prompt: "do \"it\"\n".into(),
            system_prompt: "You are the builder.".into(),
            model: "sonnet".into(),
            effort: None,
            budget_usd: None,
            tools: None,
            output: OutputMode::Text,
            work_tree: self.dir.path().join("tree"),
            env: Environment::empty()
                .with("PATH", "/usr/bin:/bin")
                .with("HOME", &home)
                .with("ONLY", "this"),
            home,
            remove_at_end: Vec::new(),
            confinement: Confinement::None,
        }
    }

    /// Sends it, takes what is said, and waits for the end.
    pub async fn send(
        &self,
        runtime: &dyn AgentRuntime,
        session: &mut Session,
        request: SendRequest,
    ) -> Sent {
        let silence = Duration::from_secs(300);
        self.send_within(runtime, session, request, silence).await
    }

    /// The same with another limit of silence.
    pub async fn send_within(
        &self,
        runtime: &dyn AgentRuntime,
        session: &mut Session,
        request: SendRequest,
        silence: Duration,
    ) -> Sent {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(4);
        let control = SendControl {
            deadline: self.deadline.clone(),
            silence,
            events: sender,
            live: None,
            stderr_filter: None,
        };
        let taking = async {
            let mut events = Vec::new();
            while let Some(event) = receiver.recv().await {
                events.push(event);
            }
            events
        };
        let both = async { tokio::join!(runtime.send(session, request, control), taking) };
        let ended = tokio::time::timeout(BOUND, both).await;
        let (report, events) = must("the end of the send", ended);
        Sent { report, events }
    }
}

/// The value, or a panic that says what could not be had.
fn must<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {error}"))
}
