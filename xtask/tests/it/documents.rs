//! Documents that say too little, too much, or lead nowhere.

use xtask::documents;
use xtask::finding::Finding;

use crate::fixture::{Fixture, none, only};

const LIST: &str = "docs/dependencies.md";

fn clean() -> Fixture {
    let fixture = Fixture::empty();
    fixture.edit(
        "Cargo.toml",
        "[workspace.dependencies]\n",
        "[workspace.dependencies]\na = { path = \"crates/a\" }\nx = \"1\"\ny = { package = \"why\", version = \"1\" }\n",
    );
    fixture.package(
        "a",
        "[dependencies]\nx.workspace = true\n[dev-dependencies]\ny.workspace = true\n",
    );
    fixture.write(LIST, "# D\n\n| Crate | Why | Licence |\n|---|---|---|\n| `x` | For x. | MIT |\n| `y` | For y. | MIT |\n");
    fixture
}

fn check(fixture: &Fixture) -> Vec<Finding> {
    documents::check(&fixture.workspace()).unwrap()
}

#[test]
fn clean_documents_pass() {
    let fixture = clean();
    fixture.write("README.md", "[d](docs/dependencies.md#x) [w](https://example.org/home/) `~/home/x` `$HOME/root/x`\n```\n[x](nowhere)\n```\n");
    none(&check(&fixture));
}

#[test]
fn a_dependency_without_row_and_a_row_without_dependency_are_named() {
    let fixture = clean();
    fixture.edit(LIST, "| `x` | For x. | MIT |\n", "");
    assert!(
        only(&check(&fixture), "documents/dependencies", LIST)
            .problem
            .contains("`x` has no row")
    );

    let fixture = clean();
    fixture.write(
        LIST,
        &format!("{}| `z` | Gone. | MIT |\n", fixture.read(LIST)),
    );
    let findings = check(&fixture);
    assert_eq!(
        only(&findings, "documents/dependencies", LIST).place,
        format!("{LIST}:7")
    );
}

#[test]
fn a_row_says_why_and_under_which_licence() {
    for row in ["| `x` |  | MIT |", "| `x` | For x. | |", "| `x` | For x. |"] {
        let fixture = clean();
        fixture.edit(LIST, "| `x` | For x. | MIT |", row);
        assert!(
            only(&check(&fixture), "documents/dependencies", LIST)
                .problem
                .contains("empty cell"),
            "{row}"
        );
    }
}

#[test]
fn a_dependency_that_no_crate_uses_is_named() {
    let fixture = clean();
    fixture.edit("crates/a/Cargo.toml", "y.workspace = true\n", "");
    let findings = check(&fixture);
    assert!(
        only(&findings, "documents/dependencies", "Cargo.toml")
            .problem
            .contains("`y`")
    );
}

#[test]
fn paths_of_one_machine_are_named() {
    for path in [
        "/home/me/jig",
        "(/Users/me/x)",
        "`/root/.cargo`",
        "see /work/x",
        "C:\\jig",
    ] {
        let fixture = clean();
        fixture.write("docs/x.md", &format!("# X\n{path}\n"));
        assert_eq!(
            only(&check(&fixture), "documents/path", "docs/x.md").place,
            "docs/x.md:2",
            "{path}"
        );
    }
}

#[test]
fn links_that_lead_nowhere_are_named() {
    for link in [
        "[a](missing.md)",
        "![p](../docs/p.png)",
        "[a](../README.md#b \"t\")",
    ] {
        let fixture = clean();
        fixture.write("docs/x.md", &format!("# X\n\n{link}\n"));
        assert_eq!(
            only(&check(&fixture), "documents/link", "docs/x.md").place,
            "docs/x.md:3",
            "{link}"
        );
    }
}

#[test]
fn documents_that_are_not_there_are_errors() {
    let fixture = clean();
    std::fs::remove_file(fixture.path(LIST)).unwrap();
    assert!(documents::check(&fixture.workspace()).is_err());
    fixture.write(LIST, "# Nothing\n");
    assert!(documents::check(&fixture.workspace()).is_err());
}
