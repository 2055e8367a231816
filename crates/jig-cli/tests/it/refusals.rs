//! What is refused, with which code, and that nothing was touched.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::env::{Done, Env};
use crate::support::{Untouched, example, sample, text};

/// Puts programs that only write down how they were called before (or, when
/// `alone`, in the place of) everything on PATH; the log they write.
fn record_programs(env: &mut Env, alone: bool) -> PathBuf {
    let log = env.path("started.log");
    let content = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\nexit 1\n", log.display());
    for name in [
        "git", "sh", "claude", "codex", "node", "uname", "env", "bwrap",
    ] {
        let program = env.file(&format!("recorders/{name}"), &content);
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut path = env.path("recorders").into_os_string();
    if !alone {
        path.push(":");
        path.push(&env.vars[std::ffi::OsStr::new("PATH")]);
    }
    env.vars.insert("PATH".into(), path);
    log
}

/// Refused before anything was started, looked at, or made.
#[track_caller]
fn nothing_began(env: &Env, done: &Done, code: i32, says: &[&str]) {
    done.expect(code);
    assert_eq!(done.stdout, "");
    for what in says {
        assert!(
            done.stderr.contains(what),
            "{what:?} is not in:\n{}",
            done.stderr
        );
    }
    let log = std::fs::read_to_string(env.path("started.log")).unwrap_or_default();
    assert_eq!(log, "", "something was started");
    assert!(!env.data().exists(), "the data directory was made");
}

const INVALID: &str = r#"name: bad
rooster: {}
roster:
  a:
    model: m
    system_prompt: s
    user_prompt: u
    writes: ["../x"]
phases:
  - {name: one, kind: agent, owner: nobody}
  - {name: ONE, kind: code, comand: "true"}
"#;

/// The problems of [`INVALID`]: line, column, code.
const PROBLEMS: [(u64, u64, &str); 6] = [
    (2, 1, "E010"),
    (8, 14, "E022"),
    (10, 37, "E030"),
    (11, 5, "E012"),
    (11, 12, "E016"),
    (11, 29, "E010"),
];

#[test]
fn an_invalid_definition_is_refused_before_anything_is_looked_at_or_started() {
    let mut env = Env::new();
    let repo = sample(&env, "repo");
    let home = env.path("home");
    record_programs(&mut env, true);
    let bad = env.file("bad.yaml", INVALID);
    for repo in [text(&repo), "/no/such/repository"] {
        let done = env.jig(&home, &["run", "--def", text(&bad), repo, "Do it"]);
        nothing_began(
            &env,
            &done,
            2,
            &["did you mean `roster`?", "did you mean `command`?"],
        );
        // All of them, each with its place.
        let mut rest = done.stderr.as_str();
        for (line, column, code) in PROBLEMS {
            for what in [
                format!("[{code}]"),
                format!("{}:{line}:{column}", bad.display()),
            ] {
                let at = rest.find(&what);
                let at = at.unwrap_or_else(|| panic!("{what} is missing in {}", done.stderr));
                rest = &rest[at..];
            }
        }
    }
    // The recorders would have told: a valid one looks at the repository.
    let smoke = example("definitions/smoke.yaml");
    env.jig(&home, &["run", "--def", text(&smoke), text(&repo), "Do it"])
        .expect(2);
    let log = std::fs::read_to_string(env.path("started.log")).unwrap();
    assert!(log.contains("git"), "{log}");
}

#[test]
fn validating_answers_for_every_file() {
    let env = Env::new();
    let bad = env.file("bad.yaml", INVALID);
    let good = example("definitions/simple-sdlc.yaml");
    let args = [
        "def",
        "validate",
        text(&bad),
        text(&good),
        "missing.yaml",
        "--json",
    ];
    let answers = env.jig(&env.path("home"), &args).expect(2).json();
    assert_eq!(answers[0]["ok"], false);
    assert_eq!(answers[0]["path"], text(&bad));
    let problems = answers[0]["diagnostics"].as_array().unwrap();
    let places: Vec<(u64, u64, &str)> = problems
        .iter()
        .map(|problem| {
            let number = |key: &str| problem[key].as_u64().unwrap();
            assert_eq!(problem["severity"], "error");
            assert!(number("end_line") >= number("line") && problem["end_column"].is_u64());
            assert!(problem["message"].is_string() && problem["path"].is_string());
            (
                number("line"),
                number("column"),
                problem["code"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(places, PROBLEMS);
    assert_eq!(problems[0]["help"], "did you mean `roster`?");
    let ok = json!({
        "path": text(&good), "ok": true, "name": "simple-sdlc", "phases": 7, "roles": 3,
        "diagnostics": []
    });
    assert_eq!(answers[1], ok);
    assert_eq!(answers[2]["ok"], false);
    assert!(
        answers[2]["error"]
            .as_str()
            .unwrap()
            .contains("missing.yaml")
    );
    // A role without `writes` is a warning, and an error only to the strict.
    let lax = env.file(
        "lax.yaml",
        "name: lax\nroster: {a: {model: m, system_prompt: s, user_prompt: u}}\n\
         phases: [{name: p, kind: agent, owner: a}]\n",
    );
    let validate = |more: &[&str]| {
        let args = [&["def", "validate", text(&lax)], more].concat();
        env.jig(&env.path("home"), &args)
    };
    let done = validate(&[]);
    assert_eq!(
        done.expect(0).stdout,
        format!("ok {}: lax, 1 phase, 1 role\n", lax.display())
    );
    assert!(done.stderr.contains("W001"), "{}", done.stderr);
    validate(&["--strict"]).expect(2);
}

#[test]
fn explaining_shows_the_chain_its_loops_and_its_bounds() {
    let env = Env::new();
    let home = env.path("home");
    let file = example("definitions/simple-sdlc.yaml");
    let done = env.jig(&home, &["def", "explain", text(&file)]);
    let text_out = &done.expect(0).stdout;
    for line in [
        "simple-sdlc: 7 phases of 3 roles",
        "   7  retest           code, if revised",
        "  review: when approved == false, run build and then it again, at most twice; then the attempt fails",
        "  diff_matches_claims passed",
        "flowchart TD",
        "  p3 -. \"fails, at most twice\" .-> p1",
    ] {
        assert!(
            text_out.lines().any(|there| there == line),
            "{line:?} is not in\n{text_out}"
        );
    }
    assert!(
        !text_out.lines().any(|line| line.trim() == "end"),
        "no group, no end of one"
    );
    let parallel = example("definitions/factory-parallel.yaml");
    let answer = env
        .jig(&home, &["def", "explain", text(&parallel), "--json"])
        .expect(0)
        .json();
    assert_eq!(answer["name"], "factory-parallel");
    let chart = answer["mermaid"].as_str().unwrap();
    let lines = |what: &str| {
        chart
            .lines()
            .filter(|line| line.trim().starts_with(what))
            .count()
    };
    assert_eq!((lines("subgraph"), lines("end")), (1, 1), "{chart}");
    assert!(answer["worst_case_sends"].as_u64().unwrap() > 0, "{answer}");
    let schema = env.jig(&home, &["def", "schema"]);
    let schema: Value = serde_json::from_str(&schema.expect(0).stdout).unwrap();
    let committed = example("../docs/definition.schema.json");
    let committed = std::fs::read_to_string(committed).unwrap();
    assert_eq!(schema, serde_json::from_str::<Value>(&committed).unwrap());
}

#[test]
fn what_this_version_cannot_run_is_refused_by_name() {
    let mut env = Env::new();
    let repo = sample(&env, "repo");
    let before = Untouched::of(&repo);
    record_programs(&mut env, true);
    let role = |name: &str| {
        format!("  {name}: {{model: m, writes: [], system_prompt: s, user_prompt: u}}\n")
    };
    let roster = format!("name: t\nroster:\n{}{}", role("a"), role("b"));
    let intact = env.file(
        "intact.yaml",
        &format!("{roster}phases:\n  - {{name: p, kind: agent, owner: a, gates: [{{name: tests_intact}}]}}\n"),
    );
    let parallel = env.file(
        "parallel.yaml",
        &format!(
            "{roster}phases:\n  - {{name: p, kind: agent, owner: a}}\n  - {{name: q, kind: agent, owner: b}}\nparallel: [p, q]\n"
        ),
    );
    let writers = env.file(
        "writers.yaml",
        "name: t
roster:
  a: {model: m, writes: [src/**], system_prompt: s, user_prompt: u}
  b: {model: m, writes: [docs/**], system_prompt: s, user_prompt: u}
phases:
  - {name: p, kind: agent, owner: a, gates: [{name: diff_matches_claims}]}
  - {name: q, kind: agent, owner: b}
  - {name: c, kind: code, command: make test}
parallel_writers:
  members: [{phase: p, owns: [src/a.rs]}, {phase: q, owns: [docs/b.md]}]
",
    );
    for (definition, what) in [
        (intact, "tests_intact"),
        (parallel, "parallel"),
        (writers, "parallel_writers"),
        (example("definitions/factory-parallel.yaml"), "parallel"),
    ] {
        let validate = ["def", "validate", text(&definition)];
        env.jig(&repo, &validate).expect(0);
        let done = env.jig(&repo, &["run", "--def", text(&definition), "Do it"]);
        nothing_began(&env, &done, 2, &["nothing was started"]);
        let named = done
            .stderr
            .split(|c: char| !(c.is_alphanumeric() || c == '_'));
        assert!(
            named.into_iter().any(|word| word == what),
            "{}",
            done.stderr
        );
    }
    assert_eq!(Untouched::of(&repo), before);
}

#[test]
fn wrong_usage_is_told_before_anything_begins() {
    let mut env = Env::new();
    let repo = sample(&env, "repo");
    let before = Untouched::of(&repo);
    record_programs(&mut env, true);
    let smoke = example("definitions/smoke.yaml");
    let script = example("scripts/smoke.yaml");
    let script = text(&script);
    let empty = env.file("empty", " \n");
    let strange = env.file("strange.yaml", "roles:\n  stranger:\n    - emit: x\n");
    let unknown = env.file(
        "unknown.yaml",
        "roles:\n  scout:\n    - {emit: x, wirte: {a: b}}\n",
    );
    let sandboxed = env.file(
        "sandboxed.yaml",
        &format!(
            "{}sandbox: {{require: landlock}}\n",
            std::fs::read_to_string(&smoke).unwrap()
        ),
    );
    let (repo_text, home) = (text(&repo), env.path("home"));
    let sub = text(&home);
    let scripted = ["--runtime", "scripted", "--script", script];
    let with = |more: &[&'static str]| more.to_vec();
    #[rustfmt::skip]
    let rows: &[(Vec<&str>, i32, &[&str])] = &[
        (vec![], 2, &["PROMPT"]),
        (vec![sub], 2, &["is a directory", "hint: jig run --def"]),
        (vec![repo_text, ""], 2, &["the prompt is empty"]),
        (vec![repo_text, "a", "b"], 2, &["\"b\" is one word too many", "hint: quote the prompt"]),
        (vec!["say", "it", "in", "three", "lines"], 2, &["\"in\" is one word too many"]),
        (vec!["--prompt-file", text(&empty)], 2, &["empty"]),
        (vec!["--prompt-file", "no/such/file"], 2, &["no/such/file"]),
        (vec!["--prompt-file", text(&empty), repo_text, "x"], 2, &["--prompt-file"]),
        (vec!["--script", script, "x"], 2, &["--runtime scripted"]),
        (vec!["--runtime", "scripted", "x"], 2, &["--script"]),
        (vec!["--runtime", "scripted", "--script", "no/such/file", "x"], 2, &["no/such/file"]),
        (vec!["--runtime", "scripted", "--script", text(&strange), "x"], 2, &["stranger"]),
        (vec!["--runtime", "scripted", "--script", text(&unknown), "x"], 2, &["wirte", "write"]),
        (vec!["--runtime", "other", "x"], 1, &["other", "claude-code"]),
        (with(&["--param", "x", "x"]), 2, &["--param", "K=V"]),
        (with(&["--param", "a b=c", "x"]), 2, &["--param"]),
        (with(&["--param", "prompt=c", "x"]), 2, &["{{prompt}}"]),
        (with(&["--param", "a=1", "--param", "a=2", "x"]), 2, &["twice"]),
        (with(&["--allow-dirty", "x"]), 2, &["--in-place"]),
        (with(&["--require-sandbox", "x"]), 1, &["landlock", "nothing was started"]),
        (with(&["--require-sandbox=namespace", "x"]), 1, &["namespace"]),
        (with(&["--require-sandbox=best", "x"]), 2, &["landlock"]),
        (with(&["--require-sandbox", "--no-sandbox", "x"]), 2, &["--no-sandbox"]),
        (with(&["--log", "loud=loud=loud", "x"]), 2, &["--log"]),
        (with(&["--wrong", "x"]), 2, &["--wrong"]),
    ];
    let refused = |args: &[&str], code, says: &[&str]| {
        let done = env.jig(&repo, args);
        nothing_began(&env, &done, code, says);
    };
    for (more, code, says) in rows {
        refused(
            &[&["run", "--def", text(&smoke)], &more[..]].concat(),
            *code,
            says,
        );
    }
    for (definition, code, says) in [
        ("no/such/file.yaml", 2, "no/such/file.yaml"),
        (sub, 2, "is a directory"),
        (text(&sandboxed), 1, "landlock"),
    ] {
        refused(
            &[&["run", "--def", definition, "x"], &scripted[..]].concat(),
            code,
            &[says],
        );
    }
    refused(&["run", "x"], 2, &["--def"]);
    refused(&["run", text(&smoke), repo_text, "x"], 2, &["--def"]);
    refused(&["unheard-of"], 2, &["unheard-of"]);
    refused(&["attempt", "show"], 2, &["holds no runs yet", "hint:"]);
    refused(&["attempt", "explode"], 2, &["explode"]);
    assert_eq!(Untouched::of(&repo), before);
}

#[test]
fn a_missing_agent_cli_is_told_and_nothing_is_made() {
    let mut env = Env::new();
    let repo = sample(&env, "repo");
    let before = Untouched::of(&repo);
    // A PATH with git and nothing else that jig may ask for.
    let git = which("git");
    std::fs::create_dir(env.path("bin")).unwrap();
    std::os::unix::fs::symlink(&git, env.path("bin/git")).unwrap();
    env.vars.insert("PATH".into(), env.path("bin").into());
    let smoke = example("definitions/smoke.yaml");
    let done = env.jig(&repo, &["run", "--def", text(&smoke), "x"]);
    nothing_began(&env, &done, 1, &["claude", "not found", "jig doctor"]);
    assert_eq!(Untouched::of(&repo), before);
}

fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path)
        .map(|dir: PathBuf| dir.join(program))
        .find(|file: &PathBuf| file.is_file())
        .unwrap()
}

#[test]
fn an_old_git_is_refused() {
    let mut env = Env::new();
    let repo = sample(&env, "repo");
    let before = Untouched::of(&repo);
    let stub = env.file("old/git", "#!/bin/sh\necho 'git version 2.30.2'\n");
    std::fs::set_permissions(&stub, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut path = env.path("old").into_os_string();
    path.push(":");
    path.push(&env.vars[std::ffi::OsStr::new("PATH")]);
    env.vars.insert("PATH".into(), path);
    let smoke = example("definitions/smoke.yaml");
    let script = example("scripts/smoke.yaml");
    let args = [
        "run",
        "--def",
        text(&smoke),
        "--runtime",
        "scripted",
        "--script",
        text(&script),
        "x",
    ];
    let done = env.jig(&repo, &args);
    nothing_began(&env, &done, 2, &["2.30", "2.41", "jig doctor"]);
    let done = env.jig(&repo, &["demo"]);
    nothing_began(&env, &done, 2, &["2.30", "2.41", "jig doctor"]);
    let done = env.jig(Path::new("/"), &["doctor"]);
    assert!(
        done.expect(1).stdout.contains("FAIL git"),
        "{}",
        done.stdout
    );
    assert_eq!(Untouched::of(&repo), before);
}

/// It would be kept with the run, and handed to every later reader of it.
#[test]
fn a_prompt_or_parameter_that_holds_a_secret_is_refused() {
    let mut env = Env::new();
    let repo = sample(&env, "repo");
    let home = env.path("home");
    env.vars.insert("TOKEN".into(), "s3cr3t-of-mine".into());
    record_programs(&mut env, false);
    let definition = env.file(
        "secret.yaml",
        "name: secret\nroster:\n  a: {model: m, system_prompt: s, user_prompt: \"{{prompt}} {{where}}\", \
         writes: [], env: [TOKEN], sensitive_env: [TOKEN]}\nphases:\n  \
         - {name: one, kind: agent, owner: a}\n",
    );
    let script = env.file("script.yaml", "roles: {a: [{emit: x}]}\n");
    let encoded = "use czNjcjN0LW9mLW1pbmU= for it";
    let cases: [(&[&str], &str); 3] = [
        (&["log in with s3cr3t-of-mine"], "the prompt"),
        (&[encoded], "the prompt"),
        (&["go on", "--param", "where=s3cr3t-of-mine/x"], "\"where\""),
    ];
    for (words, names) in cases {
        let flags = ["run", "--def", text(&definition), "--runtime", "scripted"];
        let rest = ["--script", text(&script), text(&repo)];
        let done = env.jig(&home, &[&flags[..], &rest, words].concat());
        nothing_began(&env, &done, 2, &[names, "sensitive_env", "environment"]);
        assert!(!done.stderr.contains("s3cr3t"), "{}", done.stderr);
    }
    let told = std::fs::read_to_string(&definition).unwrap();
    let told = told.replace(
        "system_prompt: s",
        "system_prompt: \"it is s3cr3t-of-mine\"",
    );
    let telling = env.file("telling.yaml", &told);
    let args = ["run", "--def", text(&telling), "--runtime", "scripted"];
    let rest = ["--script", text(&script), text(&repo), "go on"];
    let done = env.jig(&home, &[&args[..], &rest].concat());
    nothing_began(&env, &done, 2, &["the definition", "sensitive_env"]);
}
