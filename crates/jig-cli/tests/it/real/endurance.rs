//! Many runs in a row with two genuine agents, that end in every way there is:
//! nobody is left, nothing outside the data directory, and in it no more than
//! what is kept of each attempt.

use std::collections::BTreeSet;
use std::path::Path;

use jig_testkit::model::{Script, Step, Vendor};

use super::world::{Agent, World, answer, each_file, each_path, names};
use crate::env::{finish, wait_for};
use crate::kills::kill_when;
use crate::trial::signal;

/// What one attempt may keep. Measured: at most 17 files with 8.3 kB, tree
/// included.
const FILES_OF_ATTEMPT: u64 = 32;
const BYTES_OF_ATTEMPT: u64 = 32 * 1024;
/// What the store holds at most, without attempts and for each. Measured: 200 kB
/// and 9 kB.
const BYTES_OF_STORE: u64 = 256 * 1024;
const BYTES_OF_ROWS: u64 = 16 * 1024;

const MIXED: &str = "
name: endurance
roster:
  builder:
    runtime: claude-code
    model: haiku
    writes: [\"src/**\"]
    @BUILDER@
    system_prompt: You build.
    user_prompt: \"{{prompt}}\"
  reviewer:
    runtime: codex
    model: gpt-5.5
    writes: []
    @REVIEWER@
    system_prompt: You review.
    user_prompt: \"{{prompt}}\"
phases:
  - {name: build, kind: agent, owner: builder}
  - {name: review, kind: agent, owner: reviewer}
acceptance: [all_phases_passed]
";

/// How a run goes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Accepted,
    /// The vendor knows nobody of this key.
    Failed,
    /// The builder wrote what it may not write.
    Breach,
    /// Ctrl-C while a tool of the builder works.
    Cancelled,
    /// SIGKILL while the reviewer waits for its model.
    Killed,
}

use Way::{Accepted, Breach, Cancelled, Failed, Killed};

/// All ways, and after the killed one another that puts it in order.
const WAYS: [Way; 6] = [Accepted, Killed, Breach, Cancelled, Failed, Accepted];

/// Rounds of all ways.
fn rounds() -> usize {
    if jig_testkit::long() { 5 } else { 1 }
}

const ENDLESS: &str = "echo half > src/half.txt; (setsid tail -f /dev/null &) ; tail -f /dev/null";

/// What the models of the builder and of the reviewer do in a run.
fn steps(way: Way) -> (Vec<Step>, Vec<Step>) {
    let claude = Agent::Claude;
    let builds = || {
        vec![
            claude.writes("src/new.txt", "new"),
            answer(&["src/new.txt"]),
        ]
    };
    match way {
        Accepted => (builds(), vec![Agent::Codex.runs("git status"), answer(&[])]),
        Failed => (vec![Step::error(401)], Vec::new()),
        Breach => (vec![claude.writes("planted", "x"), answer(&[])], Vec::new()),
        Cancelled => (vec![claude.runs(ENDLESS)], Vec::new()),
        Killed => (builds(), vec![Step::hang()]),
    }
}

/// One run, which ends as it should. Whether its tree is kept.
fn run(world: &World, way: Way) -> bool {
    let reviews = || {
        let turns = world.server.turns();
        let asked = turns
            .iter()
            .filter(|turn| turn.vendor == Some(Vendor::OpenAi));
        asked.count()
    };
    match way {
        Accepted => {
            world.run().expect(0);
            false
        }
        Failed => {
            let report = world.run().expect(1).json();
            assert_eq!(report["cause"], "auth", "{report}");
            false
        }
        Breach => {
            let report = world.run().expect(3).json();
            assert_eq!(report["cause"], "breach", "{report}");
            // All of its work was undone.
            false
        }
        Cancelled => {
            let before = world.trial.attempts();
            let jig = world.start();
            let attempt = wait_for("work", || {
                let attempt = world.trial.attempts().pop()?;
                let begun = !before.contains(&attempt);
                let half = attempt.join("tree/src/half.txt");
                let working = begun && half.exists();
                working.then_some(attempt)
            });
            assert_socket_inside(&attempt);
            signal(&jig, "INT");
            let report = finish(jig).expect(3).json();
            assert_eq!(report["state"], "cancelled", "{report}");
            true
        }
        Killed => {
            let before = reviews();
            assert!(kill_when(world.start(), || reviews() > before));
            true
        }
    }
}

/// Claude Code finds room for its socket in its own directory; else it would
/// leave one that all of the machine share.
#[track_caller]
fn assert_socket_inside(attempt: &Path) {
    let mut found = false;
    each_path(attempt, &mut |path| {
        found |= path.to_str().unwrap().contains("cc-socks");
    });
    assert!(found, "no socket below {}", attempt.display());
}

/// What is in the data directory besides attempts and the store.
fn rest(data: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    each_path(data, &mut |path| {
        let name = path.strip_prefix(data).unwrap().to_str().unwrap();
        if !name.starts_with("attempts/") && !name.starts_with("jig.db") {
            found.insert(name.to_owned());
        }
    });
    found
}

/// Files and bytes below a directory.
fn size(dir: &Path) -> (u64, u64) {
    let (mut files, mut bytes) = (0, 0);
    each_file(dir, &mut |path| {
        files += 1;
        bytes += path.symlink_metadata().unwrap().len();
    });
    (files, bytes)
}

/// Bytes of the store.
fn store(data: &Path) -> u64 {
    let of_store = names(data)
        .into_iter()
        .filter(|name| name.starts_with("jig.db"));
    of_store
        .map(|name| data.join(name).metadata().unwrap().len())
        .sum()
}

/// Every attempt keeps what it may and no more.
#[track_caller]
fn assert_small(world: &World, kept_trees: usize) {
    let attempts = world.trial.attempts();
    for attempt in &attempts {
        let (files, bytes) = size(attempt);
        assert!(
            files <= FILES_OF_ATTEMPT,
            "{files} files in {}",
            attempt.display()
        );
        assert!(
            bytes <= BYTES_OF_ATTEMPT,
            "{bytes} bytes in {}",
            attempt.display()
        );
    }
    let trees = attempts
        .iter()
        .filter(|attempt| attempt.join("tree").exists());
    assert_eq!(trees.count(), kept_trees);
    let rows = store(&world.trial.env.data());
    let bound = BYTES_OF_STORE + BYTES_OF_ROWS * attempts.len() as u64;
    assert!(
        rows <= bound,
        "{rows} bytes of rows of {} attempts",
        attempts.len()
    );
}

/// Once a hundred others came after them nothing is left of the attempts.
fn assert_gone_after_retention(world: &World, rest_of_data: &BTreeSet<String>) {
    let (env, data) = (&world.trial.env, world.trial.env.data());
    let home = env.path("home");
    for row in world.trial.ask(&["worktree", "list"]) {
        let id = row["attempt_id"].as_str().unwrap();
        let release = ["worktree", "release", id, "--confirm"];
        env.jig(&home, &release).expect(0);
    }
    let ours = world.trial.attempts();
    for newer in 0..jig_protocol::limits::RETAINED_ATTEMPTS {
        let name = format!("ffffffff-ffff-7000-8000-{newer:012}");
        std::fs::create_dir(data.join("attempts").join(name)).unwrap();
    }
    env.jig(&home, &["gc"]).expect(0);
    for attempt in ours {
        assert!(!attempt.exists(), "{} stayed", attempt.display());
    }
    assert_eq!(rest(&data), *rest_of_data);
    let pins = ["for-each-ref", "refs/jig"];
    assert_eq!(env.git(&world.trial.repo, &pins), "");
}

#[test]
fn many_runs_of_every_end_leave_nothing_behind() {
    let ways: Vec<Way> = (0..rounds()).flat_map(|_| WAYS).collect();
    let (builds, reviews): (Vec<_>, Vec<_>) = ways.iter().map(|way| steps(*way)).unzip();
    let script = Agent::Claude.plays(Script::new(), builds.into_iter().flatten());
    let script = Agent::Codex.plays(script, reviews.into_iter().flatten());
    let definition = MIXED
        .replace("@BUILDER@", &Agent::Claude.role_env())
        .replace("@REVIEWER@", &Agent::Codex.role_env());
    let agents = [Agent::Claude, Agent::Codex];
    let Some(mut world) = World::new(&agents, &definition, script) else {
        return;
    };
    let runtime_dir = world.trial.env.path("run");
    std::fs::create_dir(&runtime_dir).unwrap();
    let vars = &mut world.trial.env.vars;
    vars.insert("XDG_RUNTIME_DIR".into(), runtime_dir.clone().into());
    world.settle();

    let (mut trees, mut first_rest) = (0, None);
    for (number, way) in ways.iter().enumerate() {
        trees += usize::from(run(&world, *way));
        assert_eq!(world.trial.attempts().len(), number + 1, "{way:?}");
        world.trial.assert_nobody_left();
        assert_eq!(names(&runtime_dir), [""; 0], "{way:?}");
        if *way == Killed {
            // The next one puts it in order.
            continue;
        }
        world.assert_nothing_left();
        assert_small(&world, trees);
        let rest = rest(&world.trial.env.data());
        assert_eq!(
            rest,
            *first_rest.get_or_insert_with(|| rest.clone()),
            "{way:?}"
        );
    }
    assert_eq!(world.server.steps_left(), 0);
    world.assert_key_nowhere();
    let refs = ["for-each-ref", "refs/heads/jig"];
    let branches = world.trial.env.git(&world.trial.repo, &refs);
    let accepted = ways.iter().filter(|way| **way == Accepted);
    assert_eq!(branches.lines().count(), accepted.count());
    assert_gone_after_retention(&world, &first_rest.unwrap());
}
