//! A sealed world for one attempt: a repository, a data directory, a script.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use jig_engine::fault::FaultPoint;
use jig_engine::host::{HostConfig, Mode, PrepareSpec, PreparedAttempt, prepare};
use jig_engine::{
    AttemptInput, AttemptOutcome, Engine, EngineConfig, EventSink, NoSink, SinkError,
};
use jig_git::{Git, GitConfig};
use jig_process::{StopSignal, SystemClock};
use jig_protocol::definition::{self, Definition, RuntimeName};
use jig_protocol::event::{Event, EventKind};
use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::outcome::PhaseStatus;
use jig_protocol::time::{Clock, Timestamp};
use jig_runtime::{
    AgentRuntime, BoxFuture, Capabilities, OperatorHome, ProbeError, Seed, SeedError, SendControl,
    SendReport, SendRequest, Session,
};
use jig_runtime_scripted::{Script, ScriptedRuntime};
use jig_testkit::Repo;
use serde_json::Value;
use tempfile::TempDir;

/// A world in which one attempt is run.
pub(crate) struct World {
    pub(crate) repo: Repo,
    pub(crate) data: TempDir,
    pub(crate) definition: String,
    pub(crate) operator_env: BTreeMap<OsString, OsString>,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) cancel: StopSignal,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sink: Arc<dyn EventSink>,
    pub(crate) max_sends: Option<u32>,
    pub(crate) faults: Option<Arc<dyn FaultPoint>>,
    pub(crate) seed_auth: bool,
    pub(crate) runtime: Arc<Recorded>,
}

/// What one send was asked.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) prompt: String,
    pub(crate) session: String,
    pub(crate) sends_before: u32,
    pub(crate) env: BTreeMap<String, String>,
}

/// A runtime that remembers what it was asked.
pub(crate) struct Recorded {
    inner: Box<dyn AgentRuntime>,
    pub(crate) calls: Mutex<Vec<Call>>,
    seed: Mutex<Seed>,
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorded")
    }
}

impl Recorded {
    pub(crate) fn new(inner: impl AgentRuntime + 'static) -> Arc<Self> {
        Arc::new(Self {
            inner: Box::new(inner),
            calls: Mutex::default(),
            seed: Mutex::default(),
        })
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    pub(crate) fn give_login(&self, path: &str, content: &str) {
        self.seed
            .lock()
            .unwrap()
            .files
            .push((PathBuf::from(path), content.as_bytes().to_vec()));
    }
}

impl AgentRuntime for Recorded {
    fn name(&self) -> RuntimeName {
        self.inner.name()
    }

    fn probe(&self) -> BoxFuture<'_, Result<Capabilities, ProbeError>> {
        self.inner.probe()
    }

    fn seed<'a>(&'a self, _: &'a OperatorHome) -> BoxFuture<'a, Result<Seed, SeedError>> {
        let seed = self.seed.lock().unwrap().clone();
        Box::pin(async move { Ok(seed) })
    }

    fn send<'a>(
        &'a self,
        session: &'a mut Session,
        request: SendRequest,
        control: SendControl,
    ) -> BoxFuture<'a, SendReport> {
        self.calls.lock().unwrap().push(Call {
            prompt: request.prompt.clone(),
            session: session.key.clone(),
            sends_before: session.sends,
            env: request
                .env
                .iter()
                .map(|(name, value)| {
                    (
                        name.to_string_lossy().into_owned(),
                        value.to_string_lossy().into_owned(),
                    )
                })
                .collect(),
        });
        self.inner.send(session, request, control)
    }
}

impl World {
    /// A world with these files committed, a definition and a script.
    pub(crate) fn new(files: &[(&str, &str)], definition: &str, script: &str) -> Self {
        let script = Script::parse(script).unwrap_or_else(|error| panic!("{error}"));
        Self::with_runtime(
            files,
            definition,
            ScriptedRuntime::new(jig_testkit::host(), script),
        )
    }

    pub(crate) fn with_runtime(
        files: &[(&str, &str)],
        definition: &str,
        runtime: impl AgentRuntime + 'static,
    ) -> Self {
        let path = std::env::var_os("PATH").unwrap();
        Self {
            repo: Repo::with_files(files),
            data: tempfile::tempdir().unwrap(),
            definition: definition.to_owned(),
            operator_env: BTreeMap::from([("PATH".into(), path)]),
            parameters: BTreeMap::from([("prompt".into(), "Do it.".into())]),
            cancel: StopSignal::new(),
            clock: Arc::new(SystemClock::new()),
            sink: Arc::new(NoSink),
            max_sends: None,
            faults: None,
            seed_auth: true,
            runtime: Recorded::new(runtime),
        }
    }

    pub(crate) fn parsed(&self) -> Definition {
        let parsed = definition::parse(&self.definition);
        parsed
            .definition
            .unwrap_or_else(|| panic!("{:#?}", parsed.diagnostics))
    }

    pub(crate) fn host_config(&self) -> HostConfig {
        HostConfig {
            data_dir: self.data.path().canonicalize().unwrap(),
            git: Git::new(GitConfig::new(std::env::var_os("PATH").unwrap())),
            clock: Arc::clone(&self.clock),
            operator: OperatorHome {
                home: self.repo.home(),
                env: self.operator_env.clone(),
            },
            host: jig_testkit::host(),
        }
    }

    pub(crate) fn engine(&self) -> Engine {
        let runtime: Arc<dyn AgentRuntime> = Arc::<Recorded>::clone(&self.runtime);
        let mut config = EngineConfig::new(
            BTreeMap::from([(runtime.name(), runtime)]),
            self.host_config(),
            Arc::new(|| u64::MAX / 3),
        );
        config.wait_scale = 0.0;
        if let Some(max) = self.max_sends {
            config.max_sends = max;
        }
        if let Some(faults) = &self.faults {
            config.faults = Arc::clone(faults);
        }
        Engine::new(config)
    }

    pub(crate) async fn prepared(&self, number: u8) -> (PreparedAttempt, [u8; 10]) {
        let definition = self.parsed();
        let random = [number; 10];
        let at = Timestamp::from_millis(1_767_225_600_000);
        let base = self.repo.head();
        let lender = self.repo.path();
        let spec = PrepareSpec {
            run_id: RunId::from_parts(at, random),
            job_id: JobId::from_parts(at, random),
            attempt_id: AttemptId::from_parts(at, random),
            attempt_number: 1,
            lender: &lender,
            base: &base,
            mode: Mode::OwnTree,
            definition: &definition,
        };
        let prepared = prepare(&self.host_config(), &spec)
            .await
            .unwrap_or_else(|error| panic!("{error:?}"));
        (prepared, random)
    }

    pub(crate) async fn input(&self) -> AttemptInput {
        let (prepared, random) = self.prepared(7).await;
        let at = Timestamp::from_millis(1_767_225_600_000);
        AttemptInput {
            run_id: RunId::from_parts(at, random),
            job_id: JobId::from_parts(at, random),
            attempt_id: AttemptId::from_parts(at, random),
            attempt_number: 1,
            snapshot: self.definition.clone(),
            parameters: self.parameters.clone(),
            prepared,
            cancel: self.cancel.clone(),
            sink: Arc::clone(&self.sink),
            seed_auth: self.seed_auth,
            runtime_override: Some(self.runtime.name()),
            default_runtime: None,
        }
    }

    /// Runs the attempt and reads its trace.
    pub(crate) async fn run(&self) -> Ran {
        let input = self.input().await;
        let outcome = self.engine().run(input).await;
        Ran::read(outcome)
    }
}

/// An attempt that ended.
pub(crate) struct Ran {
    pub(crate) outcome: AttemptOutcome,
    pub(crate) events: Vec<Event>,
}

impl Ran {
    pub(crate) fn read(outcome: AttemptOutcome) -> Self {
        let path = outcome.prepared.dirs.trace();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let events: Vec<Event> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect();
        let ran = Self { outcome, events };
        ran.check_shape();
        ran
    }

    /// What holds for every trace, however the attempt ended.
    fn check_shape(&self) {
        let numbers: Vec<u64> = self.events.iter().map(|event| event.seq).collect();
        let expected: Vec<u64> = (1..=self.events.len() as u64).collect();
        assert_eq!(numbers, expected, "numbers are gapless from 1");
        assert_eq!(self.of(EventKind::AttemptEnd).len(), 1, "{}", self.shape());
        assert_eq!(
            self.events.last().map(|event| event.kind),
            Some(EventKind::AttemptEnd)
        );
        assert_eq!(
            self.of(EventKind::AgentStart).len(),
            self.of(EventKind::AgentEnd).len(),
            "{}",
            self.shape()
        );
        let entries = self.of(EventKind::PhaseStart).len();
        let ends = self.of(EventKind::PhaseEnd).len() + self.of(EventKind::PhaseDeath).len();
        assert_eq!(entries, ends, "{}", self.shape());
        let records = &self.outcome.result.phases;
        if self.outcome.result.truncation.is_none() {
            let entered = records
                .iter()
                .filter(|record| record.status != PhaseStatus::Skipped)
                .count();
            assert_eq!(entries, entered, "{}", self.shape());
        }
        assert_eq!(self.outcome.trace_problem, None);
    }

    pub(crate) fn of(&self, kind: EventKind) -> Vec<&Event> {
        self.events
            .iter()
            .filter(|event| event.kind == kind)
            .collect()
    }

    pub(crate) fn named(&self, name: &str) -> Vec<&Event> {
        self.events
            .iter()
            .filter(|event| event.name.as_deref() == Some(name))
            .collect()
    }

    pub(crate) fn error(&self) -> &str {
        self.outcome.error.as_deref().unwrap_or_default()
    }

    pub(crate) fn tree(&self) -> &std::path::Path {
        &self.outcome.prepared.work_tree
    }

    pub(crate) fn file(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.tree().join(path)).ok()
    }

    /// Entries in order, as `phase` or `phase/fail`.
    pub(crate) fn entries(&self) -> Vec<String> {
        self.outcome
            .result
            .phases
            .iter()
            .map(|record| match record.status {
                PhaseStatus::Success => record.phase.clone(),
                PhaseStatus::Fail => format!("{}/fail", record.phase),
                PhaseStatus::Skipped => format!("{}/skipped", record.phase),
            })
            .collect()
    }

    pub(crate) fn payload(&self, index: usize, kind: EventKind) -> &Value {
        self.of(kind)[index].payload.as_ref().unwrap()
    }

    /// Every event as `phase type name`, one a line.
    pub(crate) fn shape(&self) -> String {
        self.events
            .iter()
            .map(|event| {
                let mut line = event.phase.clone().unwrap_or_else(|| "-".into());
                line.push(' ');
                line.push_str(event.kind.as_str());
                if let Some(name) = &event.name {
                    line.push(' ');
                    line.push_str(name);
                }
                if let Some(Value::String(outcome)) = event
                    .payload
                    .as_ref()
                    .and_then(|payload| payload.get("outcome"))
                {
                    line.push_str(&format!(" ({outcome})"));
                }
                line.push('\n');
                line
            })
            .collect()
    }
}

/// A sink that keeps every event and calls a function on each.
pub(crate) struct Watch<F: Fn(&Event) + Send + Sync>(pub(crate) F);

impl<F: Fn(&Event) + Send + Sync> EventSink for Watch<F> {
    fn emit(&self, event: &Event) -> Result<(), SinkError> {
        (self.0)(event);
        Ok(())
    }
}

/// A roster of one unrestricted role called `dev`.
pub(crate) const DEV: &str = "
roster:
  dev: {model: m, system_prompt: be good, user_prompt: \"Task: {{prompt}}\", writes: [\"src/**\"]}
";

/// A runtime without a process: a function of the number of the send, from 0,
/// and of what it was asked.
pub(crate) struct Fake<F> {
    pub(crate) can_resume: bool,
    pub(crate) plays: F,
    sent: Mutex<usize>,
}

impl<F> std::fmt::Debug for Fake<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fake")
    }
}

impl<F: Fn(usize, &SendRequest) -> SendReport + Send + Sync> Fake<F> {
    pub(crate) fn new(plays: F) -> Self {
        Self {
            can_resume: true,
            plays,
            sent: Mutex::new(0),
        }
    }
}

impl<F: Fn(usize, &SendRequest) -> SendReport + Send + Sync> AgentRuntime for Fake<F> {
    fn name(&self) -> RuntimeName {
        RuntimeName::new(RuntimeName::SCRIPTED)
    }

    fn probe(&self) -> BoxFuture<'_, Result<Capabilities, ProbeError>> {
        Box::pin(async {
            Ok(Capabilities {
                name: self.name(),
                version: "1".into(),
                can_resume: self.can_resume,
                reports_cost: true,
                supports_tools: false,
                supports_budget: false,
                supports_effort: false,
                supports_structured: false,
                warnings: vec![],
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
        _: SendControl,
    ) -> BoxFuture<'a, SendReport> {
        let number = {
            let mut sent = self.sent.lock().unwrap();
            *sent += 1;
            *sent - 1
        };
        session.sends += 1;
        Box::pin(async move { (self.plays)(number, &request) })
    }
}

/// A send that was answered and cost something.
pub(crate) fn answered(text: &str, cost: f64) -> SendReport {
    SendReport {
        end: jig_runtime::SendEnd::Answered { text: text.into() },
        usage: Some(jig_runtime::Usage {
            input_tokens: 1,
            output_tokens: 2,
            cost_usd: Some(cost),
            context_tokens: 10,
            late: None,
        }),
        leftovers: vec![],
        survivors: vec![],
        not_removed: vec![],
    }
}

/// A send that failed without figures.
pub(crate) fn failed(class: jig_protocol::outcome::FailureClass) -> SendReport {
    SendReport {
        end: jig_runtime::SendEnd::Failed {
            class,
            message: format!("it was {}", class.as_str()),
            hint: Some("the hint".into()),
            retry_after: None,
            exit_code: Some(1),
        },
        usage: None,
        ..answered("", 0.0)
    }
}
