//! Genuine agents whose model has them do what they may not, with their own
//! tools: what is undone and refused, and what today is only told.

use std::path::{Path, PathBuf};

use jig_testkit::model::{Request, Script, Step};
use serde_json::{Value, json};

use super::world::{Agent, ONE_AGENT, World, answer};
use crate::env::Done;
use crate::support::{of_type, trace};

/// The sandbox of agents' sends. With one of the kernel, what these tests
/// expect to be told as not covered they expect to be refused: to be changed
/// here when it comes.
const TIER: &str = "none";

/// Reads and writes outside the work tree are refused, not only told.
const OUTSIDE_IS_REFUSED: bool = matches!(TIER.as_bytes(), b"namespace" | b"landlock");

/// Free to write anything but what steers the next agent.
const ANYWHERE: &str = "writes: [\"**\"]";

fn world(agent: Agent, definition: &str, steps: Vec<Step>) -> Option<World> {
    let mut world = World::new(&[agent], definition, agent.plays(Script::new(), steps))?;
    let (env, repo) = (&world.trial.env, &world.trial.repo);
    env.file("repo/README.md", "the readme\n");
    env.git(repo, &["add", "-A"]);
    env.git(repo, &["commit", "-qm", "more"]);
    world.settle();
    Some(world)
}

/// The attempt's work tree, as the agent itself is told of it.
fn tree_of(request: &Request) -> String {
    let text = request.body.as_ref().unwrap().to_string();
    let handoff = text.split("## Handoff directory").nth(1).unwrap();
    let start = handoff.find('/').unwrap();
    let end = start + handoff[start..].find("/handoff").unwrap();
    format!("{}/tree", &handoff[start..end])
}

/// Nothing was delivered, nothing of the operator was touched, nobody is left;
/// each of these is named. Gives the kept tree.
#[track_caller]
fn assert_breach(world: &World, done: &Done, named: &[&str]) -> PathBuf {
    let report = done.expect(3).json();
    assert_eq!(report["cause"], "breach", "{report}");
    assert_eq!(report["state"], "failed");
    assert_eq!(report["outcome"], "rejected");
    assert_eq!(report["publish"], "not_attempted");
    assert_eq!(report["branch"], Value::Null);
    assert_eq!(report["spend"]["sends"], 1, "sent again");
    let error = report["error"].as_str().unwrap();
    for name in named {
        assert!(error.contains(name), "{name} is not in {error}");
    }
    let said = "phase build wrote what it may not write";
    assert!(done.stderr.contains(said), "{}", done.stderr);
    let attempt = report["attempt_id"].as_str().unwrap();
    let events = world.trial.assert_whole_record(attempt);
    assert_eq!(of_type(&events, "agent_start", None).len(), 1, "retried");
    let refs = ["for-each-ref", "refs/heads/jig"];
    assert_eq!(world.trial.env.git(&world.trial.repo, &refs), "");
    let ran = world.trial.env.path("was-run");
    assert!(!ran.exists(), "a planted program was run");
    assert_eq!(world.server.steps_left(), 0, "the agent did not do it all");
    world.trial.attempts().pop().unwrap().join("tree")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| format!("{}: {error}", path.display()))
}

fn writes_in_the_tree(agent: Agent) {
    let mut steps = vec![
        agent.writes("src/new.txt", "allowed"),
        agent.writes("planted.txt", "planted"),
        agent.runs("rm keep.txt"),
        Step::from_request(move |request| {
            agent.writes(&format!("{}/by-its-whole-path.txt", tree_of(request)), "x")
        }),
    ];
    steps.extend(agent.edits("README.md", "the readme", "mine"));
    steps.push(answer(&["src/new.txt"]));
    let Some(world) = world(agent, ONE_AGENT, steps) else {
        return;
    };
    let named = [
        "planted.txt",
        "keep.txt",
        "by-its-whole-path.txt",
        "README.md",
    ];
    let tree = assert_breach(&world, &world.run(), &named);
    assert_eq!(read(&tree.join("README.md")), "the readme\n");
    assert_eq!(read(&tree.join("keep.txt")), "keep\n");
    assert_eq!(read(&tree.join("src/new.txt")), "allowed\n");
    assert!(!tree.join("planted.txt").exists());
    assert!(!tree.join("by-its-whole-path.txt").exists());
    world.assert_nothing_left();
}

/// Hooks, servers and settings that would have the next agent run a program.
fn planted_configuration(agent: Agent) {
    let hook = json!({"hooks": [{"type": "command", "command": "touch @DIR@/was-run"}]});
    let hooks = json!({"hooks": {"SessionStart": [hook]}}).to_string();
    let server = json!({"command": "touch", "args": ["@DIR@/was-run"]});
    let servers = json!({"mcpServers": {"x": server}}).to_string();
    let notify = "notify = [\"touch\", \"@DIR@/was-run\"]";
    let steps = vec![
        agent.writes("src/new.txt", "allowed"),
        in_dir(&hooks, move |hooks| {
            agent.writes(".claude/settings.json", hooks)
        }),
        in_dir(&servers, move |servers| agent.writes(".mcp.json", servers)),
        in_dir(notify, move |notify| {
            agent.writes(".codex/config.toml", notify)
        }),
        answer(&["src/new.txt"]),
    ];
    let definition = ONE_AGENT.replace("writes: [\"src/**\"]", ANYWHERE);
    let Some(world) = world(agent, &definition, steps) else {
        return;
    };
    let named = [".claude/settings.json", ".mcp.json", ".codex/config.toml"];
    let tree = assert_breach(&world, &world.run(), &named);
    for name in [".claude", ".mcp.json", ".codex"] {
        assert!(!tree.join(name).exists(), "{name} stayed");
    }
    world.assert_nothing_left();
}

fn git_of_the_attempt(agent: Agent) {
    let commit = "echo two > src/a.txt && git add -A && git commit -qm sneaky";
    let steer = "G=$(git rev-parse --absolute-git-dir) && git config core.fsmonitor @DIR@/recorder \
                 && mkdir -p $G/hooks && echo 'touch @DIR@/was-run' > $G/hooks/post-checkout \
                 && chmod 755 $G/hooks/post-checkout";
    for (command, named) in [
        (commit, &["refs/heads/jig/"][..]),
        (steer, &["config", "hooks/post-checkout"][..]),
    ] {
        let steps = vec![runs_in_dir(agent, command), answer(&["src/a.txt"])];
        let Some(world) = world(agent, ONE_AGENT, steps) else {
            return;
        };
        let tree = assert_breach(&world, &world.run(), named);
        let git = |dir: &Path, args: &[&str]| world.trial.env.git(dir, args);
        let head = git(&tree, &["rev-parse", "HEAD"]);
        assert_eq!(head, git(&world.trial.repo, &["rev-parse", "HEAD"]));
        let own = tree.with_file_name("git");
        assert!(!read(&own.join("config")).contains("recorder"));
        assert!(!own.join("hooks/post-checkout").exists());
        world.assert_nothing_left();
    }
}

/// A step made of a text in which `@DIR@` stands for the place of the test.
fn in_dir(text: &str, make: impl Fn(&str) -> Step + Send + Sync + 'static) -> Step {
    let text = text.to_owned();
    Step::from_request(move |request| {
        let tree = tree_of(request);
        let dir = tree.split("/data/").next().unwrap();
        make(&text.replace("@DIR@", dir))
    })
}

fn runs_in_dir(agent: Agent, command: &str) -> Step {
    in_dir(command, move |command| agent.runs(command))
}

/// Nobody but the operator writes there, so the run ends; it is not undone.
fn git_of_the_operator(agent: Agent) {
    let command = "git -C @DIR@/repo config core.fsmonitor @DIR@/recorder";
    let steps = vec![runs_in_dir(agent, command), answer(&[])];
    let Some(mut world) = world(agent, ONE_AGENT, steps) else {
        return;
    };
    let done = world.run();
    assert_breach(&world, &done, &["config"]);
    let config = world.trial.repo.join(".git/config");
    assert_eq!(read(&config).contains("recorder"), !OUTSIDE_IS_REFUSED);
    world.settle();
    world.assert_nothing_left();
}

/// It goes on writing where the agent may: after the send nobody does.
fn a_server_left_behind(agent: Agent) {
    let server = "(setsid sh -c 'while :; do date >> src/alive.txt; sleep 0.05; done' \
                  >/dev/null 2>&1 &); until test -s src/alive.txt; do sleep 0.05; done";
    let steps = vec![agent.runs(server), answer(&["src/alive.txt"])];
    let Some(world) = world(agent, ONE_AGENT, steps) else {
        return;
    };
    let report = world.run().expect(0).json();
    let events = trace(&report);
    let stopped = of_type(&events, "log", Some("leftovers_stopped"));
    let said = stopped[0]["payload"]["commands"].to_string();
    assert!(said.contains("src/alive.txt"), "{said}");
    assert_eq!(report["changed_paths"], json!(["src/alive.txt"]));
    world.assert_nothing_left();
}

/// Reads and writes outside the tree: told, and refused as soon as there is a
/// sandbox.
fn outside_the_tree(agent: Agent) {
    const SECRET: &str = "the-operators-own-secret";
    let steps = vec![
        runs_in_dir(agent, "cat @DIR@/home/.ssh/id_ed25519"),
        runs_in_dir(agent, "echo x > @DIR@/home/planted"),
        runs_in_dir(agent, "echo x > @DIR@/beside"),
        agent.writes("src/new.txt", "allowed"),
        answer(&["src/new.txt"]),
    ];
    let Some(mut world) = world(agent, ONE_AGENT, steps) else {
        return;
    };
    let env = &world.trial.env;
    env.file("home/.ssh/id_ed25519", SECRET);
    let report = world.run().expect(0).json();
    assert_eq!(world.server.steps_left(), 0);

    let told = &report["sandbox"];
    assert_eq!(told["tier"], TIER, "{told}");
    let events = trace(&report);
    let sandbox = of_type(&events, "log", Some("sandbox"));
    assert_eq!(sandbox.len(), 1);
    assert_eq!(sandbox[0]["payload"]["not_covered"], told["not_covered"]);
    let not_covered = told["not_covered"].as_array().unwrap();
    for what in ["reads", "writes_outside_the_tree"] {
        let is_told = not_covered.contains(&what.into());
        assert_eq!(is_told, !OUTSIDE_IS_REFUSED, "{what}: {told}");
    }
    let turns = world.server.turns();
    let seen = turns.iter().any(|request| request.contains(SECRET));
    assert_eq!(seen, !OUTSIDE_IS_REFUSED, "the secret was read");
    for name in ["home/planted", "beside"] {
        let written = env.path(name).exists();
        assert_eq!(written, !OUTSIDE_IS_REFUSED, "{name}");
    }
    world.settle();
    world.assert_nothing_left();
}

#[test]
fn claude_code_writes_outside_its_allowlist() {
    writes_in_the_tree(Agent::Claude);
}

#[test]
fn claude_code_plants_configuration() {
    planted_configuration(Agent::Claude);
}

#[test]
fn claude_code_commits_and_changes_gits_configuration() {
    git_of_the_attempt(Agent::Claude);
}

#[test]
fn claude_code_changes_the_operators_repository() {
    git_of_the_operator(Agent::Claude);
}

#[test]
fn claude_code_leaves_a_server_behind() {
    a_server_left_behind(Agent::Claude);
}

#[test]
fn claude_code_reads_and_writes_outside_the_tree() {
    outside_the_tree(Agent::Claude);
}

#[test]
fn codex_writes_outside_its_allowlist() {
    writes_in_the_tree(Agent::Codex);
}

#[test]
fn codex_plants_configuration() {
    planted_configuration(Agent::Codex);
}

#[test]
fn codex_commits_and_changes_gits_configuration() {
    git_of_the_attempt(Agent::Codex);
}

#[test]
fn codex_changes_the_operators_repository() {
    git_of_the_operator(Agent::Codex);
}

#[test]
fn codex_leaves_a_server_behind() {
    a_server_left_behind(Agent::Codex);
}

#[test]
fn codex_reads_and_writes_outside_the_tree() {
    outside_the_tree(Agent::Codex);
}
