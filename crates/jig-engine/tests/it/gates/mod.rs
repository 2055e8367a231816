//! Gates on real trees, with real commands.

mod claims;
mod commands;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jig_engine::command::CommandContext;
use jig_engine::gates::{EntryChanges, GateContext, GateRun, run_gate};
use jig_engine::redact::Redactor;
use jig_process::{Deadline, Environment, Host, SystemClock};
use jig_protocol::definition::{Gate, GateName};
use jig_protocol::envelope::{Envelope, EnvelopeStatus};
use serde_json::Value;

/// A tree, a logs directory, and everything else a gate may look at.
pub(super) struct Bench {
    dir: tempfile::TempDir,
    pub(super) host: Host,
    pub(super) redactor: Arc<Redactor>,
    pub(super) env: Environment,
    pub(super) deadline: Deadline,
    pub(super) timeout: Duration,
    pub(super) changed: Result<EntryChanges, String>,
}

impl Bench {
    /// For gates that run nothing.
    pub(super) fn new() -> Self {
        Self::with(Host::at(std::env::current_exe().unwrap()).unwrap())
    }

    /// For gates that run commands.
    pub(super) fn supervised() -> Self {
        Self::with(jig_testkit::host())
    }

    fn with(host: Host) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["tree", "logs", "home"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self {
            host,
            redactor: Arc::new(Redactor::new([("TOKEN", "hunter2-secret")])),
            env: Environment::empty().with("PATH", crate::fixture::path_env()),
            deadline: Deadline::new(Arc::new(SystemClock::new())),
            timeout: Duration::from_secs(120),
            changed: Ok(EntryChanges::default()),
            dir,
        }
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.dir.path().join("logs")
    }

    pub(super) async fn run(
        &self,
        name: GateName,
        command: Option<&str>,
        envelope: Value,
    ) -> GateRun {
        let gate = Gate {
            name,
            command: command.map(ToOwned::to_owned),
            budget: 0,
            allow: Vec::new(),
        };
        let envelope = envelope_of(envelope);
        let (tree, logs) = (self.tree(), self.logs());
        let context = GateContext {
            envelope: &envelope,
            changed: self.changed.as_ref().map_err(String::as_str),
            commands: CommandContext {
                host: &self.host,
                work_tree: &tree,
                logs: &logs,
                redactor: &self.redactor,
                live: None,
            },
            env: &self.env,
            timeout: self.timeout,
            deadline: &self.deadline,
            phase: "build",
            position: 0,
        };
        run_gate(&gate, &context).await.unwrap()
    }
}

fn envelope_of(value: Value) -> Envelope {
    let Value::Object(fields) = value.clone() else {
        panic!("an object")
    };
    let artifacts = fields
        .get("artifacts")
        .and_then(Value::as_array)
        .map(|list| {
            list.iter()
                .filter_map(Value::as_str)
                .map(ToOwned::to_owned)
                .collect()
        });
    Envelope {
        raw: serde_json::value::to_raw_value(&value).unwrap(),
        fields,
        status: EnvelopeStatus::Success,
        summary: String::new(),
        artifacts,
        notes_for_next_agent: String::new(),
    }
}

/// `item: note` of every check, with `+` or `-` for whether it held.
pub(super) fn shown(run: &GateRun) -> Vec<String> {
    run.report
        .checks
        .iter()
        .map(|check| {
            let sign = if check.ok { '+' } else { '-' };
            format!("{sign} {}: {}", check.item, check.note)
        })
        .collect()
}

/// Every gate is either run or known not to be runnable yet.
#[tokio::test(flavor = "multi_thread")]
async fn every_gate_is_run_or_listed_as_not_yet_runnable() {
    let bench = Bench::new();
    for name in GateName::ALL {
        let run = bench.run(name, None, serde_json::json!({})).await;
        let is_missing = shown(&run)
            .iter()
            .any(|check| check.contains("not available in this version"));
        let is_listed = jig_protocol::definition::NOT_YET_RUNNABLE.contains(&name.as_str());
        assert_eq!(is_missing, is_listed, "{name}");
        // Nothing was claimed and no command was given: no gate may pass.
        assert!(!run.report.passed, "{name}");
    }
}
