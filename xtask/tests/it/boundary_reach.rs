//! What only the resolved tree gives away.

use xtask::boundary::Tree;

use crate::fixture::{Fixture, named, none, only};

/// Lets the engine use a third-party package that is harmless by its name.
fn engine_uses(fixture: &Fixture, line: &str) {
    fixture.edit(
        "crates/engine/Cargo.toml",
        "[dev-dependencies]",
        &format!("{line}\n[dev-dependencies]"),
    );
}

#[test]
fn a_forbidden_package_deep_below_is_named_with_the_way() {
    let fixture = Fixture::layered();
    fixture.vendored("deep", "[dependencies]\nsqlx = \"1\"\n");
    fixture.vendored("harmless", "[dependencies]\ndeep = \"1\"\n");
    engine_uses(&fixture, "harmless = \"1\"");
    fixture.lock();
    let findings = fixture.boundary();
    let finding = named(&findings, "boundary/reach", "crates/engine/Cargo.toml");
    let way = "engine 0.1.0 -> harmless 1.0.0 -> deep 1.0.0 -> sqlx 1.0.0";
    assert_eq!(finding.problem, format!("engine reaches sqlx: {way}"));
    named(&findings, "boundary/reach", "crates/worker/Cargo.toml");
    assert_eq!(findings.len(), 2);
}

#[test]
fn optional_platform_bound_renamed_and_build_ways_are_ways() {
    let ways = [
        "[features]\nextra = [\"dep:harmless\"]\n[dependencies.harmless]\nversion = \"1\"\noptional = true",
        "[target.'cfg(windows)'.dependencies]\nharmless = \"1\"",
        "[dependencies.friendly]\npackage = \"harmless\"\nversion = \"1\"",
        "[build-dependencies]\nharmless = \"1\"",
    ];
    for way in ways {
        let fixture = Fixture::layered();
        fixture.vendored(
            "harmless",
            "[target.'cfg(target_os = \"macos\")'.dependencies]\nsqlx = \"1\"\n",
        );
        engine_uses(&fixture, way);
        fixture.lock();
        let findings = fixture.boundary();
        let finding = named(&findings, "boundary/reach", "crates/engine/Cargo.toml");
        assert!(
            finding
                .problem
                .contains("engine 0.1.0 -> harmless 1.0.0 -> sqlx 1.0.0"),
            "{way}: {finding}"
        );
    }
}

#[test]
fn what_only_tests_use_is_not_below() {
    let fixture = Fixture::layered();
    fixture.vendored("harmless", "[dependencies]\nsqlx = \"1\"\n");
    fixture.write(
        "crates/engine/Cargo.toml",
        &format!(
            "{}harmless = \"1\"\n",
            fixture.read("crates/engine/Cargo.toml")
        ),
    );
    fixture.lock();
    none(&fixture.boundary());
}

#[test]
fn features_of_another_member_are_neither_hidden_nor_invented() {
    let fixture = Fixture::layered();
    fixture.vendored("harmless", "[features]\ndatabase = [\"dep:sqlx\"]\n[dependencies]\nsqlx = { version = \"1\", optional = true }\n");
    engine_uses(&fixture, "harmless = \"1\"");
    let with_database = "sqlx = \"1\"\nharmless = { version = \"1\", features = [\"database\"] }";
    fixture.edit(
        "crates/controlplane/Cargo.toml",
        "sqlx = \"1\"",
        with_database,
    );
    fixture.lock();
    none(&fixture.boundary());

    fixture.edit(
        "crates/engine/Cargo.toml",
        "harmless = \"1\"",
        "harmless = { version = \"1\", features = [\"database\"] }",
    );
    fixture.lock();
    named(
        &fixture.boundary(),
        "boundary/reach",
        "crates/engine/Cargo.toml",
    );
}

#[test]
fn a_forbidden_feature_is_named_wherever_it_is_turned_on() {
    let fixture = Fixture::layered();
    fixture.edit(
        "crates/controlplane/Cargo.toml",
        "sqlx = \"1\"",
        "sqlx = { version = \"1\", features = [\"macros\"] }",
    );
    fixture.lock();
    let findings = fixture.boundary();
    let finding = only(
        &findings,
        "boundary/feature",
        "crates/controlplane/Cargo.toml",
    );
    assert!(finding.problem.contains("sqlx/macros"), "{finding}");

    let fixture = Fixture::layered();
    fixture.vendored(
        "harmless",
        "[dependencies]\nsqlx = { version = \"1\", features = [\"macros\"] }\n",
    );
    fixture.edit(
        "crates/controlplane/Cargo.toml",
        "sqlx = \"1\"",
        "sqlx = \"1\"\nharmless = \"1\"",
    );
    fixture.lock();
    only(
        &fixture.boundary(),
        "boundary/feature",
        "crates/controlplane/Cargo.toml",
    );
}

#[test]
fn a_tree_is_read_back_with_its_repeated_parts() {
    let printed = "0|a v0.1.0 (/x)||\n1|b v1.0.0|std|\n2|c v1.0.0||\n1|d v1.0.0 (proc-macro)||\n2|b v1.0.0|std| (*)\n";
    let tree = Tree::parse(printed, "a").unwrap();
    assert_eq!(tree.path_to("c").unwrap(), "a 0.1.0 -> b 1.0.0 -> c 1.0.0");
    assert_eq!(tree.path_to("d").unwrap(), "a 0.1.0 -> d 1.0.0");
    assert_eq!(tree.path_to("a"), None, "a crate does not reach itself");
    assert_eq!(tree.path_to("e"), None);
    let later = "0|a v1.0.0||\n1|b v1.0.0||\n2|c v1.0.0||\n3|d v1.0.0||\n1|c v1.0.0|| (*)\n";
    let shortest = Tree::parse(later, "a").unwrap().path_to("d");
    assert_eq!(shortest.unwrap(), "a 1.0.0 -> c 1.0.0 -> d 1.0.0");
    assert!(tree.path_to_feature("b", "std").is_some());
    assert!(tree.path_to_feature("b", "st").is_none());
}

#[test]
fn a_namesake_of_ours_deep_below_counts_as_ours() {
    let fixture = Fixture::layered();
    fixture.vendored("controlplane", "");
    fixture.vendored("harmless", "[dependencies]\ncontrolplane = \"1\"\n");
    engine_uses(&fixture, "harmless = \"1\"");
    fixture.lock();
    let findings = fixture.boundary();
    let finding = named(&findings, "boundary/reach", "crates/engine/Cargo.toml");
    let way = "engine 0.1.0 -> harmless 1.0.0 -> controlplane 1.0.0";
    assert!(finding.problem.ends_with(way), "{finding}");
}
