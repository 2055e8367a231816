//! Runs with genuine agents that are stopped from outside: by a signal, by the
//! operator, by a clock.

use std::path::{Path, PathBuf};

use jig_testkit::model::{Script, Step};
use serde_json::{Value, json};

use super::world::{Agent, ONE_AGENT, World, answer, names};
use crate::env::{finish, wait_for};
use crate::kills::kill_when;
use crate::support::of_type;
use crate::trial::signal;

/// What a tool does that never ends, one of it in a session of its own.
const ENDLESS: &str = "(setsid tail -f /dev/null &) ; tail -f /dev/null";

fn limited(limits: &str) -> String {
    ONE_AGENT.replace("acceptance", &format!("limits: {{{limits}}}\nacceptance"))
}

fn done(agent: Agent) -> [Step; 2] {
    [agent.writes("src/new.txt", "new"), answer(&["src/new.txt"])]
}

/// The tree of the only attempt, once it holds `path`.
fn wait_for_work(world: &World, path: &str) -> PathBuf {
    wait_for(path, || {
        let tree = world.trial.attempts().pop()?.join("tree");
        tree.join(path).exists().then_some(tree)
    })
}

/// What an ended attempt keeps, with its tree.
const KEPT: [&str; 5] = ["git", "logs", "manifest.json", "trace.jsonl", "tree"];

fn name(attempt: &Path) -> &str {
    attempt.file_name().unwrap().to_str().unwrap()
}

/// Killed while the model answers: nobody stays, and the next run puts the dead
/// one in order before it does its own work.
fn killed(agent: Agent) {
    let mut steps = vec![agent.writes("src/half.txt", "half"), Step::hang()];
    steps.extend(done(agent));
    let script = agent.plays(Script::new(), steps);
    let Some(world) = World::new(&[agent], ONE_AGENT, script) else {
        return;
    };
    let answered = || world.server.turns().len() == 2;
    assert!(kill_when(world.start(), answered));
    world.trial.assert_nobody_left();
    world.assert_key_nowhere();

    let next = world.run();
    let report = next.expect(0).json();
    assert_eq!(report["changed_paths"], json!(["src/new.txt"]));
    let [dead, _] = &world.trial.attempts()[..] else {
        panic!("not two attempts");
    };
    let id = name(dead);
    assert!(next.stderr.contains(id), "{}", next.stderr);
    let tree = dead.join("tree");
    let kept = std::fs::read_to_string(tree.join("src/half.txt"));
    assert_eq!(kept.unwrap(), "half\n");
    assert!(next.stderr.contains(tree.to_str().unwrap()));
    let record = &world.trial.ask(&["attempt", "show", id])[0];
    assert_eq!(record["state"], "lost", "{record}");
    assert_eq!(names(dead), KEPT);
    world.assert_nothing_left();
    world.assert_key_nowhere();
}

/// Ctrl-C while a tool of the agent works: its processes end with the run, what
/// it wrote is kept and named.
fn interrupted(agent: Agent) {
    let steps = [
        agent.runs(&format!("echo half > src/half.txt; {ENDLESS}")),
        // An agent that stops waiting for its tool asks what to do.
        Step::hang().repeated(),
    ];
    let script = agent.plays(Script::new(), steps);
    let Some(world) = World::new(&[agent], ONE_AGENT, script) else {
        return;
    };
    let jig = world.start();
    wait_for_work(&world, "src/half.txt");
    signal(&jig, "INT");
    let report = finish(jig).expect(3).json();
    assert_eq!(report["state"], "cancelled", "{report}");
    assert_eq!(report["outcome"], "rejected");
    assert_eq!(report["cause"], "cancelled");
    assert_eq!(report["publish"], "not_attempted");
    assert_eq!(report["changed_paths"], json!(["src/half.txt"]));
    assert_eq!(report["spend"]["sends"], 1);
    assert_eq!(report["spend"]["unmetered_sends"], 1);
    let tree = report["tree"].as_str().unwrap();
    let kept = std::fs::read_to_string(format!("{tree}/src/half.txt"));
    assert_eq!(kept.unwrap(), "half\n");
    let attempt = world.trial.attempts().remove(0);
    let events = world.trial.assert_whole_record(name(&attempt));
    assert_eq!(of_type(&events, "agent_end", None).len(), 1);
    assert_eq!(events.last().unwrap()["payload"]["end"], "cancelled");
    assert_eq!(names(&attempt), KEPT);
    world.assert_nothing_left();
    world.assert_key_nowhere();
}

/// A send that a clock ended is a death: undone, and done again in a
/// conversation that knows nothing of it.
#[track_caller]
fn assert_died_once(world: &World) {
    let done = world.run();
    let report = done.expect(0).json();
    let shown = format!("{report:#}\n{}", done.stderr);
    assert_eq!(report["budgets"]["deaths"], 1, "{shown}");
    assert_eq!(report["changed_paths"], json!(["src/new.txt"]), "{shown}");
    assert_eq!(report["spend"]["sends"], 2, "{shown}");
    assert_eq!(report["spend"]["unmetered_sends"], 1, "{shown}");
    let attempt = report["attempt_id"].as_str().unwrap();
    let events = world.trial.assert_whole_record(attempt);
    let starts = of_type(&events, "agent_start", None);
    let ends = of_type(&events, "agent_end", None);
    assert_eq!((starts.len(), ends.len()), (2, 2), "{shown}");
    let session = |start: &Value| start["payload"]["session"].clone();
    assert_ne!(session(starts[0]), session(starts[1]));
    assert_eq!(ends[0]["payload"]["class"], "killed_by_clock");
    assert_eq!(ends[1]["payload"]["outcome"], "passed");
    assert_eq!(of_type(&events, "phase_death", None).len(), 1);
    let turns = world.server.turns();
    let last = turns.last().unwrap();
    assert!(last.contains("new.txt") && !last.contains("half.txt"));
    world.assert_nothing_left();
    world.assert_key_nowhere();
}

/// The conversation in which this was written gets no answer any more.
fn then_silent(agent: Agent, first: Step) -> Script {
    let mut steps = vec![first];
    steps.extend(done(agent));
    let silent = [Step::hang().repeated()];
    let script = Script::new().queue("silent", |request| request.contains("half.txt"), silent);
    agent.plays(script, steps)
}

fn silent(agent: Agent) {
    let script = then_silent(agent, agent.writes("src/half.txt", "half"));
    let definition = limited("silence_timeout: 6s");
    if let Some(world) = World::new(&[agent], &definition, script) {
        assert_died_once(&world);
    }
}

/// As long as a tool works nobody need say anything, until the phase's time is
/// up.
fn too_long(agent: Agent) {
    let endless = agent.runs(&format!("echo half > src/half.txt; {ENDLESS}"));
    let script = then_silent(agent, endless);
    let definition = limited("silence_timeout: 4s, phase_timeout: 9s");
    let Some(world) = World::new(&[agent], &definition, script) else {
        return;
    };
    let began = std::time::Instant::now();
    assert_died_once(&world);
    assert!(began.elapsed() >= std::time::Duration::from_secs(9));
}

#[test]
fn killed_while_claude_code_works_it_leaves_nobody_and_is_put_in_order() {
    killed(Agent::Claude);
}

#[test]
fn killed_while_codex_works_it_leaves_nobody_and_is_put_in_order() {
    killed(Agent::Codex);
}

#[test]
fn interrupted_in_a_tool_of_claude_code_it_ends_everything() {
    interrupted(Agent::Claude);
}

#[test]
fn interrupted_in_a_tool_of_codex_it_ends_everything() {
    interrupted(Agent::Codex);
}

#[test]
fn a_silent_model_is_a_death_of_claude_code() {
    silent(Agent::Claude);
}

#[test]
fn a_silent_model_is_a_death_of_codex() {
    silent(Agent::Codex);
}

#[test]
fn a_tool_without_end_is_a_death_of_claude_code_when_the_phases_time_is_up() {
    too_long(Agent::Claude);
}

#[test]
fn a_tool_without_end_is_a_death_of_codex_when_the_phases_time_is_up() {
    too_long(Agent::Codex);
}
