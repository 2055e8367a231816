//! The test command, the commit command and the check of `two-phase`.

use std::fs;
use std::os::unix::fs::symlink;

use super::shell::{Place, command_of, printed};

const WITH_TESTS: &str = "#[cfg(test)]\nmod tests { #[test]\n fn t() {} }\n";

/// What is tried, the files of the tree, and what is run for them.
type Row = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

const RUNS: &[Row] = &[
    (
        "just",
        &[("justfile", "build:\n  x\ntest: build\n  y\n")],
        "called: just test",
    ),
    (
        "Justfile",
        &[("Justfile", "test *args:\n  y\n")],
        "called: just test",
    ),
    (
        "quiet recipe",
        &[(".justfile", "@test:\n  y\n")],
        "called: just test",
    ),
    (
        "alias",
        &[("justfile", "alias test := check\ncheck:\n  y\n")],
        "called: just test",
    ),
    (
        "make",
        &[("Makefile", "all:\n\ttrue\ntest: all\n\ttrue\n")],
        "called: make test",
    ),
    (
        "makefile",
        &[("makefile", "check test:\n\ttrue\n")],
        "called: make test",
    ),
    (
        "double colon",
        &[("GNUmakefile", "test::\n\ttrue\n")],
        "called: make test",
    ),
    (
        "cargo",
        &[("Cargo.toml", ""), ("src/lib.rs", WITH_TESTS)],
        "called: cargo test --workspace",
    ),
    (
        "tokio",
        &[("Cargo.toml", ""), ("tests/a.rs", "#[tokio::test]\n")],
        "called: cargo test --workspace",
    ),
    (
        "doc tests",
        &[("Cargo.toml", ""), ("src/lib.rs", "/// ```\n/// ```\n")],
        "called: cargo test --workspace",
    ),
    (
        "go",
        &[("go.mod", ""), ("a/b_test.go", "")],
        "called: go test ./...",
    ),
    (
        "npm",
        &[("package.json", "{\"scripts\": {\"test\": \"x\"}}")],
        "called: npm test",
    ),
    (
        "pytest.ini",
        &[("pytest.ini", "")],
        "called: python3 -m pytest -p no:cacheprovider",
    ),
    (
        "pyproject",
        &[("pyproject.toml", "")],
        "called: python3 -m pytest -p no:cacheprovider",
    ),
    (
        "bare python",
        &[("a/test_b.py", "")],
        "called: python3 -m pytest -p no:cacheprovider",
    ),
    // The first that exists is run.
    (
        "just and cargo",
        &[("justfile", "test:\n"), ("Cargo.toml", "")],
        "called: just test",
    ),
    (
        "cargo and python",
        &[
            ("Cargo.toml", ""),
            ("a.rs", WITH_TESTS),
            ("x/test_a.py", ""),
        ],
        "called: cargo test --workspace",
    ),
    // Without a recipe or target for tests, the next one.
    (
        "just without",
        &[
            ("justfile", "test := 'x'\nbuild:\n"),
            ("go.mod", ""),
            ("a_test.go", ""),
        ],
        "called: go test ./...",
    ),
    (
        "make without",
        &[("Makefile", "test = x\ntests:\n"), ("pytest.ini", "")],
        "called: python3 -m pytest -p no:cacheprovider",
    ),
    (
        "npm without",
        &[("package.json", "{}"), ("conftest.py", "")],
        "called: python3 -m pytest -p no:cacheprovider",
    ),
];

fn with_tools() -> Place {
    let place = Place::new();
    for tool in ["just", "make", "cargo", "go", "npm", "python3", "pytest"] {
        place.stub(tool, 0);
    }
    place
}

#[test]
fn the_test_command_finds_the_suite() {
    let command = command_of("factory", "test");
    for (name, files, expected) in RUNS {
        let place = with_tools();
        for (path, text) in *files {
            place.write(path, text);
        }
        let output = place.shell(&command, &[]);
        let printed = printed(&output);
        assert!(output.status.success(), "{name}: {printed}");
        assert_eq!(printed.lines().last(), Some(*expected), "{name}: {printed}");
    }
}

#[test]
fn a_script_of_the_repository_comes_first() {
    for script in ["script/test", "scripts/test", "test.sh"] {
        let place = with_tools();
        place.write("Cargo.toml", "");
        place.script(
            &place.tree().join(script),
            "#!/bin/sh\necho own suite\nexit 3\n",
        );
        let output = place.shell(&command_of("simple-sdlc", "test"), &[]);
        assert_eq!(
            output.status.code(),
            Some(3),
            "the suite's exit is the command's"
        );
        assert!(printed(&output).ends_with("own suite\n"));
    }
}

#[test]
fn a_red_suite_fails_the_command() {
    for (files, tool) in [
        (&[("justfile", "test:\n")][..], "just"),
        (&[("Makefile", "test:\n")], "make"),
        (&[("Cargo.toml", ""), ("a.rs", WITH_TESTS)], "cargo"),
        (&[("go.mod", ""), ("a_test.go", "")], "go"),
        (&[("package.json", "{\"test\": 1}")], "npm"),
    ] {
        let place = Place::new();
        place.stub(tool, 5);
        for (path, text) in files {
            place.write(path, text);
        }
        let output = place.shell(&command_of("plan-build-test", "test"), &[]);
        assert_eq!(output.status.code(), Some(5), "{tool}");
    }
}

#[test]
fn no_suite_is_a_failure_that_says_so() {
    for (files, says) in [
        (&[][..], "no test suite was found"),
        (&[("README.md", "test: me\n")], "no test suite was found"),
        (
            &[("package.json", "{\"scripts\": {}}")],
            "no test suite was found",
        ),
        (
            &[("Cargo.toml", ""), ("src/main.rs", "fn main() {}\n")],
            "no tests",
        ),
        (
            &[("Cargo.toml", ""), ("target/x.rs", WITH_TESTS)],
            "no tests",
        ),
        (
            &[("go.mod", ""), ("main.go", ""), ("vendor/a_test.go", "")],
            "no tests",
        ),
        (
            &[("Makefile", "test:\n\ttrue\n"), ("test/readme", "")],
            ".PHONY",
        ),
    ] {
        let place = with_tools();
        for (path, text) in files {
            place.write(path, text);
        }
        let output = place.shell(&command_of("factory", "test"), &[]);
        assert_eq!(output.status.code(), Some(1), "{files:?}");
        let printed = printed(&output);
        assert!(printed.contains(says), "{files:?}: {printed}");
        assert!(!printed.contains("called:"), "{files:?}: {printed}");
    }
}

#[test]
fn a_phony_test_target_may_stand_beside_a_directory() {
    let place = with_tools();
    place.write("Makefile", ".PHONY: all test\ntest:\n\ttrue\n");
    place.write("test/readme", "");
    let output = place.shell(&command_of("factory", "test"), &[]);
    assert!(output.status.success(), "{}", printed(&output));
}

#[test]
fn a_missing_tool_is_named() {
    for (files, tool) in [
        (&[("justfile", "test:\n")][..], "just"),
        (&[("Makefile", "test:\n")], "make"),
        (&[("Cargo.toml", "")], "cargo"),
        (&[("go.mod", "")], "go"),
        (&[("package.json", "{\"test\": 1}")], "npm"),
        (&[("pytest.ini", "")], "pytest"),
    ] {
        let place = Place::new();
        for (path, text) in files {
            place.write(path, text);
        }
        let output = place.shell(&command_of("factory", "test"), &[]);
        assert_eq!(output.status.code(), Some(127), "{tool}");
        assert!(printed(&output).contains(&format!("tested with {tool}, which is not installed")));
    }
}

#[test]
fn locked_npm_dependencies_are_installed_once() {
    let place = with_tools();
    place.write("package.json", "{\"scripts\": {\"test\": \"x\"}}");
    place.write("package-lock.json", "{}");
    let command = command_of("factory", "test");
    assert!(printed(&place.shell(&command, &[])).contains("called: npm ci\n"));
    place.write("node_modules/.keep", "");
    let again = printed(&place.shell(&command, &[]));
    assert!(!again.contains("npm ci") && again.contains("called: npm test"));
}

#[test]
fn retest_is_the_same_command() {
    for name in ["simple-sdlc", "factory", "factory-parallel"] {
        assert_eq!(
            command_of(name, "retest"),
            command_of(name, "test"),
            "{name}"
        );
    }
    assert_eq!(
        command_of("factory", "test"),
        command_of("plan-build-test", "test")
    );
}

#[test]
fn commits_take_the_message_from_the_handoff() {
    let command = command_of("factory", "commit-build");
    let place = Place::repository();
    place.write("a b/c.txt", "one\n");
    let note = place.handoff().join("commit-message");
    fs::write(
        &note,
        "Add c\n\n#42 needs it, $(touch /tmp/never) and `x`.\n",
    )
    .unwrap();
    let output = place.shell(&command, &[]);
    assert!(output.status.success(), "{}", printed(&output));
    let message = place.git(&["log", "-1", "--format=%an <%ae>|%cn|%B"]);
    assert_eq!(
        message,
        "jig <jig@localhost>|jig|Add c\n\n#42 needs it, $(touch /tmp/never) and `x`."
    );
    assert_eq!(place.git(&["status", "--porcelain"]), "");
    assert!(!note.exists(), "a message is used once");

    // Nothing changed: nothing is committed, and a waiting message waits on.
    fs::write(&note, "Later\n").unwrap();
    let head = place.git(&["rev-parse", "HEAD"]);
    let output = place.shell(&command, &[]);
    assert!(output.status.success());
    assert!(printed(&output).contains("nothing to commit"));
    assert_eq!(place.git(&["rev-parse", "HEAD"]), head);
    assert!(note.exists());
}

#[test]
fn commits_have_a_message_of_their_own_without_one() {
    for (phase, subject) in [
        ("commit-build", "Make the requested change"),
        ("commit-revision", "Address the review"),
    ] {
        let command = command_of("simple-sdlc", phase);
        for note in [None, Some(""), Some(" \n\t\n")] {
            let place = Place::repository();
            place.write("a", "one\n");
            if let Some(note) = note {
                fs::write(place.handoff().join("commit-message"), note).unwrap();
            }
            let output = place.shell(&command, &[]);
            assert!(output.status.success(), "{}", printed(&output));
            assert_eq!(
                place.git(&["log", "-1", "--format=%B"]),
                subject,
                "{note:?}"
            );
        }
    }
}

#[test]
fn a_message_is_no_link_and_may_hold_any_byte() {
    let command = command_of("factory", "commit-build");
    let place = Place::repository();
    let secret = place.handoff().join("elsewhere");
    fs::write(&secret, "secret\n").unwrap();
    symlink(&secret, place.handoff().join("commit-message")).unwrap();
    place.write("a", "one\n");
    assert!(place.shell(&command, &[]).status.success());
    assert_eq!(
        place.git(&["log", "-1", "--format=%s"]),
        "Make the requested change"
    );
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret\n");

    fs::write(place.handoff().join("commit-message"), b"Sub\0ject \xff\n").unwrap();
    place.write("a", "two\n");
    let output = place.shell(&command, &[]);
    assert!(output.status.success(), "{}", printed(&output));
    assert!(
        place
            .git(&["log", "-1", "--format=%s"])
            .starts_with("Subject ")
    );
}

#[test]
fn a_first_commit_and_hooks() {
    let place = Place::new();
    place.git(&["init", "--quiet"]);
    place.script(
        &place.tree().join(".git/hooks/pre-commit"),
        "#!/bin/sh\nexit 1\n",
    );
    place.script(
        &place.tree().join(".git/hooks/commit-msg"),
        "#!/bin/sh\nexit 1\n",
    );
    place.write("a", "one\n");
    let output = place.shell(&command_of("factory", "commit-build"), &[]);
    assert!(output.status.success(), "{}", printed(&output));
    assert_eq!(place.git(&["rev-list", "--count", "HEAD"]), "1");
}

#[test]
fn two_phase_checks_the_note() {
    let command = command_of("two-phase", "verify");
    let place = Place::new();
    place.link("wc", &super::shell::which("wc").unwrap());
    for (text, passes) in [
        (None, false),
        (Some(""), false),
        (Some(" \n"), false),
        (Some("x\n"), true),
    ] {
        if let Some(text) = text {
            place.write("jig-note.txt", text);
        }
        assert_eq!(
            place.shell(&command, &[]).status.success(),
            passes,
            "{text:?}"
        );
    }
    fs::rename(place.tree().join("jig-note.txt"), place.tree().join("real")).unwrap();
    symlink("real", place.tree().join("jig-note.txt")).unwrap();
    assert!(
        !place.shell(&command, &[]).status.success(),
        "a link is no note"
    );
}
