//! Running parts: all of them, whatever they find, and the truth at the end.

use xtask::check::part;
use xtask::run::run;

use crate::fixture::Fixture;

fn ran(fixture: &Fixture, names: &[&str]) -> (bool, String) {
    let parts: Vec<_> = names.iter().map(|name| part(name).unwrap()).collect();
    let mut out = Vec::new();
    let passed = run(&fixture.workspace(), &parts, &mut out).unwrap();
    (passed, String::from_utf8(out).unwrap())
}

#[test]
fn a_failure_does_not_keep_the_other_parts_from_running() {
    let fixture = Fixture::layered();
    fixture.package("stray", "");
    fixture.lock();
    fixture.write(
        "xtask/rules/size.toml",
        "limit = 1\nexceptions_at_most = 0\n",
    );
    let (passed, out) = ran(
        &fixture,
        &["boundary", "words", "size", "documents", "fetch"],
    );
    assert!(!passed);
    assert!(
        out.contains("== boundary: FAILED with 1 finding(s) in "),
        "{out}"
    );
    assert!(
        out.contains("== words: FAILED, could not look in "),
        "{out}"
    );
    assert!(out.contains("cannot read xtask/rules/words.toml"), "{out}");
    assert!(
        out.contains("[boundary/block] crates/stray/Cargo.toml: stray has no block"),
        "{out}"
    );
    assert!(
        out.contains("[size] crates/stray/src/lib.rs: 3 product lines"),
        "{out}"
    );
    assert!(out.contains("    do: "), "{out}");
    let last = "4 of 5 parts failed: boundary, words, size, documents\n";
    assert!(out.ends_with(last), "{out}");
    assert!(out.contains("== fetch: passed in "), "{out}");
}

#[test]
fn success_names_what_passed() {
    let (passed, out) = ran(&Fixture::layered(), &["boundary", "fetch"]);
    assert!(passed, "{out}");
    assert!(out.ends_with("all passed: boundary, fetch\n"), "{out}");
}
