//! Whole attempts through `run_attempt`: what the operator has afterwards.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use jig_engine::fault::{Fault, FaultPoint, NoFaults, Step};
use jig_engine::host::{HostedError, HostedOutcome, HostedRun, Mode, run_attempt};
use jig_engine::{Engine, EngineConfig, NoSink};
use jig_process::StopSignal;
use jig_protocol::definition::RuntimeName;
use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::outcome::{AttemptEnd, Cause, PublishMarker};
use jig_protocol::time::Timestamp;
use jig_runtime::{
    AgentRuntime, BoxFuture, Capabilities, OperatorHome, ProbeError, Seed, SeedError, SendControl,
    SendReport, SendRequest, Session,
};
use jig_runtime_scripted::{Script, ScriptedRuntime};
use jig_testkit::processes::{assert_none_marked, unique_marker};

use crate::fixture::{Fixture, NOW, paths};

const BUILD: &str = "
name: build
runtime: scripted
roster:
  builder: {model: m, system_prompt: s, user_prompt: 'Task: {{prompt}}', writes: ['src/**']}
phases:
  - name: build
    kind: agent
    owner: builder
    gates: [{name: diff_matches_claims}]
  - {name: check, kind: code, command: 'mkdir -p target && echo o > target/o && test -s src/a.rs'}
build_outputs: ['target/**']
acceptance: [all_phases_passed]
";

/// A builder that does this, then claims this.
fn script(steps: &str) -> String {
    format!("roles:\n  builder:\n{steps}")
}

struct Options {
    mode: Mode,
    keep: bool,
    cancel: StopSignal,
    faults: Arc<dyn FaultPoint>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::OwnTree,
            keep: false,
            cancel: StopSignal::new(),
            faults: Arc::new(NoFaults),
        }
    }
}

async fn try_run(
    fixture: &Fixture,
    snapshot: &str,
    script: &str,
    options: Options,
) -> Result<HostedOutcome, HostedError> {
    let script = Script::parse(script).unwrap_or_else(|error| panic!("{error}"));
    let runtime = Arc::new(ScriptedRuntime::new(jig_testkit::host(), script));
    run_with(fixture, snapshot, runtime, options).await
}

async fn run_with(
    fixture: &Fixture,
    snapshot: &str,
    runtime: Arc<dyn AgentRuntime>,
    options: Options,
) -> Result<HostedOutcome, HostedError> {
    let mut config = EngineConfig::new(
        BTreeMap::from([(RuntimeName::new(RuntimeName::SCRIPTED), runtime)]),
        fixture.config.clone(),
        Arc::new(|| 0),
    );
    config.faults = options.faults;
    let engine = Engine::new(config);
    let run = HostedRun {
        run_id: RunId::from_parts(NOW, [1; 10]),
        job_id: JobId::from_parts(NOW, [2; 10]),
        attempt_id: AttemptId::from_parts(NOW, [3; 10]),
        attempt_number: 1,
        lender: fixture.repo.path(),
        base: fixture.base(),
        mode: options.mode,
        snapshot: snapshot.to_owned(),
        parameters: BTreeMap::from([("prompt".into(), "Do it.".into())]),
        cancel: options.cancel,
        sink: Arc::new(NoSink),
        seed_auth: true,
        runtime_override: None,
        default_runtime: None,
        keep: options.keep,
    };
    run_attempt(&engine, run).await
}

async fn run(fixture: &Fixture, snapshot: &str, steps: &str) -> HostedOutcome {
    try_run(fixture, snapshot, &script(steps), Options::default())
        .await
        .unwrap()
}

fn fixture() -> Fixture {
    Fixture::new(&[("src/a.rs", "a\n"), ("b.txt", "b\n")]).supervised()
}

/// What holds of an attempt's directory after every end.
fn assert_clean(outcome: &HostedOutcome) {
    assert!(
        outcome.disposed.problems.is_empty(),
        "{:?}",
        outcome.disposed
    );
    for dir in outcome.dirs.transient() {
        assert!(!dir.exists(), "{} stays", dir.display());
    }
    assert!(outcome.dirs.trace().exists() && outcome.dirs.git().exists());
    let manifest = jig_engine::host::Manifest::read(&outcome.dirs.manifest());
    assert!(manifest.unwrap().unwrap().process_groups.is_empty());
}

const GOOD: &str = "
    - expect: ['Task: Do it.']
      write: {src/a.rs: \"better\\n\"}
      emit: {status: success, summary: done, artifacts: [src/a.rs], changed_files: [src/a.rs]}
";

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_attempt_leaves_a_branch_and_no_tree() {
    let fixture = fixture();
    let before = fixture.operator_state();
    let outcome = run(&fixture, BUILD, GOOD).await;
    assert_eq!(
        outcome.state,
        AttemptState::AcceptedUnpublished,
        "{outcome:#?}"
    );
    assert_eq!(
        (outcome.cause, outcome.result.publish),
        (None, PublishMarker::LocalBranch)
    );
    let branch = outcome.delivery.branch.clone().unwrap();
    assert_eq!(branch, format!("jig/{}/1", JobId::from_parts(NOW, [2; 10])));
    assert_eq!(fixture.operator_state(), before);
    assert_eq!(
        fixture.repo.git(&["diff", "--name-only", "main", &branch]),
        "src/a.rs"
    );
    assert_eq!(paths(&outcome.result.changed_paths), ["src/a.rs"]);
    assert_eq!(outcome.disposed.tree_kept, None);
    assert!(!outcome.dirs.tree().exists());
    assert_clean(&outcome);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_attempt_leaves_its_tree_and_nothing_in_the_repository() {
    let fixture = fixture();
    let steps = "
    - write: {src/a.rs: \"\", src/b.rs: x}
      emit: {status: success, summary: done, artifacts: [], changed_files: [src/a.rs, src/b.rs]}
";
    let outcome = run(&fixture, BUILD, steps).await;
    assert_eq!(outcome.state, AttemptState::Failed);
    assert_eq!(outcome.cause, Some(Cause::Command));
    assert_eq!(outcome.result.publish, PublishMarker::NotAttempted);
    assert!(!fixture.repo.refs().contains("refs/heads/jig/"));
    let (tree, _) = outcome.disposed.tree_kept.clone().unwrap();
    assert_eq!(std::fs::read_to_string(tree.join("src/b.rs")).unwrap(), "x");
    assert_clean(&outcome);
}

/// Fails at one step, each time.
struct FailsAt(Step);

impl FaultPoint for FailsAt {
    fn reach(&self, step: Step) -> Result<(), Fault> {
        if step == self.0 {
            return Err(Fault(step));
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_could_not_be_judged_is_kept_and_one_nobody_worked_in_is_not() {
    for (step, kept) in [
        (Step::Enforce, true),
        (Step::Sent, false),
        (Step::Capture, false),
        (Step::Send, false),
        (Step::Open, false),
        (Step::Probe, false),
    ] {
        let fixture = fixture();
        let options = Options {
            faults: Arc::new(FailsAt(step)),
            ..Options::default()
        };
        let steps = match step {
            Step::Enforce => GOOD,
            _ => "    - emit: {status: success, summary: x, artifacts: [], changed_files: []}\n",
        };
        let outcome = try_run(&fixture, BUILD, &script(steps), options)
            .await
            .unwrap();
        assert_eq!(outcome.cause, Some(Cause::Infrastructure), "{step}");
        let Some((tree, _)) = outcome.disposed.tree_kept.clone() else {
            assert!(!kept && !outcome.dirs.tree().exists(), "{step}");
            continue;
        };
        assert!(kept, "{step}: {:?}", outcome.disposed);
        let text = std::fs::read_to_string(tree.join("src/a.rs")).unwrap();
        assert_eq!(text, "better\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_breach_is_undone_and_nothing_is_delivered_or_retried() {
    let fixture = fixture();
    let (program, mark) = (
        fixture.repo.scratch().join("recorder"),
        fixture.repo.scratch().join("was-run"),
    );
    std::fs::write(
        &program,
        format!("#!/bin/sh\necho x >> '{}'\ncat\n", mark.display()),
    )
    .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let before = fixture.operator_state();
    let steps = format!(
        "
    - write: {{src/a.rs: \"better\\n\", stray: x}}
      run: \"git config core.fsmonitor {0}; git config filter.x.clean {0}; echo '* filter=x' > $(git rev-parse --git-dir)/info/attributes; echo evil > b.txt; echo agent > '{1}'\"
      emit: {{status: success, summary: done, artifacts: [], changed_files: [src/a.rs]}}
    - emit: {{status: success, summary: again, artifacts: [], changed_files: []}}
",
        program.display(),
        mark.display()
    );
    // Without a gate that would have it corrected first.
    let ungated = BUILD.replace("    gates: [{name: diff_matches_claims}]\n", "");
    let outcome = run(&fixture, &ungated, &steps).await;
    assert_eq!(
        (outcome.end, outcome.cause),
        (AttemptEnd::Breach, Some(Cause::Breach))
    );
    let error = outcome.error.clone().unwrap();
    for named in [
        "stray (deleted)",
        "b.txt (restored)",
        "config (restored metadata)",
    ] {
        assert!(error.contains(named), "{named}: {error}");
    }
    assert_eq!(outcome.result.spend.sends, 1, "a breach is never retried");
    assert_eq!(outcome.delivery.branch, None);
    assert_eq!(fixture.operator_state(), before);
    assert_eq!(
        std::fs::read_to_string(&mark).unwrap_or_default(),
        "agent\n"
    );
    let trace = std::fs::read_to_string(outcome.dirs.trace()).unwrap();
    assert!(trace.contains("write_boundary_breach"), "{trace}");
    let lists = std::fs::read_dir(outcome.dirs.logs())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.starts_with("breach-"))
        .count();
    assert_eq!(lists, 1);
    assert_clean(&outcome);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_has_a_branch_and_says_so() {
    let fixture = fixture();
    let held = format!("{BUILD}\npublish: {{hold_when: 'risk == high'}}\n");
    let steps = GOOD.replace("changed_files:", "risk: high, changed_files:");
    let outcome = run(&fixture, &held, &steps).await;
    assert_eq!(
        outcome.state,
        AttemptState::AcceptedUnpublished,
        "{outcome:#?}"
    );
    assert_eq!(
        (outcome.cause, outcome.result.publish),
        (Some(Cause::Held), PublishMarker::Held)
    );
    assert!(outcome.result.publish_hold.is_some());
    let branch = outcome.delivery.branch.clone().unwrap();
    assert_eq!(
        fixture.repo.git(&["show", &format!("{branch}:src/a.rs")]),
        "better"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_over_earlier_work_is_undone_exactly_and_tried_afresh() {
    let two = BUILD.replace(
        "phases:\n",
        "phases:\n  - {name: draft, kind: code, command: 'echo drafted > src/a.rs'}\n",
    );
    let fixture = fixture();
    let steps = "
    - run: \"echo half >> src/a.rs; echo x > src/half; rm b.txt; git add -A; git commit -qm half\"
      end: crash
    - run: \"grep -qx drafted src/a.rs && test -f b.txt && test ! -e src/half && echo better > src/a.rs\"
      run_must_succeed: true
      emit: {status: success, summary: done, artifacts: [src/a.rs], changed_files: [src/a.rs]}
";
    let outcome = run(&fixture, &two, steps).await;
    assert_eq!(
        outcome.state,
        AttemptState::AcceptedUnpublished,
        "{outcome:#?}"
    );
    assert_eq!(outcome.result.budgets.deaths, 1);
    let branch = outcome.delivery.branch.clone().unwrap();
    let changed = fixture.repo.git(&["diff", "--name-only", "main", &branch]);
    assert_eq!(changed, "src/a.rs");
    assert_eq!(
        fixture.repo.git(&["log", "--format=%an", &branch]),
        "jig\nTess Ter"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_attempt_leaves_nothing_running_and_its_tree() {
    let mut fixture = fixture();
    let marker = unique_marker("hosted-cancel");
    let definition = BUILD.replace("writes:", "env: [MARK], writes:");
    fixture
        .config
        .operator
        .env
        .insert("MARK".into(), marker.clone().into());
    let options = Options::default();
    let cancel = options.cancel.clone();
    let begun = fixture.repo.scratch().join("begun");
    let steps = format!(
        "
    - write: {{src/a.rs: half}}
      spawn: \"sleep 600\"
      run: \"touch '{}'\"
      end: hang
",
        begun.display()
    );
    let canceller = tokio::spawn(async move {
        jig_testkit::wait_until_async("the agent", || begun.exists()).await;
        cancel.raise(jig_process::StopReason::Cancelled);
    });
    let outcome = try_run(&fixture, &definition, &script(&steps), options)
        .await
        .unwrap();
    canceller.await.unwrap();
    assert_eq!(
        (outcome.state, outcome.cause),
        (AttemptState::Cancelled, Some(Cause::Cancelled))
    );
    assert_none_marked(&marker);
    let (tree, _) = outcome.disposed.tree_kept.clone().unwrap();
    assert_eq!(
        std::fs::read_to_string(tree.join("src/a.rs")).unwrap(),
        "half"
    );
    assert_clean(&outcome);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_place_works_in_the_checkout_and_delivers_nothing() {
    let fixture = fixture();
    let options = Options {
        mode: Mode::InPlace { allow_dirty: false },
        ..Options::default()
    };
    let outcome = try_run(&fixture, BUILD, &script(GOOD), options)
        .await
        .unwrap();
    assert_eq!(
        outcome.state,
        AttemptState::AcceptedUnpublished,
        "{outcome:#?}"
    );
    assert_eq!(outcome.result.publish, PublishMarker::NotAttempted);
    assert_eq!(fixture.repo.read("src/a.rs"), "better\n");
    assert_eq!(fixture.repo.git(&["diff", "--name-only"]), "src/a.rs");
    assert!(!fixture.repo.refs().contains("jig"));
    assert_eq!(outcome.disposed.tree_kept, None);
    for dir in outcome.dirs.transient() {
        assert!(!dir.exists(), "{} stays", dir.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_or_kept_tree_is_disposed_of_as_asked() {
    let fixture = fixture();
    let idle = "
    - emit: {status: success, summary: nothing to do, artifacts: [], changed_files: []}
";
    let options = Options {
        keep: true,
        ..Options::default()
    };
    let outcome = try_run(&fixture, BUILD, &script(idle), options)
        .await
        .unwrap();
    assert_eq!(
        outcome.result.publish,
        PublishMarker::NothingToPublish,
        "{outcome:#?}"
    );
    assert!(outcome.disposed.tree_kept.is_some() && outcome.dirs.tree().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_prepared_or_parsed_leaves_only_a_trace_that_says_so() {
    let missing = BUILD.replace("system_prompt: s", "system_prompt_path: none.md");
    for (snapshot, expected) in [(missing.as_str(), "none.md"), ("name: [", "parse")] {
        let fixture = fixture();
        let before = fixture.operator_state();
        let error = try_run(&fixture, snapshot, &script(GOOD), Options::default())
            .await
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        let attempt = AttemptId::from_parts(NOW, [3; 10]).to_string();
        let directory = fixture.config.data_dir.join("attempts").join(attempt);
        let left: Vec<_> = std::fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["trace.jsonl"]);
        let trace = std::fs::read_to_string(directory.join("trace.jsonl")).unwrap();
        assert_eq!(trace.matches("\"attempt_end\"").count(), 1, "{trace}");
        assert_eq!(fixture.operator_state(), before);
        assert!(!fixture.repo.refs().contains("jig"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_nowhere_in_what_stays() {
    let secret = "hunter2-very-secret-value";
    let mut fixture = fixture();
    fixture
        .config
        .operator
        .env
        .insert("API_KEY".into(), secret.into());
    let definition = BUILD.replace(
        "writes:",
        "env: [API_KEY], sensitive_env: [API_KEY], writes:",
    );
    let steps = "
    - write: {src/a.rs: \"better\\n\"}
      run: \"echo $API_KEY > stray-$API_KEY; printf %s $API_KEY | base64 > ../handoff/note; echo $API_KEY > ../handoff/$API_KEY; cp ../handoff/note ../handoff/commit-message; echo $API_KEY > ~/x; echo $API_KEY\"
      text: \"my key is hunter2-very-secret-value\"
      tools: [{name: Edit, input: {key: hunter2-very-secret-value}}]
      emit: {status: success, summary: 'used hunter2-very-secret-value', artifacts: [], changed_files: [src/a.rs]}
";
    let outcome = run(&fixture, &definition, steps).await;
    assert_eq!(outcome.end, AttemptEnd::Breach, "{outcome:#?}");
    let shown = format!("{:?} {:?}", outcome.error, outcome.result);
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(outcome.dirs.logs().join("handoff").exists());
    let mut pending = vec![fixture.config.data_dir.clone()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            assert!(
                !path.to_string_lossy().contains("hunter2"),
                "{}",
                path.display()
            );
            if path.is_dir() && !path.is_symlink() {
                pending.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let encoded = "aHVudGVyMi12ZXJ5LXNlY3JldC12YWx1ZQ";
                assert!(!text.contains("hunter2"), "{}: {text}", path.display());
                assert!(!text.contains(encoded), "{}: {text}", path.display());
            }
        }
    }
}

/// A scripted agent with a login that runs out.
#[derive(Debug)]
struct Expiring {
    inner: ScriptedRuntime,
    expires_at: Timestamp,
}

impl AgentRuntime for Expiring {
    fn name(&self) -> RuntimeName {
        self.inner.name()
    }

    fn probe(&self) -> BoxFuture<'_, Result<Capabilities, ProbeError>> {
        self.inner.probe()
    }

    fn seed<'a>(&'a self, _: &'a OperatorHome) -> BoxFuture<'a, Result<Seed, SeedError>> {
        Box::pin(async {
            Ok(Seed {
                files: vec![(".agent/token".into(), b"s3cret-login".to_vec())],
                dirs: Vec::new(),
                expires_at: Some(self.expires_at),
            })
        })
    }

    fn send<'a>(
        &'a self,
        session: &'a mut Session,
        request: SendRequest,
        control: SendControl,
    ) -> BoxFuture<'a, SendReport> {
        self.inner.send(session, request, control)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_there_during_a_send_alone_and_never_used_when_it_runs_out() {
    let minutes = |minutes: u64| std::time::Duration::from_secs(minutes * 60);
    for (left, works) in [(minutes(600), true), (minutes(5), false)] {
        let fixture = fixture();
        // The phase may take half an hour.
        let steps = GOOD.replace("write:", "run: 'grep -qx s3cret-login ~/.agent/token'\n      run_must_succeed: true\n      write:");
        let script = Script::parse(&script(&steps)).unwrap_or_else(|error| panic!("{error}"));
        let runtime = Arc::new(Expiring {
            inner: ScriptedRuntime::new(jig_testkit::host(), script),
            expires_at: fixture.config.clock.now().saturating_add(left),
        });
        let seen = BUILD.replace(
            "command: '",
            "command: 'test ! -e ../roles/builder/home/.agent/token && ",
        );
        let outcome = run_with(&fixture, &seen, runtime, Options::default())
            .await
            .unwrap();
        if works {
            assert_eq!(
                outcome.state,
                AttemptState::AcceptedUnpublished,
                "{outcome:#?}"
            );
        } else {
            assert_eq!(outcome.cause, Some(Cause::Auth), "{outcome:#?}");
            assert_eq!(outcome.result.spend.sends, 0);
            assert!(outcome.error.clone().unwrap().contains("log in again"));
        }
        assert_clean(&outcome);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_could_not_be_looked_at_is_kept() {
    let fixture = fixture();
    // What is captured could be kept nowhere: as on a full disk.
    let steps = "
    - write: {src/a.rs: \"hours of work\\n\"}
      run: 'rm -r ../content && echo > ../content'
      emit: {status: success, summary: done, artifacts: [src/a.rs], changed_files: [src/a.rs]}
";
    let outcome = run(&fixture, BUILD, steps).await;
    assert_eq!(
        (outcome.end, outcome.cause),
        (AttemptEnd::Infrastructure, Some(Cause::Infrastructure)),
        "{outcome:#?}"
    );
    assert!(!fixture.repo.refs().contains("refs/heads/jig/"));
    let (tree, _) = outcome.disposed.tree_kept.clone().unwrap();
    assert_eq!(
        std::fs::read_to_string(tree.join("src/a.rs")).unwrap(),
        "hours of work\n"
    );
}
