//! What holds for any bytes, one function per target of `jig-testkit/fuzz`.
//!
//! The fuzzer and the tests below call the same function, so that whatever the
//! fuzzer found is a regression test once it lies in the corpus.

pub(crate) mod definition;
mod envelope;
mod predicate;
mod repo_path;

#[path = "../../../../jig-testkit/fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn definitions() {
    replay("definition", definition::check);
    for directory in [
        "tests/it/definitions",
        "../../examples/definitions",
        "../../examples/scripts",
    ] {
        replay::files(directory.as_ref(), definition::check);
    }
}

#[test]
fn envelopes() {
    replay("envelope", envelope::check);
}

#[test]
fn predicates() {
    replay("predicate", predicate::check);
}

#[test]
fn paths() {
    replay("repo_path", repo_path::check);
}

proptest::proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        definition::check(&bytes);
        envelope::check(&bytes);
        predicate::check(&bytes);
        repo_path::check(&bytes);
    }

    #[test]
    fn any_json_like_text(text in "[ {}\\[\\]\",:a1\\\\]{0,12}(\\{\"status\": ?\"(success|fail)\"[ ,{}\"a:1]{0,8}\\}?[ {}\"a:]{0,6}){0,3}") {
        envelope::check(text.as_bytes());
    }

    #[test]
    fn any_comparison(text in "[a_0-9 ]{0,3} ?[=!]{0,3} ?['\"]?[-a-z0-9.e ]{0,8}['\"]?") {
        predicate::check(text.as_bytes());
    }
}
