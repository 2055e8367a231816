//! Workflows that run what nobody reviewed, or may do too much.

use xtask::finding::Finding;
use xtask::workflows;

use crate::fixture::{Fixture, none, only};

const PATH: &str = ".github/workflows/ci.yml";
const CLEAN: &str = "name: ci\npermissions:\n  contents: read\njobs:\n  a:\n    steps:\n      \
    - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4\n      - uses: ./local\n";

fn check(fixture: &Fixture) -> Vec<Finding> {
    workflows::check(&fixture.workspace()).unwrap()
}

fn with(text: &str) -> Fixture {
    let fixture = Fixture::empty();
    fixture.write(PATH, text);
    fixture
}

#[test]
fn a_clean_workflow_passes() {
    none(&check(&with(CLEAN)));
}

#[test]
fn an_action_by_tag_branch_or_short_commit_is_named() {
    let commit = "11bd71901bbe5b1630ceea73d27597364c9af683";
    for reference in [
        "v4",
        "main",
        &commit[..39],
        "11bd71901bbe5b1630ceea73d27597364c9af68z",
    ] {
        let findings = check(&with(&CLEAN.replace(commit, reference)));
        assert_eq!(
            only(&findings, "tidy/workflows", PATH).place,
            format!("{PATH}:7")
        );
    }
    let findings = check(&with(&CLEAN.replace(&format!("@{commit}"), "")));
    only(&findings, "tidy/workflows", PATH);
}

#[test]
fn a_token_that_may_do_more_than_read_is_named() {
    let findings = check(&with(
        &CLEAN.replace("permissions:\n  contents: read\n", ""),
    ));
    only(&findings, "tidy/workflows", PATH);
    let more = CLEAN.replace("  a:\n", "  a:\n    permissions:\n      packages: write\n");
    only(&check(&with(&more)), "tidy/workflows", PATH);
}

#[test]
fn no_workflow_at_all_is_an_error() {
    let fixture = Fixture::empty();
    assert!(workflows::check(&fixture.workspace()).is_err());
    fixture.write(".github/workflows/README.md", "");
    assert!(workflows::check(&fixture.workspace()).is_err());
}
