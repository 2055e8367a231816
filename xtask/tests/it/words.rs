//! Words in the wrong place.

use xtask::finding::Finding;
use xtask::words;

use crate::fixture::{Fixture, none, only};

const RULES: &str = r#"
[[word]]
words = ["Command::new", "process::Command"]
allowed = ["crates/process/"]
in_tests = true
reason = "why"
instead = "how"
"#;

fn check(fixture: &Fixture) -> Vec<Finding> {
    words::check(&fixture.workspace(), &fixture.sources()).unwrap()
}

/// A crate with the text in one file, under [`RULES`].
fn with(path: &str, text: &str) -> Fixture {
    let fixture = Fixture::empty();
    fixture.write("xtask/rules/words.toml", RULES);
    fixture.write(path, text);
    fixture
}

#[test]
fn a_word_in_code_is_named_with_its_line() {
    let fixture = with(
        "crates/a/src/lib.rs",
        "//! A.\n\nfn f() {\n    std::process::Command::new(\"x\");\n}\n",
    );
    let findings = check(&fixture);
    assert_eq!(findings.len(), 2, "both words stand there");
    assert!(findings.iter().all(|f| f.place == "crates/a/src/lib.rs:4"));
    assert!(findings[0].problem.contains("why") && findings[0].remedy == "how");
}

#[test]
fn a_line_that_holds_a_word_twice_is_named_once() {
    let fixture = with(
        "crates/a/src/lib.rs",
        "fn f() { Command::new(1); Command::new(2); }",
    );
    only(&check(&fixture), "words", "crates/a/src/lib.rs");
}

#[test]
fn a_word_hides_neither_in_imports_nor_in_macros_nor_in_space() {
    let hidden = [
        "use std::process::{Command, Stdio};",
        "use std::{fs, process::{self, Command as Runner}};",
        "use tokio::process::Command as C;",
        "fn f() { Command :: /* here */ new(\"x\"); }",
        "fn f() { vec![r#Command::new(1)]; }",
        "macro_rules! m { () => { Command::new(1) } }",
        "#[cfg(not(test))] fn f() { Command::new(1); }",
        "#[cfg(any(test, unix))] fn f() { Command::new(1); }",
        "#[cfg(test)] mod t {} fn f() { Command::new(1); }",
    ];
    for text in hidden {
        let findings = check(&with("crates/a/src/lib.rs", text));
        only(&findings, "words", "crates/a/src/lib.rs");
    }
}

#[test]
fn talk_is_not_use() {
    let talk = [
        "//! Never call Command::new here.",
        "/// See `Command::new`.\nfn f() {}",
        "/* Command::new */ fn f() { let x = \"Command::new\"; let y = r#\"Command::new\"#; }",
        "fn f() { Commander::new(); Command::newer(); MyCommand::new(); }",
    ];
    for text in talk {
        none(&check(&with("crates/a/src/lib.rs", text)));
    }
}

#[test]
fn test_code_is_where_the_compiler_thinks_it_is() {
    none(&check(&with(
        "crates/a/src/lib.rs",
        "#[cfg(test)] mod t { fn f() { Command::new(1); } }",
    )));
    none(&check(&with(
        "crates/a/src/lib.rs",
        "#[tokio::test] async fn f() { Command::new(1); }",
    )));
    none(&check(&with(
        "crates/a/src/lib.rs",
        "#![cfg(test)] fn f() { Command::new(1); }",
    )));
    for directory in ["tests/it", "benches", "examples"] {
        none(&check(&with(
            &format!("crates/a/{directory}/x.rs"),
            "fn f() { Command::new(1); }",
        )));
    }

    let in_a_file_of_its_own = with("crates/a/src/m.rs", "#[cfg(test)] mod tests;");
    in_a_file_of_its_own.write(
        "crates/a/src/m/tests.rs",
        "mod deep; fn f() { Command::new(1); }",
    );
    in_a_file_of_its_own.write(
        "crates/a/src/m/tests/deep.rs",
        "fn f() { Command::new(1); }",
    );
    none(&check(&in_a_file_of_its_own));

    let findings = check(&with(
        "crates/a/src/tests/x.rs",
        "fn f() { Command::new(1); }",
    ));
    only(&findings, "words", "crates/a/src/tests/x.rs");
}

#[test]
fn what_is_not_allowed_in_tests_is_found_in_tests() {
    let fixture = with("crates/a/tests/it/main.rs", "fn f() { Command::new(1); }");
    fixture.edit(
        "xtask/rules/words.toml",
        "in_tests = true",
        "in_tests = false",
    );
    only(&check(&fixture), "words", "crates/a/tests/it/main.rs");
}

#[test]
fn allowed_places_are_left_alone() {
    none(&check(&with(
        "crates/process/src/deep/x.rs",
        "fn f() { Command::new(1); }",
    )));
    let findings = check(&with(
        "crates/process-not/src/x.rs",
        "fn f() { Command::new(1); }",
    ));
    only(&findings, "words", "crates/process-not/src/x.rs");
}

#[test]
fn what_cannot_be_looked_at_is_an_error() {
    let empty = Fixture::empty();
    assert!(
        xtask::source::read_all(&empty.workspace()).is_err(),
        "no source at all"
    );

    let fixture = with("crates/a/src/lib.rs", "fn f() { \"never ends }");
    assert!(xtask::source::read_all(&fixture.workspace()).is_err());

    let fixture = with("crates/a/src/lib.rs", "fn f() {}");
    for rules in [
        "",
        "word = []",
        "[[word]]\nwords = [\"\"]\nreason = \"r\"\ninstead = \"i\"\n",
        "[[word]]\nwords = [\"x\"]\nreason = \"\"\ninstead = \"i\"\n",
    ] {
        fixture.write("xtask/rules/words.toml", rules);
        assert!(
            words::check(&fixture.workspace(), &fixture.sources()).is_err(),
            "{rules}"
        );
    }
}
