//! SIGKILL of jig at any moment of a run, and two runs at once.

use std::path::PathBuf;
use std::process::{Child, Command};

use serde_json::Value;

use crate::env::{Done, Env, finish, processes_with, wait_for};

/// An agent, a command and a gate, each of which may be told to hang.
const DEFINITION: &str = "\
name: stops
roster:
  worker: {model: none, writes: ['**'], env: [PATH], system_prompt: Work., user_prompt: '{{prompt}}'}
phases:
  - {name: work, kind: agent, owner: worker, gates: [{name: tests_pass, command: 'GATE'}]}
  - {name: check, kind: code, command: 'CODE'}
acceptance: [all_phases_passed]
";

const ANSWER: &str = "emit: {status: success, summary: done, artifacts: []}";

struct World {
    env: Env,
    repo: PathBuf,
}

impl World {
    fn new() -> Self {
        let env = Env::new();
        let repo = env.repo("repo", &[("a.txt", "one\n")]);
        Self { env, repo }
    }

    /// Starts a run; `step` is what the agent does besides answering.
    fn start(&self, step: &str, gate: &str, code: &str) -> Child {
        let text = DEFINITION.replace("GATE", gate).replace("CODE", code);
        let def = self.env.file("def.yaml", &text);
        let script = format!("roles:\n  worker:\n    - write: {{new.txt: \"new\\n\"}}\n{step}");
        let script = self.env.file("script.yaml", &script);
        let (def, script) = (def.to_str().unwrap(), script.to_str().unwrap());
        let args = [
            "run",
            "--json",
            "--def",
            def,
            "--runtime",
            "scripted",
            "--script",
            script,
            "Work",
        ];
        self.env.start(&self.repo, &args)
    }

    fn traces(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.env.data().join("attempts")) else {
            return Vec::new();
        };
        let mut found: Vec<PathBuf> = entries
            .map(|entry| entry.unwrap().path().join("trace.jsonl"))
            .filter(|path| path.exists())
            .collect();
        found.sort();
        found
    }

    /// Everything alive that belongs to this test's directory.
    fn alive(&self) -> Vec<String> {
        processes_with(self.env.path("").to_str().unwrap())
    }

    #[track_caller]
    fn wait_until_nothing_lives(&self) {
        wait_for("the end of every process", || {
            self.alive().is_empty().then_some(())
        });
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn killed_at_any_moment_nothing_lives_on_and_the_next_run_reclaims() {
    let points = if std::env::var_os("JIG_LONG").is_some() {
        40
    } else {
        20
    };
    let step = format!(
        "      tools: [{{name: A}}, {{name: B}}, {{name: C}}]\n      text: [a, b, c]\n      delay: 30ms\n      {ANSWER}\n"
    );
    for point in 1..=points {
        let world = World::new();
        let mut child = world.start(&step, "sleep 0.05", "sleep 0.05 && echo done");
        // The k-th line of the trace, or the run's own end where there are fewer.
        let killed = wait_for("the trace to grow", || {
            if child.try_wait().unwrap().is_some() {
                return Some(false);
            }
            let written = world
                .traces()
                .pop()
                .and_then(|trace| std::fs::read_to_string(trace).ok());
            (written.unwrap_or_default().lines().count() >= point).then_some(true)
        });
        signal_quietly(&child);
        let done = finish(child);
        world.wait_until_nothing_lives();
        let next = finish(world.start(&format!("      {ANSWER}\n"), "true", "true"));
        assert_eq!(
            next.expect(0).json()["outcome"],
            "accepted",
            "point {point}"
        );
        if !killed || done.code.is_some() {
            continue;
        }
        assert_reclaimed(&world, &next, point);
    }
}

fn signal_quietly(child: &Child) {
    // It may have ended by itself just now.
    let _ended = Command::new("kill")
        .args(["-KILL", &child.id().to_string()])
        .output();
}

/// The dead run's attempt is lost or ended, its trace is in the store, its
/// short-lived directories and its marker are gone.
#[track_caller]
fn assert_reclaimed(world: &World, next: &Done, point: usize) {
    let dead = world.traces().first().unwrap().parent().unwrap().to_owned();
    let attempt = dead.file_name().unwrap().to_str().unwrap();
    let shown = world
        .env
        .jig(&world.repo, &["attempt", "show", attempt, "--json"]);
    let stored = shown.expect(0).json();
    let state = stored["state"].as_str().unwrap();
    assert!(
        ["lost", "accepted_unpublished"].contains(&state),
        "point {point}: {state}"
    );
    let events = world
        .env
        .jig(&world.repo, &["attempt", "events", attempt, "--json"]);
    let stored_events = lines(&events.expect(0).stdout);
    let traced = std::fs::read_to_string(dead.join("trace.jsonl")).unwrap();
    let traced: Vec<Value> = traced
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    assert_eq!(stored_events, traced, "point {point}");
    for gone in ["roles", "commands", "handoff"] {
        assert!(!dead.join(gone).exists(), "point {point}: {gone} stays");
    }
    let markers: Vec<_> = std::fs::read_dir(world.env.data().join("runs"))
        .unwrap()
        .collect();
    assert!(markers.is_empty(), "point {point}: {markers:?}");
    if state == "lost" {
        let tree = dead.join("tree");
        assert!(tree.exists(), "point {point}: the tree is kept");
        assert!(
            next.stderr.contains(tree.to_str().unwrap()),
            "point {point}: {}",
            next.stderr
        );
    }
}

#[test]
fn two_runs_at_once_on_a_missing_data_directory_both_finish() {
    let rounds = if std::env::var_os("JIG_LONG").is_some() {
        20
    } else {
        3
    };
    for round in 0..rounds {
        let world = World::new();
        let step = format!("      {ANSWER}\n");
        let first = world.start(&step, "true", "true");
        let second = world.start(&step, "true", "true");
        let reports = [finish(first), finish(second)].map(|done| done.expect(0).json());
        for report in &reports {
            assert_eq!(report["outcome"], "accepted", "round {round}");
        }
        assert_ne!(reports[0]["run_id"], reports[1]["run_id"]);
        assert_eq!(world.alive(), [""; 0]);
    }
}
