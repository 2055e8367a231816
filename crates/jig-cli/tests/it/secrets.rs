//! The value of a `sensitive_env` name that an agent prints in every form and
//! every place is nowhere in what jig keeps or says.
//!
//! What an agent writes into its tree is the work: where it writes a secret there,
//! the tree and the objects of the attempt's repository are left out of the search.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::{Value, json};

use crate::env::{Done, finish};
use crate::trial::Trial;

/// One that can be part of a path, and one that every encoding changes.
const PLAIN: &str = "hunter2-correct-horse";
const ODD: &str = "s3cr\"t/pä ss\\w+?~0123>>>???";

/// One like a private key: many lines, and longer than what is kept of an
/// unparsed line or of stderr, so that a cut falls into it.
fn long() -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = 7_u32;
    let mut digit = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(DIGITS[(state >> 26) as usize])
    };
    let mut lines = vec!["-----BEGIN PRIVATE KEY-----".to_owned()];
    lines.extend((0..30).map(|_| (0..64).map(|_| digit()).collect::<String>()));
    lines.push("-----END PRIVATE KEY-----".to_owned());
    lines.join("\n")
}

/// What an agent might make of a secret.
fn forms(secret: &str) -> Vec<String> {
    let percent = |upper: bool, all: bool| -> String {
        let one = |byte: u8| match (byte.is_ascii_alphanumeric() && !all, upper) {
            (true, _) => char::from(byte).to_string(),
            (false, true) => format!("%{byte:02X}"),
            (false, false) => format!("%{byte:02x}"),
        };
        secret.bytes().map(one).collect()
    };
    let quoted = serde_json::to_string(secret).unwrap();
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![
        secret.to_owned(),
        quoted[1..quoted.len() - 1].to_owned(),
        percent(true, false),
        percent(false, false),
        percent(true, true),
        percent(true, false).replace("%20", "+"),
        hex.to_uppercase(),
        hex,
    ];
    for before in ["", "x", "xy"] {
        let bytes = [before.as_bytes(), secret.as_bytes()].concat();
        forms.extend([STANDARD.encode(&bytes), URL_SAFE.encode(&bytes)]);
    }
    forms
}

/// What must not be found: each form as far as it depends on the secret alone.
fn needles() -> Vec<String> {
    let mut needles = Vec::new();
    for secret in [PLAIN, ODD] {
        for (index, form) in forms(secret).into_iter().enumerate() {
            // The ends of a base64 text hold bits of what stands beside it.
            let cut = if index < 8 { 0 } else { 4 };
            needles.push(form[cut..form.len() - cut].to_owned());
        }
        // Neither do the parts of a secret that came in pieces.
        needles.push(secret[8..].to_owned());
    }
    // Of the long one no line, and no stretch of any form: it may have been cut.
    let long = long();
    needles.extend(long.lines().map(str::to_owned));
    for form in forms(&long) {
        let starts = (60..form.len() - 60).step_by(180);
        needles.extend(starts.map(|at| form[at..at + 60].to_owned()));
    }
    needles
}

#[track_caller]
fn assert_clean(what: &str, bytes: &[u8], needles: &[String]) {
    let text = String::from_utf8_lossy(bytes);
    for needle in needles {
        assert!(!text.contains(needle), "{needle} in {what}: {text:.20000}");
    }
}

/// What is searched of a data directory.
#[derive(Clone, Copy, PartialEq)]
enum Search {
    /// All of it.
    Everything,
    /// All but the trees and repositories of attempts.
    AllButWork,
}

/// Searches names and content. Gives how many files were searched.
#[track_caller]
fn assert_clean_below(dir: &Path, needles: &[String], search: Search) -> usize {
    let mut searched = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        let is_attempts = dir
            .parent()
            .is_some_and(|parent| parent.ends_with("attempts"));
        let is_work = is_attempts && (name == "tree" || name == "git");
        if is_work && search == Search::AllButWork {
            continue;
        }
        assert_clean("the name of a file", name.as_bytes(), needles);
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            searched += assert_clean_below(&path, needles, search);
        } else if meta.is_file() {
            assert_clean(
                &path.display().to_string(),
                &std::fs::read(&path).unwrap(),
                needles,
            );
            searched += 1;
        }
    }
    searched
}

#[track_caller]
fn assert_nowhere(trial: &Trial, done: &Done, search: Search) {
    let needles = needles();
    assert_clean("stdout", done.stdout.as_bytes(), &needles);
    assert_clean("stderr", done.stderr.as_bytes(), &needles);
    let searched = assert_clean_below(&trial.env.data(), &needles, search);
    assert!(searched > 3, "hardly anything was searched: {searched}");
    for question in ["show", "events", "gates", "envelopes"] {
        let answer = trial.env.jig(&trial.repo, &["attempt", question]);
        assert_clean(question, answer.stdout.as_bytes(), &needles);
    }
}

fn definition(phases: &str) -> String {
    format!(
        "
name: leaky
roster:
  builder:
    model: haiku
    writes: [\"src/**\"]
    env: [PATH, PLAIN, ODD, LONG]
    sensitive_env: [PLAIN, ODD, LONG]
    system_prompt: You build.
    user_prompt: \"{{{{prompt}}}}\"
phases:
{phases}
acceptance: [all_phases_passed]
"
    )
}

/// Says every secret in the forms a shell can make.
const SHOUT: &str = "for s in \"$PLAIN\" \"$ODD\" \"$LONG\"; do echo \"$s\"; echo \"$s\" >&2; \
    for before in \"\" x xy; do printf %s \"$before$s\" | base64 -w 0; echo; \
    printf %s \"$before$s\" | base64 -w 0 | tr +/ -_; echo; done; \
    printf %s \"$s\" | od -An -v -tx1; printf %s \"$s\" | od -An -v -tx1 | tr -d \" \n\"; echo; done; env";

/// Says them on the agent's own two streams, between its lines; then, as the
/// output of a tool, those that the agent does not cut in two itself.
fn said_by_the_agent() -> String {
    let short = SHOUT.replace(" \"$LONG\"", "");
    format!("{{ {SHOUT}; }} >&2; {{ {SHOUT}; }} > /proc/$PPID/fd/1; {short}; echo \"$LONG\"")
}

fn trial(definition: &str, steps: Value) -> Trial {
    let script = json!({"roles": {"builder": steps}});
    let mut trial = Trial::new(definition, &script.to_string());
    trial.env.vars.insert("PLAIN".into(), PLAIN.into());
    trial.env.vars.insert("ODD".into(), ODD.into());
    trial.env.vars.insert("LONG".into(), long().into());
    trial
}

/// A step that says everything in every way, and ends as `rest` says.
fn leak(mut rest: Value) -> Value {
    let long = long();
    let secrets = [PLAIN, ODD, &long];
    let mut said: Vec<String> = secrets.into_iter().flat_map(forms).collect();
    let inputs = said.clone();
    // In pieces: as messages that arrive in parts.
    for (secret, size) in secrets.into_iter().zip([5, 5, 97]) {
        let pieces: Vec<char> = secret.chars().collect();
        said.extend(
            pieces
                .chunks(size)
                .map(|piece| piece.iter().collect::<String>()),
        );
    }
    let keyed: serde_json::Map<String, Value> =
        [(PLAIN.to_owned(), json!(ODD))].into_iter().collect();
    let notes = "mkdir -p ../handoff; printf '%s\\n' \"$PLAIN\" \"$ODD\" \"$LONG\" > \"../handoff/$PLAIN.md\"; \
                 printf '%s' \"$ODD\" | base64 -w 0 >> \"../handoff/$PLAIN.md\"";
    rest["run"] = json!(format!("{notes}; {}", said_by_the_agent()));
    rest["run_must_succeed"] = json!(true);
    rest["text"] = json!(said);
    rest["tools"] =
        json!([{"name": "Bash", "input": {"command": inputs, "more": keyed}}, {"name": PLAIN}]);
    rest
}

#[test]
fn what_a_rejected_run_printed_is_nowhere() {
    let phases = format!(
        "  - {{name: build, kind: agent, owner: builder, gates: [{{name: tests_pass, command: '{SHOUT}; test -e src/ok'}}]}}
  - {{name: dump, kind: code, owner: builder, reports_fields: true,
     command: '{SHOUT}; echo \"{{\\\"leak\\\": \\\"$PLAIN\\\"}}\"'}}
  - {{name: bad, kind: code, owner: builder, command: '{SHOUT}; exit 7'}}"
    );
    let path = format!("src/{PLAIN}.txt");
    let mut invalid = leak(json!({}));
    invalid["emit"] = json!(format!("{PLAIN} is no answer, neither is {ODD}"));
    let all = forms(ODD);
    let answer = json!({"status": "success", "summary": format!("{PLAIN} {ODD}"), "findings": all, PLAIN: ODD,
                        "changed_files": [path], "notes_for_next_agent": forms(PLAIN).join(" ")});
    let mut red = leak(json!({"emit": answer}));
    red["write"] = json!({path.as_str(): PLAIN});
    let mut green = leak(json!({"emit": answer}));
    green["write"] = json!({"src/ok": ODD});
    let trial = trial(&definition(&phases), json!([invalid, red, green]));
    let done = finish(trial.start_with(&["--log", "trace"]));
    let report = done.expect(3).json();
    assert_eq!(report["cause"], "command", "{report}");
    assert!(done.stdout.contains("[redacted:PLAIN]"), "{report}");
    let traced = std::fs::read_to_string(report["trace_path"].as_str().unwrap()).unwrap();
    for name in ["PLAIN", "ODD", "LONG"] {
        let marks = traced.matches(&format!("[redacted:{name}]")).count();
        assert!(marks > 20, "only {marks} marks of {name}");
    }
    assert_nowhere(&trial, &done, Search::AllButWork);
}

#[test]
fn neither_names_nor_errors_of_a_breach_spell_a_secret() {
    let mut step = leak(json!({"emit": {"status": "success", "summary": "done"}}));
    step["write"] =
        json!({format!("{PLAIN}/x"): "x", PLAIN.to_uppercase(): "x", format!("a {PLAIN} b"): "x"});
    let phases = "  - {name: build, kind: agent, owner: builder}";
    let trial = trial(&definition(phases), json!([step]));
    let done = finish(trial.start());
    let report = done.expect(3).json();
    assert_eq!(report["cause"], "breach", "{report}");
    assert!(
        report["error"]
            .as_str()
            .unwrap()
            .contains("[redacted:PLAIN]"),
        "{report}"
    );
    assert_nowhere(&trial, &done, Search::AllButWork);
}

#[test]
fn an_error_of_the_agent_itself_spells_no_secret() {
    for (end, code) in [
        (json!({"end": "error", "error_class": "auth"}), 1),
        (json!({"end": "error", "error_class": "other"}), 3),
        (json!({"end": {"exit": 3}}), 3),
        (json!({"end": "crash"}), 3),
    ] {
        let mut step = leak(end.clone());
        if end["end"] == "error" {
            step["emit"] = json!(format!(
                "cannot log in with {PLAIN}; {}",
                forms(ODD).join(" ")
            ));
        }
        let phases = "  - {name: build, kind: agent, owner: builder}";
        let steps: Vec<Value> = std::iter::repeat_n(step, 8).collect();
        let trial = trial(&definition(phases), json!(steps));
        let done = finish(trial.start());
        assert_eq!(done.code, Some(code), "{end}: {}", done.stdout);
        assert_nowhere(&trial, &done, Search::Everything);
    }
}

#[test]
fn an_accepted_run_delivers_the_work_and_no_secret_in_its_message() {
    let mut step = leak(json!({"emit": {"status": "success", "summary": PLAIN}}));
    step["write"] = json!({"src/a.txt": "two\n"});
    let run = step["run"].as_str().unwrap();
    step["run"] = json!(format!(
        "echo \"use $PLAIN and $ODD\" > ../handoff/commit-message; {run}"
    ));
    let phases = "  - {name: build, kind: agent, owner: builder}";
    let trial = trial(&definition(phases), json!([step]));
    let done = finish(trial.start());
    let report = done.expect(0).json();
    assert_nowhere(&trial, &done, Search::AllButWork);
    let branch = report["branch"].as_str().unwrap();
    let message = trial
        .env
        .git(&trial.repo, &["log", "-1", "--format=%B", branch]);
    assert!(
        message.contains("use [redacted:PLAIN] and [redacted:ODD]"),
        "{message}"
    );
    // The notes are kept, under a name that says nothing either.
    let kept = trial.attempts()[0].join("logs/handoff");
    let notes: Vec<_> = std::fs::read_dir(&kept)
        .unwrap()
        .map(|note| note.unwrap().path())
        .collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(
        notes
            .iter()
            .any(|note| note.to_string_lossy().contains("[redacted:PLAIN]")),
        "{notes:?}"
    );
}
