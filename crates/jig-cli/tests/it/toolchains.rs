//! The stock test phase on a Rust, a Node and a Python repository, with the
//! toolchains where the operator has them and a HOME that is not the
//! operator's.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::Command;

use crate::env::finish;
use crate::support::example;
use crate::trial::Trial;

const SCRIPT: &str = "
roles:
  planner:
    - emit: {status: success, summary: planned, artifacts: []}
  builder:
    - write: {FILE: 'CONTENT'}
      emit: {status: success, summary: done, artifacts: [FILE], changed_files: [FILE]}
";

fn has(program: &str, args: &[&str]) -> bool {
    let asked = Command::new(program).args(args).output();
    asked.is_ok_and(|output| output.status.success())
}

fn skip(what: &str, why: &str) {
    // A test that skips says so where the runner shows it.
    let _ = writeln!(std::io::stderr(), "skipped: {what}: {why}");
}

/// Runs the stock plan-build-test twice on a repository with these files, in
/// the operator's real environment. Its suite must say `says`, and what it
/// leaves behind is no part of the work.
fn green_twice(files: &[(&str, &str)], edit: (&str, &str), says: &str) {
    let (file, content) = edit;
    let mut trial = Trial::new(
        &std::fs::read_to_string(example("definitions/plan-build-test.yaml")).unwrap(),
        &SCRIPT
            .replace("FILE", file)
            .replace("CONTENT", &content.replace('\n', "\n\n")),
    );
    for (name, content) in files {
        trial.env.file(&format!("repo/{name}"), content);
    }
    trial.env.git(&trial.repo, &["add", "-A"]);
    trial.env.git(&trial.repo, &["commit", "-qm", "sample"]);
    let sealed: OsString = trial.env.data().into();
    let home = std::env::var_os("HOME").unwrap();
    let before = listing(&home);
    trial.env.vars = std::env::vars_os().collect();
    trial.env.vars.insert("JIG_HOME".into(), sealed);
    for _ in 0..2 {
        let report = finish(trial.start()).expect(0).json();
        assert_eq!(
            report["changed_paths"],
            serde_json::json!([file]),
            "{report}"
        );
        assert_eq!(report["state"], "accepted_unpublished");
        let attempt = trial.attempts().pop().unwrap();
        let logs = everything(&attempt.join("logs"));
        assert!(logs.contains(says), "{logs}");
        let branch = report["branch"].as_str().unwrap();
        let changed = trial
            .env
            .git(&trial.repo, &["diff", "--name-only", "main", branch]);
        assert_eq!(changed.trim(), file);
    }
    assert_eq!(
        listing(&home),
        before,
        "something appeared in the operator's home"
    );
}

/// The names in the operator's home.
fn listing(home: &std::ffi::OsStr) -> Vec<OsString> {
    let mut names: Vec<_> = std::fs::read_dir(home)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    names.sort();
    names
}

/// Every file of a directory, one after the other.
fn everything(dir: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&everything(&path));
        } else {
            text.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
        }
    }
    text
}

#[test]
fn cargo_runs_the_stock_suite_and_target_is_no_part_of_the_work() {
    if !has("cargo", &["--version"]) {
        return skip("cargo test", "there is no cargo on PATH");
    }
    let manifest =
        "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    green_twice(
        &[
            ("Cargo.toml", manifest),
            (".gitignore", "target/\nCargo.lock\n"),
            (
                "src/lib.rs",
                "pub fn two() -> u32 {\n    1\n}\n#[test]\nfn it_is_two() {\n    assert_eq!(two(), 2);\n}\n",
            ),
        ],
        (
            "src/lib.rs",
            "pub fn two() -> u32 {\n    2\n}\n#[test]\nfn it_is_two() {\n    assert_eq!(two(), 2);\n}\n",
        ),
        "test it_is_two ... ok",
    );
}

#[test]
fn npm_runs_the_stock_suite() {
    if !has("npm", &["--version"]) {
        return skip("npm test", "there is no npm on PATH");
    }
    let manifest = "{\"name\":\"sample\",\"version\":\"1.0.0\",\"private\":true,\"scripts\":{\"test\":\"node test.js\"}}\n";
    green_twice(
        &[
            ("package.json", manifest),
            ("two.js", "module.exports = 1;\n"),
            (
                "test.js",
                "if (require(\"./two\") !== 2) process.exit(1);\nconsole.log(\"it is two\");\n",
            ),
        ],
        ("two.js", "module.exports = 2;\n"),
        "it is two",
    );
}

#[test]
fn pytest_runs_the_stock_suite() {
    if !has("python3", &["-c", "import pytest"]) {
        return skip("pytest", "python3 has no pytest");
    }
    green_twice(
        &[
            ("two.py", "TWO = 1\n"),
            (
                "test_two.py",
                "from two import TWO\n\n\ndef test_two():\n    assert TWO == 2\n",
            ),
        ],
        ("two.py", "TWO = 2\n"),
        "1 passed",
    );
}
