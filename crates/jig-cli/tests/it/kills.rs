//! A jig that is killed at any moment, and the next one.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jig_controlplane::Store;
use jig_controlplane::store::OpenOptions;
use jig_process::{Liveness, ProcessIdentity};

use crate::env::{BOUND, finish, processes_with, wait_for};
use crate::support::Untouched;
use crate::trial::{DONE, ONE_AGENT, Trial, signal, trace};

/// At how many points of a run it is killed.
fn points() -> usize {
    if jig_testkit::long() { 40 } else { 20 }
}

/// Agents, gates and commands: enough for more events than there are points.
const LONG_WAY: &str = "
name: long-way
roster:
  builder:
    model: haiku
    writes: [\"src/**\"]
    env: [PATH]
    system_prompt: You build.
    user_prompt: \"{{prompt}}\"
phases:
  - name: build
    kind: agent
    owner: builder
    gates: [{name: tests_pass, command: 'test -e src/a.txt'}]
  - {name: check, kind: code, owner: builder, command: 'sleep 0.1'}
  - name: polish
    kind: agent
    owner: builder
    gates: [{name: tests_pass, command: 'test -e src/b.txt'}]
  - {name: again, kind: code, owner: builder, command: '(setsid sleep 600 &) ; true'}
acceptance: [all_phases_passed]
";

fn long_way() -> String {
    let step = |file: &str| {
        format!(
            "{{write: {{{file}: \"two\\n\", \"~/.config/left\": x}}, \
             spawn: \"trap '' TERM; sleep 600\", setsid: true, delay: 100ms, \
             tools: [{{name: A}}, {{name: B, input: {{c: d}}}}], text: [a, b], {DONE}}}"
        )
    };
    format!(
        "roles: {{builder: [{}, {}]}}",
        step("src/a.txt"),
        step("src/b.txt")
    )
}

/// Kills a jig once `due` says so. Whether it was killed before its end.
pub(crate) fn kill_when(mut jig: Child, mut due: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + BOUND;
    while !due() {
        if let Some(status) = jig.try_wait().unwrap() {
            assert!(status.success(), "it ended by itself: {status}");
            return false;
        }
        assert!(Instant::now() < end, "the point was never reached");
        std::thread::sleep(Duration::from_millis(1));
    }
    let children = children(&jig);
    jig.kill().unwrap();
    let killed = jig.wait().unwrap().signal() == Some(9);
    // Supervisors have no environment to be known by.
    wait_for("the end of what jig had started", || {
        children
            .iter()
            .all(|(child, _)| child.liveness() == Liveness::Gone)
            .then_some(())
    });
    killed
}

/// The direct children of a jig, with their command lines.
fn children(jig: &Child) -> Vec<(ProcessIdentity, String)> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{}/task", jig.id()))
        .into_iter()
        .flatten()
    {
        let list = std::fs::read_to_string(task.unwrap().path().join("children"));
        for child in list.unwrap_or_default().split_whitespace() {
            let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if let Some(identity) = ProcessIdentity::of(child.parse().unwrap()).unwrap() {
                found.push((identity, line));
            }
        }
    }
    found
}

/// The state of the job that an attempt belongs to.
fn job_state(trial: &Trial, attempt: &str) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let clock = Arc::new(jig_process::SystemClock::new());
        let store = Store::open(&trial.env.data(), clock, &OpenOptions::default())
            .await
            .unwrap();
        let attempt = store
            .attempt(attempt.parse().unwrap())
            .await
            .unwrap()
            .unwrap();
        let job = store.job(attempt.job_id).await.unwrap().unwrap();
        store.close().await;
        job.state.as_str().to_owned()
    })
}

fn name(attempt: &Path) -> &str {
    attempt.file_name().unwrap().to_str().unwrap()
}

/// The next run has put the dead attempt in order, and says so.
#[track_caller]
fn assert_reclaimed(trial: &Trial, attempt: &Path, next_said: &str) {
    let id = name(attempt);
    assert!(next_said.contains(id), "{next_said}");
    let record = &trial.ask(&["attempt", "show", id])[0];
    assert_eq!(record["state"], "lost", "{record}");
    assert_eq!(job_state(trial, id), "failed");
    trial.assert_tidy(attempt);
    let stored = trial.ask(&["attempt", "events", id]);
    assert_eq!(stored, trace(attempt), "store and trace differ");
    let tree = attempt.join("tree");
    if tree.exists() {
        assert!(next_said.contains(tree.to_str().unwrap()), "{next_said}");
        let kept = format!("{:?}", trial.ask(&["worktree", "list"]));
        assert!(kept.contains(tree.to_str().unwrap()), "{kept}");
    }
    let manifest = std::fs::read_to_string(attempt.join("manifest.json"));
    if let Ok(manifest) = manifest {
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest["process_groups"], serde_json::json!([]));
    }
}

#[test]
fn killed_at_any_line_of_its_trace_it_leaves_nobody_and_is_put_in_order() {
    let mut trial = Trial::new(LONG_WAY, &long_way());
    let before_all = Untouched::of(&trial.repo);
    let mut killed = 0;
    for point in 1..=points() {
        trial.definition(LONG_WAY);
        trial.script(&long_way());
        let before = trial.attempts();
        let mut attempt: Option<PathBuf> = None;
        let was_killed = kill_when(trial.start(), || {
            attempt = attempt.take().or_else(|| {
                trial
                    .attempts()
                    .into_iter()
                    .find(|attempt| !before.contains(attempt))
            });
            attempt
                .as_ref()
                .is_some_and(|attempt| trace(attempt).len() >= point)
        });
        trial.assert_nobody_left();
        assert_eq!(Untouched::of(&trial.repo), before_all, "point {point}");
        let attempt = attempt.unwrap();
        let next = trial.assert_next_run_works();
        trial.assert_nobody_left();
        if was_killed {
            killed += 1;
            let ended = trial.ask(&["attempt", "show", name(&attempt)])[0]["state"] != "lost";
            let told = trace(&attempt)
                .iter()
                .any(|event| event["type"] == "attempt_end");
            if ended {
                // Killed between its recorded end and its exit.
                assert!(told, "point {point}");
            } else {
                assert_reclaimed(&trial, &attempt, &next.stderr);
            }
        }
    }
    assert!(killed >= 18, "only {killed} were killed before their end");
}

#[test]
fn killed_before_its_trace_begins_it_is_put_in_order_too() {
    let mut trial = Trial::new(LONG_WAY, &long_way());
    let runs = trial.env.data().join("runs");
    let some = |dir: &Path| std::fs::read_dir(dir).is_ok_and(|mut list| list.next().is_some());
    let points: [&dyn Fn() -> bool; 3] = [
        &|| trial.env.data().join("jig.db").exists(),
        &|| some(&runs),
        &|| some(&trial.env.data().join("attempts")),
    ];
    let killed = points.map(|due| {
        let killed = kill_when(trial.start(), due);
        trial.assert_nobody_left();
        killed
    });
    assert_eq!(killed, [true; 3]);
    trial.assert_next_run_works();
    let markers = std::fs::read_dir(runs).unwrap().count();
    assert_eq!(markers, 0);
    for row in trial.attempts() {
        let record = trial
            .env
            .jig(&trial.repo, &["--json", "attempt", "show", name(&row)]);
        let states = ["\"lost\"", "\"accepted_unpublished\""];
        assert!(
            states.iter().any(|state| record.stdout.contains(state)),
            "{record:?}"
        );
    }
}

#[test]
fn who_lost_jig_and_supervisor_at_once_is_ended_by_the_next_run() {
    let script = format!(
        "roles: {{builder: [{{write: {{src/a.txt: \"two\\n\"}}, \
         run: \"trap '' TERM; (setsid sh -c 'while :; do sleep 1; done' @DIR@ &); \
         touch @DIR@/ready; sleep 600\", {DONE}}}]}}"
    );
    let mut trial = Trial::new(ONE_AGENT, &script);
    let mut jig = trial.start();
    trial.wait_for_file("ready");
    let attempt = trial.attempts().remove(0);
    // Jig must not see that its supervisors die.
    signal(&jig, "STOP");
    let supervisors = children(&jig);
    assert!(!supervisors.is_empty());
    for (supervisor, line) in &supervisors {
        assert!(line.contains("--jig-hidden-mode"), "{line}");
        let pid = supervisor.pid().to_string();
        assert!(
            Command::new("kill")
                .args(["-KILL", &pid])
                .status()
                .unwrap()
                .success()
        );
    }
    jig.kill().unwrap();
    jig.wait().unwrap();
    // The operator looks around meanwhile.
    let mut visitor = Command::new("sleep")
        .arg("600")
        .current_dir(attempt.join("tree"))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let left = processes_with(attempt.to_str().unwrap());
    assert!(left.len() >= 3, "nobody was left to be found: {left:?}");
    let next = trial.assert_next_run_works();
    assert_eq!(
        visitor.try_wait().unwrap(),
        None,
        "the operator's process was ended"
    );
    visitor.kill().unwrap();
    visitor.wait().unwrap();
    trial.assert_nobody_left();
    assert_reclaimed(&trial, &attempt, &next.stderr);
    let kept = format!("{:?}", trial.ask(&["worktree", "list"]));
    assert!(
        kept.contains("still at work in it, the first is sleep 600"),
        "{kept}"
    );
}

/// Answers what jig asks an agent CLI before it is used, then hangs.
const STUB: &str = r#"#!/bin/sh
case "$1" in
--version) echo "2.1.332 (Claude Code)"; exit 0;;
--help) echo "--print --output-format --verbose --include-partial-messages --permission-mode \
  --setting-sources --strict-mcp-config --session-id --resume --system-prompt --tools --effort \
  --max-budget-usd --json-schema"; exit 0;;
esac
echo "$HOME" > @DIR@/role-home
trap '' TERM
touch @DIR@/ready
sleep 600
"#;

#[test]
fn a_login_is_gone_soon_after_jig_was_killed() {
    let mut trial = Trial::new(ONE_AGENT, "roles: {builder: [{emit: x}]}");
    let program = trial
        .env
        .file("bin/claude", &STUB.replace("@DIR@", &trial.marker()));
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}/bin:{}", trial.marker(), std::env::var("PATH").unwrap());
    trial.env.vars.insert("PATH".into(), path.into());
    let login = "{\"claudeAiOauth\":{\"accessToken\":\"the-access-token\"}}";
    trial.env.file("home/.claude/.credentials.json", login);

    let mut jig = trial.start_with(&["--runtime", "claude-code"]);
    trial.wait_for_file("ready");
    let home = std::fs::read_to_string(trial.env.path("role-home")).unwrap();
    let seeded = Path::new(home.trim()).join(".claude/.credentials.json");
    assert_eq!(std::fs::read_to_string(&seeded).unwrap(), login);
    jig.kill().unwrap();
    jig.wait().unwrap();
    wait_for("the login's end", || (!seeded.exists()).then_some(()));
    trial.assert_nobody_left();
    let attempt = trial.attempts().remove(0);
    let next = trial.assert_next_run_works();
    assert_reclaimed(&trial, &attempt, &next.stderr);
    let own = trial.env.path("home/.claude/.credentials.json");
    assert_eq!(std::fs::read_to_string(own).unwrap(), login);
}

#[test]
fn a_run_that_lives_is_left_alone_by_the_next() {
    let script = format!(
        "roles: {{builder: [{{run: 'touch @DIR@/ready; until test -e @DIR@/go; do sleep 0.1; done', {DONE}}}]}}"
    );
    let mut trial = Trial::new(ONE_AGENT, &script);
    let first = trial.start();
    trial.wait_for_file("ready");
    let next = trial.assert_next_run_works();
    assert!(
        !next.stderr.contains("of an earlier run that died"),
        "{}",
        next.stderr
    );
    trial.env.file("go", "");
    assert_eq!(
        finish(first).expect(0).json()["state"],
        "accepted_unpublished"
    );
    trial.assert_nobody_left();
}
