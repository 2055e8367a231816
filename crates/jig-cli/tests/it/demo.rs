//! `jig demo`: the whole road without an agent and without a network.

use crate::env::{Env, processes_with};
use crate::support::{Untouched, branch, entries, trace};

/// What the demonstration is there to show, entry by entry.
const ENTRIES: [&str; 16] = [
    "plan:success",
    "build:success",
    "commit-build:success",
    "test:fail",
    "build:success",
    "commit-build:success",
    "test:success",
    "review-correctness:success",
    "review-security:success",
    "review-maintainability:success",
    "build:success",
    "review-maintainability:success",
    "commit-revision:success",
    "retest:success",
    "classify-risk:success",
    "review-risk:skipped",
];

#[test]
fn the_demo_is_accepted_after_two_repairs() {
    let env = Env::new();
    let home = env.path("home");
    let done = env.jig(&home, &["demo", "--json"]);
    let report = done.expect(0).json();
    assert_eq!(entries(&report), ENTRIES);
    assert_eq!(report["outcome"], "accepted");
    assert_eq!(report["state"], "accepted_unpublished");
    assert_eq!(report["publish"], "local_branch");
    let paths = ["README.md", "greet.sh", "tests/shouts.sh"];
    assert_eq!(report["changed_paths"], serde_json::json!(paths));

    let repo = env.data().join("demo/1");
    let branch = branch(&env, &repo, &report);
    let log = env.git(&repo, &["log", "--format=%s", &format!("main..{branch}")]);
    assert_eq!(
        log, "Document --shout\nShout the name too\nLet greet.sh shout\n",
        "three commits with the builder's own messages"
    );
    assert_eq!(env.git(&repo, &["status", "--porcelain"]), "");
    assert_eq!(env.git(&repo, &["branch", "--show-current"]), "main\n");

    assert_eq!(report["tree"], serde_json::Value::Null);
    let attempt = report["attempt_id"].as_str().unwrap();
    let tree = env.data().join("attempts").join(attempt).join("tree");
    assert!(!tree.exists(), "the work tree is removed");
    assert_eq!(trace(&report).last().unwrap()["type"], "attempt_end");
    assert_eq!(processes_with(env.path("").to_str().unwrap()), [""; 0]);
}

#[test]
fn the_demo_tells_a_person_what_happens_and_where_to_look() {
    let mut env = Env::new();
    let home = env.path("home");
    let data = env.data();
    let done = env.jig(&home, &["demo", "--data", data.to_str().unwrap()]);
    // What is offered names the data directory: nothing else does.
    env.vars.remove(std::ffi::OsStr::new("JIG_HOME"));
    done.expect(0);
    let progress = &done.stderr;
    // In this order.
    let mut rest = progress.as_str();
    for line in [
        "✓ plan",
        "✓ build",
        "✓ commit-build",
        "✗ test",
        "↻ test: repaired by build (1 of 3)",
        "✓ test (round 2)",
        "✓ review-correctness",
        "✓ review-security",
        "↻ review-maintainability: repaired by build (1 of 3)",
        "✓ review-maintainability (round 2)",
        "✓ retest",
        "✓ classify-risk",
        "– review-risk skipped (if: risk != low)",
        "Where to look:",
    ] {
        let at = rest.find(line);
        let at = at.unwrap_or_else(|| panic!("{line:?} is missing in:\n{progress}"));
        rest = &rest[at + line.len()..];
    }
    assert!(
        done.stdout.contains("accepted (branch jig/"),
        "{}",
        done.stdout
    );
    // Every command that is offered works as it stands.
    let offered: Vec<&str> = rest
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    assert!(offered.len() >= 5, "{offered:?}");
    for command in offered {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.split_first().unwrap() {
            (&"git", args) => assert!(env.git(&home, args).contains("Document --shout")),
            (program, args) if program.ends_with("/jig") => {
                assert!(!env.jig(&home, args).expect(0).stdout.is_empty())
            }
            (other, _) => panic!("{other}"),
        }
    }
}

#[test]
fn every_demo_has_a_repository_of_its_own() {
    let env = Env::new();
    let home = env.path("home");
    env.jig(&home, &["demo", "--json"]).expect(0);
    let first = env.data().join("demo/1");
    let before = Untouched::of(&first);
    let report = env
        .jig(&home, &["demo", "--json", "--keep"])
        .expect(0)
        .json();
    assert_eq!(Untouched::of(&first), before);
    branch(&env, &env.data().join("demo/2"), &report);
    let tree = report["tree"].as_str().unwrap();
    let read = std::fs::read_to_string(format!("{tree}/greet.sh")).unwrap();
    assert!(read.contains("shout=yes"), "--keep keeps the work tree");
}
