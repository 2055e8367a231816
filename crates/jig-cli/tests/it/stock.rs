//! Every stock definition runs end to end with its script.

use serde_json::{Value, json};

use crate::env::{Env, processes_with};
use crate::support::{
    Untouched, branch, entries, example, example_names, of_type, run, run_stock, sample, text,
    trace,
};

/// How a stock definition's rehearsal ends.
enum Rehearsal {
    /// Accepted, after these entries and with these changes.
    Accepted {
        entries: &'static [&'static str],
        changed: &'static [&'static str],
    },
    /// Refused before anything starts, naming this.
    Refused(&'static str),
    /// Accepted; `jig demo` plays it and has tests of its own.
    Demo,
}

/// Every file of `examples/definitions`, by name.
const REHEARSALS: [(&str, Rehearsal); 7] = [
    ("factory", Rehearsal::Demo),
    ("factory-parallel", Rehearsal::Refused("parallel")),
    (
        "plan-build-test",
        Rehearsal::Accepted {
            entries: &[
                "plan:success",
                "build:success",
                "test:fail",
                "plan:success",
                "build:success",
                "test:success",
            ],
            changed: &["greet.sh", "tests/waves.sh"],
        },
    ),
    (
        "scout",
        Rehearsal::Accepted {
            entries: &["survey:success", "assess:success"],
            changed: &[],
        },
    ),
    (
        "simple-sdlc",
        Rehearsal::Accepted {
            entries: &[
                "plan:success",
                "build:success",
                "commit-build:success",
                "test:success",
                "review:success",
                "build:success",
                "review:success",
                "commit-revision:success",
                "retest:success",
            ],
            changed: &["greet.sh", "tests/greets-many.sh"],
        },
    ),
    (
        "smoke",
        Rehearsal::Accepted {
            entries: &["scout:success"],
            changed: &[],
        },
    ),
    (
        "two-phase",
        Rehearsal::Accepted {
            entries: &["build:success", "verify:success"],
            changed: &["jig-note.txt"],
        },
    ),
];

#[test]
fn every_stock_definition_has_a_rehearsal_and_every_script_a_definition() {
    let expected: Vec<&str> = REHEARSALS.iter().map(|(name, _)| *name).collect();
    assert_eq!(example_names("definitions"), expected);
    let scripted: Vec<&str> = REHEARSALS
        .iter()
        .filter(|(_, ends)| !matches!(ends, Rehearsal::Refused(_)))
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(example_names("scripts"), scripted);
}

#[test]
fn every_stock_definition_runs_end_to_end_with_its_script() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let before = Untouched::of(&repo);
    for (name, ends) in &REHEARSALS {
        match ends {
            Rehearsal::Accepted {
                entries: expected,
                changed,
            } => {
                let done = run_stock(&env, name, &repo);
                let report = done.expect(0).json();
                assert_eq!(entries(&report), *expected, "{name}");
                assert_eq!(report["changed_paths"], json!(changed), "{name}");
                assert_eq!(report["outcome"], "accepted", "{name}");
                assert!(
                    !done.stderr.contains("not played"),
                    "{name}: {}",
                    done.stderr
                );
                assert_eq!(trace(&report).last().unwrap()["type"], "attempt_end");
                if changed.is_empty() {
                    assert_eq!(report["publish"], "nothing_to_publish", "{name}");
                    assert_eq!(report["branch"], Value::Null, "{name}");
                } else {
                    let branch = branch(&env, &repo, &report);
                    let diff = ["diff", "--name-only", "main", &branch];
                    let names = env.git(&repo, &diff);
                    assert_eq!(names.lines().collect::<Vec<_>>(), *changed, "{name}");
                }
            }
            Rehearsal::Refused(what) => {
                let definition = example(&format!("definitions/{name}.yaml"));
                let args = ["run", "--def", text(&definition), text(&repo), "Do it"];
                let done = env.jig(&env.path("home"), &args);
                done.expect(2);
                assert!(done.stderr.contains(what), "{}", done.stderr);
                assert_eq!(done.stdout, "");
            }
            Rehearsal::Demo => {}
        }
        assert_eq!(Untouched::of(&repo), before, "{name}");
    }
    assert_eq!(processes_with(text(&env.path(""))), [""; 0]);
}

#[test]
fn two_phase_recovers_from_a_bad_answer_and_a_failed_gate_in_one_session() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let report = run_stock(&env, "two-phase", &repo).expect(0).json();
    assert_eq!(report["budgets"]["parse_corrections"], 1);
    assert_eq!(report["budgets"]["gate_corrections"], 1);
    assert_eq!(report["budgets"]["deaths"], 0);
    assert_eq!(report["spend"]["sends"], 3);
    let events = trace(&report);
    assert_eq!(of_type(&events, "log", Some("invalid_envelope")).len(), 1);
    let failed: Vec<&Value> = of_type(&events, "gate_fail", None);
    let names: Vec<&str> = failed.iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["artifacts_exist", "diff_matches_claims"]);
    assert_eq!(of_type(&events, "gate_pass", None).len(), 2);
    // One entry, and so one session: a fresh one is told by an `agent_start` of its own.
    let starts = of_type(&events, "agent_start", None);
    assert_eq!(starts.len(), 1);
    let session = starts[0]["payload"]["session"].as_str().unwrap();
    assert!(session.ends_with("-builder"), "{session}");
    let end = of_type(&events, "agent_end", None);
    assert_eq!(end.len(), 1);
    assert_eq!(end[0]["payload"]["sends"], 3);
    assert_eq!(end[0]["payload"]["outcome"], "passed");
}

#[test]
fn a_suite_that_stays_red_spends_the_edge_and_is_rejected() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let before = Untouched::of(&repo);
    // Plans and builds the same broken thing for ever.
    let script = env.file(
        "red.yaml",
        r#"
roles:
  planner:
    - &plan
      emit: {status: success, summary: plan, artifacts: [], notes_for_next_agent: again}
    - *plan
    - *plan
    - *plan
  builder:
    - write: {tests/red.sh: "echo red 1; exit 1\n"}
      emit: &built
        {status: success, summary: b, artifacts: [], changed_files: [tests/red.sh], notes_for_next_agent: ""}
    - {write: {tests/red.sh: "echo red 2; exit 1\n"}, emit: *built}
    - {write: {tests/red.sh: "echo red 3; exit 1\n"}, emit: *built}
    - {write: {tests/red.sh: "echo red 4; exit 1\n"}, emit: *built}
"#,
    );
    let definition = example("definitions/plan-build-test.yaml");
    let done = run(&env, &definition, &script, &repo);
    let report = done.expect(3).json();
    assert_eq!(report["outcome"], "rejected");
    assert_eq!(report["state"], "failed");
    assert_eq!(report["cause"], "repair_exhausted");
    let error = report["error"].as_str().unwrap();
    assert!(
        error.contains("test") && error.contains("plan") && error.contains('3'),
        "{error}"
    );
    assert_eq!(
        report["budgets"]["repairs"],
        json!([{"phase": "test", "used": 3, "budget": 3}])
    );
    let round = ["plan:success", "build:success", "test:fail"];
    assert_eq!(entries(&report), round.repeat(4));
    // Nothing is delivered, the work is kept for a person.
    assert_eq!(report["branch"], Value::Null);
    let tree = report["tree"].as_str().unwrap();
    let kept = std::fs::read_to_string(format!("{tree}/tests/red.sh")).unwrap();
    assert_eq!(kept, "echo red 4; exit 1\n");
    assert_eq!(Untouched::of(&repo), before);
    assert_eq!(env.git(&repo, &["for-each-ref", "refs/heads/jig"]), "");
}

#[test]
fn phases_guarded_by_revised_do_not_run_when_nothing_was_revised() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let script = env.file(
        "approved.yaml",
        r#"
roles:
  planner:
    - emit: {status: success, summary: plan, artifacts: [], notes_for_next_agent: ""}
  builder:
    - write: {note: "one\n"}
      emit:
        {status: success, summary: b, artifacts: [note], changed_files: [note], revised: false, notes_for_next_agent: ""}
  reviewer:
    - emit:
        {status: success, summary: ok, artifacts: [], approved: true, findings: [], blocking: [], notes_for_next_agent: ""}
"#,
    );
    let definition = example("definitions/simple-sdlc.yaml");
    let report = run(&env, &definition, &script, &repo).expect(0).json();
    assert_eq!(
        entries(&report),
        [
            "plan:success",
            "build:success",
            "commit-build:success",
            "test:success",
            "review:success",
            "commit-revision:skipped",
            "retest:skipped",
        ]
    );
    let branch = branch(&env, &repo, &report);
    let log = env.git(&repo, &["log", "--format=%s", &format!("main..{branch}")]);
    assert_eq!(
        log, "Make the requested change\n",
        "without a message of the builder's"
    );
}
