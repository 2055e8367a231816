//! Derived files out of step.

use xtask::finding::Finding;
use xtask::{architecture, generated};

use crate::fixture::{Fixture, none, only};

const MAP: &str = "docs/ARCHITECTURE.md";
const RULES: &str = "xtask/rules/generated.toml";

/// A crate whose test keeps `docs/derived.txt` the way the house does it.
fn owner() -> Fixture {
    let fixture = Fixture::empty();
    fixture.package("owner", "");
    let lib = format!(
        "{}{}",
        fixture.read("crates/owner/src/lib.rs"),
        r#"
#[test]
fn generated_text() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/derived.txt");
    if std::env::var_os("JIG_BLESS").is_some() { std::fs::write(path, "derived").unwrap(); }
    assert_eq!(std::fs::read_to_string(path).unwrap(), "derived");
}
"#
    );
    fixture.write("crates/owner/src/lib.rs", &lib);
    fixture.write(
        MAP,
        "# Map\n\n<!-- generated:crates -->\n<!-- /generated -->\n\nafter\n",
    );
    fixture.write("docs/derived.txt", "derived");
    fixture.write(
        RULES,
        "[[owner]]\npackage = \"owner\"\nfilter = \"generated_\"\nfiles = [\"docs/derived.txt\"]\n",
    );
    fixture.lock();
    architecture::check(&fixture.workspace(), true).unwrap();
    fixture
}

fn check(fixture: &Fixture) -> Vec<Finding> {
    generated::check(&fixture.workspace(), false).unwrap()
}

#[test]
fn a_derived_file_that_is_out_of_step_is_named_and_blessed_back() {
    let fixture = owner();
    none(&check(&fixture));

    fixture.write("docs/derived.txt", "stale");
    let findings = check(&fixture);
    assert!(
        only(&findings, "generated", "docs/derived.txt")
            .remedy
            .contains("JIG_BLESS=1")
    );
    assert_eq!(
        fixture.read("docs/derived.txt"),
        "stale",
        "a check writes nothing"
    );

    none(&generated::check(&fixture.workspace(), true).unwrap());
    assert_eq!(fixture.read("docs/derived.txt"), "derived");
}

#[test]
fn an_owner_without_a_test_and_a_file_without_an_owner_are_named() {
    let fixture = owner();
    fixture.edit(RULES, "generated_", "no_such_test");
    only(&check(&fixture), "generated", "docs/derived.txt");

    let fixture = owner();
    fixture.edit(RULES, "docs/derived.txt", "docs/never_written.txt");
    only(&check(&fixture), "generated", RULES);

    let fixture = owner();
    fixture.edit(RULES, "\"docs/derived.txt\"", "");
    assert!(generated::check(&fixture.workspace(), false).is_err());
}

#[test]
fn the_map_follows_the_manifests() {
    let fixture = Fixture::layered();
    fixture.write(
        MAP,
        "# Map\n\n<!-- generated:crates -->\n<!-- /generated -->\n\nafter\n",
    );
    let workspace = fixture.workspace();
    only(
        &architecture::check(&workspace, false).unwrap(),
        "generated/architecture",
        MAP,
    );
    none(&architecture::check(&workspace, true).unwrap());
    none(&architecture::check(&workspace, false).unwrap());

    let text = fixture.read(MAP);
    assert!(
        text.starts_with("# Map\n") && text.ends_with("\nafter\n"),
        "{text}"
    );
    assert!(
        text.contains("| `worker` | duty of worker | `engine`, `protocol` | — |"),
        "{text}"
    );
    assert!(
        text.contains("| `engine` | duty of engine | `protocol` | `kit` |"),
        "{text}"
    );
    assert!(
        text.contains("  worker --> engine\n") && !text.contains("engine --> kit"),
        "{text}"
    );

    fixture.edit("crates/kit/Cargo.toml", "duty of kit", "another duty");
    only(
        &architecture::check(&workspace, false).unwrap(),
        "generated/architecture",
        MAP,
    );
}

#[test]
fn a_map_without_marks_is_an_error() {
    let fixture = Fixture::layered();
    for text in [
        "",
        "<!-- generated:crates -->",
        "<!-- /generated -->",
        "<!-- generated:crates --><!-- /generated --><!-- generated:crates -->",
    ] {
        fixture.write(MAP, text);
        assert!(
            architecture::check(&fixture.workspace(), true).is_err(),
            "{text}"
        );
        assert_eq!(fixture.read(MAP), text);
    }
}
