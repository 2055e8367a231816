//! `jig attempt …` and `jig worktree …`: what they say of an attempt, to people
//! and to programs.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::env::{Done, Env, wait_for};
use crate::support::example;
use crate::trial::{DONE, ONE_AGENT, Trial, text};

/// Two rounds of a builder and a test that stays red. In the first the builder
/// answers no JSON, then names a file that is not there.
const CORRECTED: &str = "
name: corrected
roster:
  builder:
    model: haiku
    writes: [\"src/**\"]
    system_prompt: You build.
    user_prompt: \"{{prompt}}\"
phases:
  - name: build
    kind: agent
    owner: builder
    gates: [{name: artifacts_exist, budget: 1}]
  - name: test
    kind: code
    command: \"echo first; echo second; exit 4\"
    on_fail: {run: build, then: rerun-self, budget: 1}
acceptance: [all_phases_passed]
";

const ANSWERS: &str = "
roles:
  builder:
    - {write: {src/a.txt: \"two\\n\"}, emit: no json}
    - emit: {status: success, summary: done, artifacts: [src/none]}
    - emit: {status: success, summary: done, artifacts: [src/a.txt]}
    - write: {src/new.txt: \"new\\n\"}
      emit: {status: success, summary: again, artifacts: [src/new.txt]}
      usage: {input_tokens: 10, output_tokens: 5, cost_usd: 0.25}
";

/// A rejected run, its report, and its attempt's id.
fn rejected() -> (Trial, Value, String) {
    let trial = Trial::new(CORRECTED, ANSWERS);
    let report = trial.run().expect(3).json();
    let id = report["attempt_id"].as_str().unwrap().to_owned();
    (trial, report, id)
}

/// An accepted run of one agent.
fn accepted() -> (Trial, Value) {
    let script = format!("roles: {{builder: [{{write: {{src/a.txt: \"two\\n\"}}, {DONE}}}]}}");
    let trial = Trial::new(ONE_AGENT, &script);
    let report = trial.run().expect(0).json();
    (trial, report)
}

fn jig(env: &Env, args: &[&str]) -> Done {
    env.jig(&env.path("home"), args)
}

/// The lines people get of a command that ends well.
#[track_caller]
fn lines(env: &Env, args: &[&str]) -> Vec<String> {
    let done = jig(env, args);
    done.expect(0).stdout.lines().map(str::to_owned).collect()
}

#[test]
fn show_says_how_a_rejected_attempt_ended_and_where_it_is() {
    let (trial, report, id) = rejected();
    let shown = lines(&trial.env, &["attempt", "show"]);
    let error = report["error"].as_str().unwrap();
    assert!(error.contains("first\nsecond"), "{error}");
    let base = trial.env.git(&trial.repo, &["rev-parse", "HEAD"]);
    let red = "the command of phase test failed: exit 4; it said: first second";
    for line in [
        format!("attempt     {id}"),
        format!("job         {}", report["job_id"].as_str().unwrap()),
        "state       failed".to_owned(),
        format!("error       {}", error.replace('\n', " ")),
        format!("repository  {}", trial.repo.display()),
        format!("base        {}", base.trim()),
        format!("trace       {}", report["trace_path"].as_str().unwrap()),
        format!("tree        {}", report["tree"].as_str().unwrap()),
        "spend       $0.2500, 10 tokens in, 5 out, 4 sends, 0 unmetered".to_owned(),
        "  ✓ build".to_owned(),
        format!("  ✗ test — {red}"),
        "  ✓ build (round 2)".to_owned(),
        format!("  ✗ test (round 2) — {red}"),
        "  src/a.txt".to_owned(),
        "  src/new.txt".to_owned(),
    ] {
        assert!(shown.contains(&line), "{line:?} is not in {shown:#?}");
    }
    assert!(!shown.iter().any(|line| line.starts_with("branch")));
    let object = trial.ask(&["attempt", "show", &id]).remove(0);
    assert_eq!(object["id"], id.as_str());
    assert_eq!(object["state"], "failed");
    for key in ["job_id", "trace_path", "tree", "error"] {
        assert_eq!(object[key], report[key], "{key}");
    }
    assert_eq!(object["repository"], text(&trial.repo));
    assert_eq!(object["result"]["cause"], "repair_exhausted");
    assert_eq!(object["result"]["budgets"]["gate_corrections"], 1);
    assert_eq!(object.get("branch"), None);
}

#[test]
fn show_names_the_branch_of_an_accepted_attempt_and_no_tree() {
    let (trial, report) = accepted();
    let branch = report["branch"].as_str().unwrap();
    let shown = lines(&trial.env, &["attempt", "show", "latest"]);
    assert!(
        shown.contains(&format!("branch      {branch}")),
        "{shown:#?}"
    );
    assert!(shown.contains(&"state       accepted_unpublished".to_owned()));
    assert!(
        shown.contains(&"  ok   all_phases_passed: 1 passed".to_owned()),
        "{shown:#?}"
    );
    assert!(!shown.iter().any(|line| line.starts_with("tree")));
    let object = trial.ask(&["attempt", "show"]).remove(0);
    assert_eq!(object["branch"], branch);
    assert_eq!(object.get("tree"), None);
    assert_eq!(object["result"]["publish"], "local_branch");
}

#[test]
fn show_says_what_an_attempt_is_doing_and_when_its_jig_has_died() {
    let script = format!("roles: {{builder: [{{run: 'touch @DIR@/ready; sleep 600', {DONE}}}]}}");
    let mut trial = Trial::new(ONE_AGENT, &script);
    let mut run = trial.start();
    trial.wait_for_file("ready");
    let now = |trial: &Trial| trial.ask(&["attempt", "show"])[0]["now"].clone();
    let doing = json!({"alive": true, "phase": "build", "phase_attempt": 1});
    assert_eq!(
        wait_for("the phase", || Some(now(&trial)).filter(|it| *it == doing)),
        doing
    );
    let shown = lines(&trial.env, &["attempt", "show"]);
    assert!(
        shown.contains(&"now         build".to_owned()),
        "{shown:#?}"
    );
    run.kill().unwrap();
    run.wait().unwrap();
    trial.assert_nobody_left();
    let dead = json!({"alive": false, "phase": "build", "phase_attempt": 1});
    assert_eq!(now(&trial), dead);
    let shown = lines(&trial.env, &["attempt", "show"]);
    assert!(
        shown
            .iter()
            .any(|line| line.starts_with("now         build; but its jig has died")),
        "{shown:#?}"
    );
    trial.assert_next_run_works();
    assert_eq!(trial.ask(&["attempt", "show"])[0].get("now"), None);
}

#[test]
fn events_are_the_trace_and_may_be_those_of_one_phase() {
    let (trial, report, id) = rejected();
    let all = trial.assert_whole_record(&id);
    let printed = lines(&trial.env, &["attempt", "events", &id]);
    assert_eq!(printed.len(), all.len());
    for (line, event) in printed.iter().zip(&all) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[0], event["seq"].to_string());
        assert_eq!(words[1], event["started_at"]);
        assert_eq!(words[2], event["type"]);
        assert_eq!(words[3], event["phase"].as_str().unwrap_or("-"));
    }
    let of_test = trial.ask(&["attempt", "events", "--phase", "test"]);
    let expected: Vec<&Value> = all.iter().filter(|it| it["phase"] == "test").collect();
    assert!(expected.len() >= 4, "{expected:#?}");
    assert_eq!(of_test.iter().collect::<Vec<_>>(), expected);
    let trace = std::fs::read_to_string(report["trace_path"].as_str().unwrap()).unwrap();
    assert_eq!(trace.lines().count(), all.len());
}

#[test]
fn gates_tell_rounds_and_corrections_apart() {
    let (trial, _, id) = rejected();
    assert_eq!(
        lines(&trial.env, &["attempt", "gates"]),
        [
            "build, artifacts_exist: failed",
            "  FAIL src/none: does not exist",
            "build, artifacts_exist: passed after 1 correction",
            "  ok   src/a.txt: exists (4B)",
            "build (round 2), artifacts_exist: passed",
            "  ok   src/new.txt: exists (4B)",
        ]
    );
    let rows = trial.ask(&["attempt", "gates", &id]);
    let short: Vec<Value> = (rows.iter())
        .map(|row| {
            json!([
                row["phase"],
                row["gate"],
                row["round"],
                row["passed"],
                row["item"],
                row["ok"]
            ])
        })
        .collect();
    assert_eq!(
        short,
        [
            json!(["build", "artifacts_exist", 1, false, "src/none", false]),
            json!(["build", "artifacts_exist", 2, true, "src/a.txt", true]),
            json!(["build", "artifacts_exist", 1, true, "src/new.txt", true]),
        ]
    );
}

#[test]
fn envelopes_show_answers_and_what_was_no_answer() {
    let (trial, _, id) = rejected();
    let shown = lines(&trial.env, &["attempt", "envelopes", &id]);
    let titles: Vec<&String> = shown.iter().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(
        titles,
        [
            "build, not understood (no JSON object was found):",
            "build:",
            "test:",
            "build (round 2):",
            "test (round 2):",
        ]
    );
    assert_eq!(shown[1], "  no json");
    assert!(
        shown[3].starts_with("  {\"artifacts\":[\"src/a.txt\"]"),
        "{shown:#?}"
    );
    let rows = trial.ask(&["attempt", "envelopes"]);
    let valid: Vec<&Value> = rows.iter().map(|row| &row["valid"]).collect();
    assert_eq!(valid, [false, true, true, true, true]);
    assert_eq!(rows[0]["body"], "no json");
    assert_eq!(rows[0]["parse_error"], "no JSON object was found");
    let body: Value = serde_json::from_str(rows[2]["body"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&body["exit_code"], &body["passed"]),
        (&json!(4), &json!(false))
    );
}

#[test]
fn diff_shows_all_of_it_or_what_one_phase_did() {
    let (trial, _, id) = rejected();
    let whole = jig(&trial.env, &["attempt", "diff"])
        .expect(0)
        .stdout
        .clone();
    for part in ["-one\n+two\n", "+++ b/src/new.txt\n@@ -0,0 +1 @@\n+new\n"] {
        assert!(whole.contains(part), "{whole}");
    }
    let last = jig(&trial.env, &["attempt", "diff", &id, "--phase", "build"]);
    let last = &last.expect(0).stdout;
    assert!(
        last.contains("src/new.txt") && !last.contains("src/a.txt"),
        "{last}"
    );
    let object = trial.ask(&["attempt", "diff", &id]).remove(0);
    assert_eq!(object["diff"], whole);
    let base = trial.env.git(&trial.repo, &["rev-parse", "HEAD"]);
    assert_eq!(object["from"], base.trim());
    assert_eq!(object["to"].as_str().unwrap().len(), base.trim().len());
    // A phase that failed, or is none, left nothing to compare with.
    for phase in ["test", "nowhere"] {
        let done = jig(&trial.env, &["attempt", "diff", "--phase", phase, "--json"]);
        assert_eq!(done.expect(2).stdout, "");
        let tree = trial.env.data().join("attempts").join(&id).join("tree");
        for said in [format!("phase {phase:?}"), tree.display().to_string()] {
            assert!(done.stderr.contains(&said), "{}", done.stderr);
        }
    }
}

#[test]
fn a_kept_tree_is_listed_shown_and_released_once_it_is_confirmed() {
    let (trial, report, id) = rejected();
    let tree = PathBuf::from(report["tree"].as_str().unwrap());
    let why = "its changes were not accepted";
    let listed = lines(&trial.env, &["worktree", "list"]);
    assert_eq!(listed, [format!("{id}  {}  {why}", tree.display())]);
    let shown = lines(&trial.env, &["worktree", "show", &id]);
    for line in [
        format!("attempt     {id}"),
        format!("repository  {}", trial.repo.display()),
        format!("path        {}", tree.display()),
        "state       retained".to_owned(),
    ] {
        assert!(shown.contains(&line), "{line:?} is not in {shown:#?}");
    }
    let object = trial.ask(&["worktree", "list"]).remove(0);
    assert_eq!(object["attempt_id"], id.as_str());
    assert_eq!(
        (&object["path"], &object["reason"]),
        (&json!(tree), &json!(why))
    );
    assert_eq!(trial.ask(&["worktree", "show"]), [object]);

    let asked = jig(&trial.env, &["worktree", "release", &id]);
    assert_eq!(asked.expect(2).stdout, "");
    for said in [tree.to_str().unwrap(), why, "--confirm"] {
        assert!(asked.stderr.contains(said), "{}", asked.stderr);
    }
    assert!(tree.join("src/new.txt").is_file(), "nothing was removed");
    assert_eq!(lines(&trial.env, &["worktree", "list"]), listed);

    let released = trial
        .ask(&["worktree", "release", &id, "--confirm"])
        .remove(0);
    assert_eq!(released["state"], "released");
    assert!(!tree.exists());
    assert!(trial.repo.join("src/a.txt").is_file());
    assert_eq!(trial.ask(&["worktree", "list"]), [Value::Null; 0]);
    let empty = jig(&trial.env, &["worktree", "list"]);
    assert_eq!(empty.expect(0).stdout, "");
    assert_eq!(empty.stderr, "no work tree is kept\n");
    assert_eq!(
        trial.ask(&["worktree", "show", &id])[0]["state"],
        "released"
    );
    let again = jig(&trial.env, &["worktree", "release", &id, "--confirm"]);
    assert_eq!(again.expect(2).stdout, "");
    assert!(
        again.stderr.contains("is released already"),
        "{}",
        again.stderr
    );
    // The evidence outlives the tree.
    assert!(
        jig(&trial.env, &["attempt", "diff", &id])
            .expect(0)
            .stdout
            .contains("+new")
    );
    assert_eq!(trial.ask(&["attempt", "show", &id])[0].get("tree"), None);
}

#[test]
fn a_tree_that_someone_removed_is_told_to_be_lost() {
    let (trial, report, id) = rejected();
    std::fs::remove_dir_all(report["tree"].as_str().unwrap()).unwrap();
    let done = jig(
        &trial.env,
        &["worktree", "release", &id, "--confirm", "--json"],
    );
    assert_eq!(done.expect(0).json()["state"], "lost");
    assert!(done.stderr.contains("was gone already"), "{}", done.stderr);
    assert_eq!(trial.ask(&["worktree", "list"]), [Value::Null; 0]);
}

/// The commands that look at an attempt, or would change its tree.
const LOOK: [&[&str]; 7] = [
    &["attempt", "show"],
    &["attempt", "events"],
    &["attempt", "diff"],
    &["attempt", "gates"],
    &["attempt", "envelopes"],
    &["worktree", "show"],
    &["worktree", "release", "--confirm"],
];

#[test]
fn an_attempt_is_named_by_its_id_the_start_of_it_or_latest_and_by_nothing_else() {
    let (mut trial, report) = accepted();
    let id = report["attempt_id"].as_str().unwrap();
    for name in [id, &id[..18], "latest"] {
        assert_eq!(trial.ask(&["attempt", "show", name])[0]["id"], id);
    }
    let mut newest = id.to_owned();
    let common = loop {
        trial.assert_next_run_works();
        let next = trial.ask(&["attempt", "show"])[0]["id"].clone();
        let next = next.as_str().unwrap().to_owned();
        assert_ne!(next, newest, "latest is the newest");
        let shared = std::iter::zip(newest.chars(), next.chars())
            .take_while(|(one, other)| one == other)
            .count();
        // The first eight digits are another every minute.
        if shared >= 8 {
            break next[..shared].to_owned();
        }
        newest = next;
    };
    for command in LOOK {
        for (name, says) in [
            ("0123456789ab", "no attempt is called \"0123456789ab\""),
            (
                "01234567-89ab-7cde-8f01-23456789abcd",
                "no attempt is called",
            ),
            ("../../etc", "no attempt is called"),
            ("'; DROP TABLE attempts; --", "no attempt is called"),
            ("%", "no attempt is called"),
            (&common, "more than one attempt starts with"),
        ] {
            let done = jig(&trial.env, &[command, &[name]].concat());
            assert_eq!(done.expect(2).stdout, "", "{command:?} {name}");
            for said in [says, "hint: "] {
                assert!(done.stderr.contains(said), "{command:?}: {}", done.stderr);
            }
        }
    }
    assert_eq!(trial.ask(&["attempt", "show", id])[0]["id"], id);
}

#[test]
fn a_data_directory_that_holds_no_runs_is_told_and_left_alone() {
    let env = Env::new();
    let file = env.file("a file", "kept");
    for data in [env.path("nowhere"), file.clone(), file.join("below")] {
        for command in LOOK {
            let done = jig(&env, &[command, &["--data", text(&data)]].concat());
            assert_eq!(done.expect(2).stdout, "", "{command:?}");
            for said in [&format!("{} holds no runs yet", data.display()), "--data"] {
                assert!(done.stderr.contains(said), "{command:?}: {}", done.stderr);
            }
        }
        for command in [&["worktree", "list"][..], &["gc"], &["gc", "--caches"]] {
            let args = [command, &["--json", "--data", text(&data)]].concat();
            assert_eq!(jig(&env, &args).expect(0).stdout, "", "{command:?}");
        }
    }
    assert!(!env.path("nowhere").exists());
    assert_eq!(std::fs::read_to_string(file).unwrap(), "kept");
}

#[test]
fn a_damaged_database_is_told_with_what_to_do_and_left_alone() {
    let env = Env::new();
    let garbage = "this is no database ".repeat(500);
    let database = env.file("data/jig.db", &garbage);
    let repo = env.repo("repo", &[]);
    let smoke = example("definitions/smoke.yaml");
    let script = example("scripts/smoke.yaml");
    let run = [
        "run",
        "--runtime",
        "scripted",
        "--def",
        text(&smoke),
        "--script",
        text(&script),
        text(&repo),
        "x",
    ];
    for command in (LOOK.into_iter()).chain([&["worktree", "list"][..], &["gc"], &run]) {
        let done = jig(&env, command);
        assert_eq!(done.expect(1).stdout, "", "{command:?}");
        let told = &done.stderr;
        assert!(
            told.contains("data/jig.db") && told.contains("is damaged"),
            "{told}"
        );
        assert_eq!(told.matches("file is not a database").count(), 1, "{told}");
        if !command.contains(&"run") {
            assert!(told.contains("hint: move jig.db"), "{told}");
        }
        assert_eq!(std::fs::read_to_string(&database).unwrap(), garbage);
    }
}

#[test]
fn nothing_that_an_agent_or_a_file_says_steers_a_terminal() {
    // Clears the screen, rings, goes back, turns the reading order around.
    const EVIL: &str = "\u{1b}[2J\u{7}\r\u{9b}1A\u{202e}evil\u{2066}";
    let definition = json!({
        "name": "evil",
        "description": EVIL,
        "roster": {"builder": {
            "model": "haiku", "writes": ["src/**"], "system_prompt": "s", "user_prompt": "u",
        }},
        "phases": [
            {"name": "build", "kind": "agent", "owner": "builder",
             "gates": [{"name": "artifacts_exist", "budget": 1}]},
            {"name": "test", "kind": "code", "command": format!("printf '%s' '{EVIL}'; exit 1"),
             "on_fail": {"run": "build", "then": "rerun-self", "budget": 1}},
            {"name": "never", "kind": "code", "command": "true", "if": "status == null"},
        ],
    });
    let named = format!("src/{EVIL}.txt");
    let bad = json!({"emit": EVIL, "text": EVIL, "tools": [{"name": EVIL, "input": {EVIL: EVIL}}]});
    let missing = json!({"emit": {"status": "success", "summary": EVIL, "artifacts": [EVIL]}});
    let good = json!({
        "write": {named.as_str(): format!("{EVIL}\n")},
        "emit": {"status": "success", "summary": EVIL, "artifacts": [named]},
    });
    let breach = json!({"write": {EVIL: "x"}, "emit": {"status": "success", "summary": EVIL}});
    for last in [&good, &breach] {
        let script = json!({"roles": {"builder": [bad, missing, good, last]}});
        // YAML takes no C1 character but as an escape.
        let yaml = |value: &Value| value.to_string().replace('\u{9b}', "\\u009b");
        let trial = Trial::new(&yaml(&definition), &yaml(&script));
        let files = [text(&trial.definition), text(&trial.script)];
        let run = [
            "run",
            "--def",
            files[0],
            "--runtime",
            "scripted",
            "--script",
            files[1],
            text(&trial.repo),
            "x",
        ];
        let mut said = Vec::new();
        let mut ask = |args: &[&str], code: i32| {
            let done = jig(&trial.env, args);
            assert_eq!(done.code, Some(code), "{args:?}: {}", done.stderr);
            said.push(format!("{args:?}\n{}{}", done.stdout, done.stderr));
        };
        ask(&run, 3);
        for what in ["show", "events", "gates", "envelopes", "diff"] {
            ask(&["attempt", what], 0);
        }
        ask(&["worktree", "list"], 0);
        ask(&["worktree", "show"], 0);
        ask(&["def", "explain", files[0]], 0);
        ask(&["attempt", "show", EVIL], 2);
        for text in said {
            assert!(text.contains("evil") || text.contains("worktree"), "{text}");
            let steers = |c: char| {
                (c.is_control() && c != '\n' && c != '\t') || "\u{202e}\u{2066}".contains(c)
            };
            assert_eq!(text.chars().find(|c| steers(*c)), None, "{text:?}");
        }
    }
}
