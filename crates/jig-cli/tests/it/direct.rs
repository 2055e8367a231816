//! `jig run` on the smallest road: what it prints, records, and leaves alone.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::env::{Env, processes_with};
use crate::support::{Untouched, example, run, run_stock, run_with, sample, text, trace};

fn smoke() -> (PathBuf, PathBuf) {
    (
        example("definitions/smoke.yaml"),
        example("scripts/smoke.yaml"),
    )
}

/// Every key of an object with the type of its value, sorted, recursively; of
/// a list, its first element.
fn shape(value: &Value, indent: usize, out: &mut String) {
    let kind = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_by_key(|(key, _)| key.as_str());
            for (key, value) in keys {
                out.push_str(&format!("{}{key}: {}\n", " ".repeat(indent), kind(value)));
                shape(value, indent + 2, out);
            }
        }
        Value::Array(items) => items.first().map_or((), |item| shape(item, indent, out)),
        _ => {}
    }
}

fn shape_of(value: &Value) -> String {
    let mut out = String::new();
    shape(value, 0, &mut out);
    out
}

#[test]
fn the_report_has_the_keys_that_programs_rely_on() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let report = run_stock(&env, "two-phase", &repo).expect(0).json();
    insta::assert_snapshot!(shape_of(&report), @r"
    acceptance: object
      checks: list
        item: string
        note: string
        ok: bool
      passed: bool
    attempt_id: string
    branch: string
    budgets: object
      deaths: number
      gate_corrections: number
      group_runs: number
      parse_corrections: number
      repairs: list
    changed_paths: list
    commit: string
    exit_code: number
    job_id: string
    outcome: string
    phases: list
      ended_at: string
      kind: string
      phase: string
      phase_attempt: number
      started_at: string
      status: string
    publish: string
    run_id: string
    sandbox: object
      not_covered: list
      tier: string
      verified: bool
    spend: object
      cost_usd: number
      input_tokens: number
      late_sends: number
      late_usd: number
      output_tokens: number
      sends: number
      unmetered_sends: number
    state: string
    trace_path: string
    ");
    let report = run_stock(&env, "smoke", &repo).expect(0).json();
    assert_eq!(report["changed_paths"], json!([]), "never null");
    let beyond = report["sandbox"]["not_covered"].as_array().unwrap();
    assert!(beyond.contains(&json!("signals")), "{beyond:?}");
    assert_eq!(report["phases"][0]["phase_attempt"], 1);
    for id in ["run_id", "job_id", "attempt_id"] {
        assert_eq!(report[id].as_str().unwrap().len(), 36, "{id}");
    }
}

#[test]
fn waiting_for_ci_is_said_to_be_of_no_effect() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let smoke = std::fs::read_to_string(example("definitions/smoke.yaml")).unwrap();
    for (wait, warns) in [(true, 1), (false, 0)] {
        let publish = format!("publish: {{hold_when: 'status == fail', ci: {{wait: {wait}}}}}");
        let definition = env.file("ci.yaml", &format!("{smoke}\n{publish}\n"));
        let done = run(&env, &definition, &example("scripts/smoke.yaml"), &repo);
        done.expect(0);
        let found = done
            .stderr
            .matches("publish.ci is of no effect here")
            .count();
        assert_eq!(found, warns, "{}", done.stderr);
    }
}

#[test]
fn smoke_leaves_the_repository_alone_and_a_readable_trace() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    // Somebody fetched once, and works on something.
    std::fs::write(repo.join(".git/FETCH_HEAD"), "fetched\n").unwrap();
    std::fs::write(repo.join("greet.sh"), "changed\n").unwrap();
    std::fs::write(repo.join("new file"), "new\n").unwrap();
    env.git(&repo, &["add", "new file"]);
    let before = Untouched::of(&repo);

    let report = run_stock(&env, "smoke", &repo).expect(0).json();
    assert_eq!(Untouched::of(&repo), before);
    assert_eq!(env.git(&repo, &["for-each-ref", "refs/heads/jig"]), "");
    assert_eq!(report["publish"], "nothing_to_publish");

    let events = trace(&report);
    for event in &events {
        let map = event.as_object().unwrap();
        let known = ["seq", "type", "phase", "name", "payload", "started_at"];
        assert!(
            map.keys().all(|key| known.contains(&key.as_str())),
            "{event}"
        );
        let started_at = event["started_at"].as_str().unwrap();
        assert!(
            started_at.ends_with('Z') && started_at.contains('T'),
            "{started_at}"
        );
    }
    let args = ["attempt", "events", "latest", "--json"];
    let stored: Vec<Value> = env
        .jig(&repo, &args)
        .expect(0)
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(stored, events, "the store and the trace tell the same");
    assert_eq!(processes_with(text(&env.path(""))), [""; 0]);
}

#[test]
fn people_get_prose_on_stdout_and_progress_on_stderr() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let (definition, script) = smoke();
    let done = run_with(&env, &definition, &script, &repo, &[]);
    done.expect(0);
    let data = env.data();
    let prose = done.stdout.replace(text(&data), "DATA");
    let prose: Vec<String> = prose.lines().map(without_ids).collect();
    insta::assert_snapshot!(prose.join("\n"), @r"
    run:     ID
    job:     ID
    attempt: ID
    trace:   DATA/attempts/ID/trace.jsonl
    accepted (nothing to publish)
    acceptance:
      ok   all_phases_passed: 1 passed
      ok   verdict_consistent: 3 checks in 1 instance held
    spend:   $0.0020, 1200 tokens in, 90 out, 1 send
    ");
    assert!(done.stderr.contains("✓ scout"), "{}", done.stderr);
    assert!(
        !done.stderr.contains('\u{1b}'),
        "no escapes without a terminal"
    );

    let quiet = run_with(&env, &definition, &script, &repo, &["--no-progress"]);
    assert_eq!(quiet.expect(0).stderr, "");
}

/// A line with every id replaced.
fn without_ids(line: &str) -> String {
    let is_id =
        |word: &str| word.len() == 36 && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    line.split('/')
        .map(|part| {
            let words = part.split(' ');
            let words: Vec<&str> = words.map(|w| if is_id(w) { "ID" } else { w }).collect();
            words.join(" ")
        })
        .collect::<Vec<_>>()
        .join("/")
}

#[test]
fn flags_may_stand_anywhere_and_prompts_come_from_everywhere() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let definition = env.file(
        "t.yaml",
        "name: t\nroster:\n  a:\n    model: m\n    writes: []\n    system_prompt: s\n    \
         user_prompt: '[{{prompt}}] [{{place}}]'\nphases:\n  - {name: p, kind: agent, owner: a}\n",
    );
    let script = env.file(
        "s.yaml",
        "roles:\n  a:\n    - {expect: ['[say hello', '] [at = home]'], \
         emit: {status: success, summary: s, artifacts: [], notes_for_next_agent: ''}}\n",
    );
    let prompt = env.file("prompt", "say hello\nto the world\n");
    let (definition, script, prompt) = (text(&definition), text(&script), text(&prompt));
    let common = ["--def", definition, "--param", "place=at = home"];
    let scripted = ["--runtime", "scripted", "--script", script];
    let run = |cwd: &Path, args: &[&[&str]]| env.jig(cwd, &args.concat());
    let elsewhere = env.path("home");
    run(&repo, &[&["run", "say hello"], &common, &scripted]).expect(0);
    run(
        &repo,
        &[&["--json", "run"], &scripted, &common, &["say hello"]],
    )
    .expect(0);
    run(
        &elsewhere,
        &[&["run"], &common, &[text(&repo)], &scripted, &["say hello"]],
    )
    .expect(0);
    run(
        &repo,
        &[&["run"], &common, &scripted, &["--prompt-file", prompt]],
    )
    .expect(0);
    let from_file = ["--prompt-file", prompt, text(&repo)];
    run(&elsewhere, &[&["run"], &common, &scripted, &from_file]).expect(0);
    let from_stdin = [&["run"], &common[..], &scripted, &["--prompt-file", "-"]].concat();
    env.jig_with_input(&repo, &from_stdin, "say hello")
        .expect(0);
    // The wrong words are noticed: the script expects the right ones.
    run(&repo, &[&["run", "something else"], &common, &scripted]).expect(1);
}
