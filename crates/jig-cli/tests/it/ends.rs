//! How a run ends: state, outcome, exit code and cause, row by row.

use serde_json::{Value, json};

use crate::env::{Done, Env, processes_with};
use crate::support::{Untouched, run, text};

/// What a row gives: a definition's part below the roster, and a script.
struct Row {
    name: &'static str,
    definition: String,
    script: String,
    ends: (&'static str, &'static str, i32, Option<&'static str>),
    /// What the error (or the reason of the hold) must name.
    names: &'static [&'static str],
}

const ACCEPTED: (&str, &str, i32) = ("accepted_unpublished", "accepted", 0);

const fn rejected(cause: &'static str) -> (&'static str, &'static str, i32, Option<&'static str>) {
    ("failed", "rejected", 3, Some(cause))
}

const fn no_verdict(
    cause: &'static str,
) -> (&'static str, &'static str, i32, Option<&'static str>) {
    ("failed", "none", 1, Some(cause))
}

const GOOD: &str = "- {write: {out: \"x\\n\"}, emit: {status: success, summary: s, artifacts: [out], notes_for_next_agent: ''}}\n";
const NO_FILE: &str =
    "- emit: {status: success, summary: s, artifacts: [out], notes_for_next_agent: ''}\n";
const ANSWERS: &str =
    "- emit: {status: success, summary: s, artifacts: [], notes_for_next_agent: ''}\n";
const NO_ANSWER: &str = "- emit: I will be with you shortly\n";

/// The definition of a row: one role, which may write `out`.
fn definition(rest: &str) -> String {
    format!(
        "name: t\nroster:\n  worker:\n    model: m\n    writes: [out]\n    \
         system_prompt: s\n    user_prompt: \"{{{{prompt}}}}\"\n{rest}"
    )
}

/// One agent phase with `more` of its own, and `rest` below it.
fn work(more: &str, rest: &str) -> String {
    definition(&format!(
        "phases:\n  - {{name: work, kind: agent, owner: worker{more}}}\n{rest}"
    ))
}

fn script(steps: &str) -> String {
    let indented: String = steps.lines().map(|line| format!("    {line}\n")).collect();
    format!("roles:\n  worker:\n{indented}")
}

fn fails_with(class: &str, more: &str) -> String {
    format!("- {{end: error, error_class: {class}, emit: the vendor said no{more}}}\n")
}

const ACCEPT: &str = "acceptance: [all_phases_passed]\n";

fn rows() -> Vec<Row> {
    let accepted = |cause| (ACCEPTED.0, ACCEPTED.1, ACCEPTED.2, cause);
    let artifacts = ", gates: [{name: artifacts_exist, budget: 1}]";
    let row = |name, definition: String, steps: &str, ends, names| Row {
        name,
        definition,
        script: script(steps),
        ends,
        names,
    };
    let risk = "  - name: risk\n    kind: code\n    writes: []\n    reports_fields: true\n    \
                command: |\n      echo '{\"risk\": \"high\"}'\n";
    let red = "  - {name: check, kind: code, writes: [], command: 'echo no good >&2; exit 7'";
    vec![
        row("accepted", work("", ACCEPT), GOOD, accepted(None), &[]),
        row(
            "held",
            work(
                "",
                &format!("{}{ACCEPT}publish: {{hold_when: risk != low}}\n", risk),
            ),
            GOOD,
            accepted(Some("held")),
            &["risk != low", "high"],
        ),
        row(
            "acceptance",
            work(
                "",
                "  - {name: late, kind: agent, owner: worker, if: never, gates: [{name: artifacts_exist}]}\n\
                 acceptance: [late.artifacts_exist]\n",
            ),
            GOOD,
            rejected("acceptance"),
            &["late.artifacts_exist"],
        ),
        row(
            "parse",
            work("", ACCEPT),
            &NO_ANSWER.repeat(4),
            rejected("parse"),
            &["work"],
        ),
        row(
            "gate",
            work(artifacts, ACCEPT),
            &NO_FILE.repeat(2),
            rejected("gate"),
            &["work", "artifacts_exist", "out"],
        ),
        row(
            "agent_fail",
            work("", ACCEPT),
            &ANSWERS
                .replace("success", "fail")
                .replace("summary: s", "summary: too hard for me"),
            rejected("agent_fail"),
            &["work", "too hard for me"],
        ),
        row(
            "repair_exhausted",
            work(
                "",
                &format!("{red}, on_fail: {{run: work, then: rerun-self, budget: 1}}}}\n{ACCEPT}"),
            ),
            &(GOOD.to_owned() + ANSWERS),
            rejected("repair_exhausted"),
            &["check", "work", "1"],
        ),
        row(
            "command",
            work("", &format!("{red}}}\n{ACCEPT}")),
            GOOD,
            rejected("command"),
            &["check", "exit 7", "no good"],
        ),
        row(
            "death",
            work("", ACCEPT),
            &"- {write: {out: half}, end: crash}\n".repeat(3),
            rejected("death"),
            &["work"],
        ),
        row(
            "breach",
            work("", ACCEPT),
            &GOOD.replace("{out:", "{stray:"),
            rejected("breach"),
            &["work", "stray"],
        ),
        row(
            "ceiling",
            work("", &format!("limits: {{attempt_ceiling: 1s}}\n{ACCEPT}")),
            "- {end: hang}\n",
            rejected("ceiling"),
            &["ceiling"],
        ),
        row(
            "send_budget",
            work(", gates: [{name: artifacts_exist, budget: 20}]", ACCEPT),
            &(NO_ANSWER.repeat(3) + NO_FILE).repeat(17),
            rejected("send_budget"),
            &["64"],
        ),
        row(
            "spend_ceiling",
            work(
                "",
                &format!(
                    "  - {{name: again, kind: agent, owner: worker}}\nbudget_usd: 0.5\n{ACCEPT}"
                ),
            ),
            &format!(
                "{}{ANSWERS}",
                ANSWERS
                    .trim_end()
                    .replace("- emit", "- usage: {cost_usd: 0.75}\n  emit")
                    + "\n"
            ),
            rejected("spend_ceiling"),
            &["0.5"],
        ),
        row(
            "auth",
            work("", ACCEPT),
            &fails_with("auth", ""),
            no_verdict("auth"),
            &["the vendor said no"],
        ),
        row(
            "spend_cap",
            work("", ACCEPT),
            &fails_with("spend_cap", ""),
            no_verdict("spend_cap"),
            &["the vendor said no"],
        ),
        row(
            "unsupported_option",
            work("", ACCEPT),
            &fails_with("unsupported_option", ""),
            no_verdict("unsupported_option"),
            &["the vendor said no"],
        ),
        row(
            "refused",
            work("", ACCEPT),
            &fails_with("refused", ""),
            rejected("refused"),
            &["the vendor said no"],
        ),
        row(
            "max_turns",
            work("", ACCEPT),
            &fails_with("max_turns", ""),
            rejected("max_turns"),
            &["the vendor said no"],
        ),
        row(
            "other",
            work("", ACCEPT),
            &fails_with("other", ""),
            rejected("other"),
            &["the vendor said no"],
        ),
        row(
            "rate_limited",
            work("", ACCEPT),
            &fails_with("rate_limited", ", retry_after: 1ms").repeat(6),
            rejected("rate_limited"),
            &["the vendor said no"],
        ),
        row(
            "script: used up",
            work(
                "",
                &format!("  - {{name: again, kind: agent, owner: worker}}\n{ACCEPT}"),
            ),
            GOOD,
            no_verdict("script"),
            &["worker"],
        ),
        row(
            "script: an expectation",
            work("", ACCEPT),
            "- {expect: [a word that is not there], emit: x}\n",
            no_verdict("script"),
            &["a word that is not there"],
        ),
    ]
}

#[track_caller]
fn check_end(
    done: &Done,
    (state, outcome, code, cause): (&str, &str, i32, Option<&str>),
    names: &[&str],
) -> Value {
    let report = done.expect(code).json();
    let shown = format!("{report:#}\n{}", done.stderr);
    assert_eq!(report["state"], state, "{shown}");
    assert_eq!(report["outcome"], outcome, "{shown}");
    assert_eq!(report["exit_code"], code, "{shown}");
    assert_eq!(report["cause"], json!(cause), "{shown}");
    let said = format!("{} {}", report["error"], report["publish_hold"]);
    for name in names {
        assert!(said.contains(name), "{name:?} is not in {said}");
    }
    report
}

#[test]
fn a_run_ends_as_the_table_says() {
    for row in rows() {
        let env = Env::new();
        let repo = env.repo("repo", &[("a", "a\n")]);
        let before = Untouched::of(&repo);
        let definition = env.file("t.yaml", &row.definition);
        let script = env.file("s.yaml", &row.script);
        let done = run(&env, &definition, &script, &repo);
        let report = check_end(&done, row.ends, row.names);
        // Whatever happened, nobody's files were touched, and only what was
        // accepted is delivered.
        assert_eq!(Untouched::of(&repo), before, "{}", row.name);
        let branches = env.git(&repo, &["for-each-ref", "refs/heads/jig"]);
        let accepted = row.ends.1 == "accepted";
        assert_eq!(!branches.is_empty(), accepted, "{}", row.name);
        let publish = match (accepted, row.ends.3) {
            (true, None) => "local_branch",
            (true, _) => "held",
            (false, _) => "not_attempted",
        };
        assert_eq!(report["publish"], publish, "{}", row.name);
        assert_eq!(report["error"].is_null(), accepted, "{}", row.name);
        assert_eq!(processes_with(text(&env.path(""))), [""; 0], "{}", row.name);
        // The record says the same as the report.
        let args = ["attempt", "show", "latest", "--json"];
        let shown = env.jig(&env.path("home"), &args).expect(0).json();
        assert_eq!(shown["state"], report["state"], "{}", row.name);
        assert_eq!(shown["id"], report["attempt_id"], "{}", row.name);
        assert_eq!(shown["result"]["cause"], report["cause"], "{}", row.name);
    }
}

#[test]
fn a_death_is_undone_and_tried_again_in_a_fresh_session() {
    let env = Env::new();
    let repo = env.repo("repo", &[("a", "a\n")]);
    let definition = env.file("t.yaml", &work("", ACCEPT));
    let steps = format!("- {{write: {{out: half, stray: half}}, end: crash}}\n{GOOD}");
    let script = env.file("s.yaml", &script(&steps));
    let report = run(&env, &definition, &script, &repo).expect(0).json();
    assert_eq!(report["budgets"]["deaths"], 1);
    assert_eq!(report["changed_paths"], json!(["out"]));
    let events = crate::support::trace(&report);
    let starts = crate::support::of_type(&events, "agent_start", None);
    assert_eq!(starts.len(), 2);
    assert_ne!(
        starts[0]["payload"]["session"],
        starts[1]["payload"]["session"]
    );
}

#[test]
fn a_repository_whose_objects_are_gone_gives_no_verdict_but_a_report() {
    let env = Env::new();
    let repo = env.repo("repo", &[("a", "a\n")]);
    let id = env.git(&repo, &["rev-parse", "HEAD:a"]);
    let (dir, file) = id.trim().split_at(2);
    std::fs::remove_file(repo.join(".git/objects").join(dir).join(file)).unwrap();
    let before = Untouched::of(&repo);
    let definition = env.file("t.yaml", &work("", ACCEPT));
    let script = env.file("s.yaml", &script(GOOD));
    let done = run(&env, &definition, &script, &repo);
    let report = check_end(&done, no_verdict("infrastructure"), &[]);
    assert!(!report["error"].as_str().unwrap().is_empty());
    assert_eq!(Untouched::of(&repo), before);
}

#[test]
fn guards_decide_by_what_commands_reported() {
    // field, literal or nothing, and whether the guarded phase runs.
    let guards = [
        ("yes", true),
        ("no", false),
        ("nothing", false),
        ("zero", false),
        ("one", true),
        ("empty", false),
        ("word", true),
        ("list", false),
        ("full", true),
        ("object", false),
        ("never_reported", false),
        ("yes == true", true),
        ("yes == 1", false),
        ("no == false", true),
        ("nothing == null", true),
        ("never_reported == null", true),
        ("never_reported != low", true),
        ("one == 1.0", true),
        ("one != 2", true),
        ("word == two", false),
        ("word == \"two words\"", true),
        ("word != \"two words\"", false),
    ];
    let mut phases = String::from(
        "phases:\n  - name: report\n    kind: code\n    writes: []\n    reports_fields: true\n    \
         command: |\n      echo 'noise before the report'\n      echo '{\"yes\": true, \"no\": false, \"nothing\": null, \
         \"zero\": 0, \"one\": 1, \"empty\": \"\", \"word\": \"two words\", \"list\": [], \
         \"full\": [0], \"object\": {}}'\n",
    );
    for (index, (guard, _)) in guards.iter().enumerate() {
        phases.push_str(&format!(
            "  - {{name: guarded-{index}, kind: code, writes: [], command: 'true', if: '{guard}'}}\n"
        ));
    }
    let env = Env::new();
    let repo = env.repo("repo", &[("a", "a\n")]);
    let definition = env.file("t.yaml", &format!("name: t\n{phases}{ACCEPT}"));
    let script = env.file("s.yaml", "roles: {}\n");
    let report = run(&env, &definition, &script, &repo).expect(0).json();
    let statuses = crate::support::entries(&report);
    for (index, (guard, runs)) in guards.iter().enumerate() {
        let status = if *runs { "success" } else { "skipped" };
        assert_eq!(
            statuses[index + 1],
            format!("guarded-{index}:{status}"),
            "{guard}"
        );
    }
}
