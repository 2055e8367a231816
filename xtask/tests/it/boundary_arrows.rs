//! What the manifests alone give away.

use crate::fixture::{Fixture, LAYERS, named, none, only};

/// Adds lines at the end of a manifest without touching the lock file.
fn plant(fixture: &Fixture, package: &str, lines: &str) {
    let path = format!("crates/{package}/Cargo.toml");
    fixture.write(&path, &format!("{}{lines}", fixture.read(&path)));
}

#[test]
fn a_clean_workspace_passes() {
    none(&Fixture::layered().boundary());
}

#[test]
fn an_arrow_that_is_not_listed_is_named_with_its_line() {
    let fixture = Fixture::layered();
    plant(
        &fixture,
        "controlplane",
        "kit-like = { path = \"../engine\", package = \"engine\" }\n",
    );
    fixture.lock();
    let findings = fixture.boundary();
    let finding = named(
        &findings,
        "boundary/arrow",
        "crates/controlplane/Cargo.toml",
    );
    let line = fixture
        .read("crates/controlplane/Cargo.toml")
        .lines()
        .count();
    assert_eq!(
        finding.place,
        format!("crates/controlplane/Cargo.toml:{line}")
    );
    assert!(
        finding.problem.contains("controlplane -> engine"),
        "{finding}"
    );
    assert!(finding.problem.contains("renamed `kit-like`"), "{finding}");
}

#[test]
fn an_arrow_is_named_even_when_the_lock_file_is_stale() {
    let fixture = Fixture::layered();
    let lock = fixture.read("Cargo.lock");
    fixture.package("stray", "");
    plant(
        &fixture,
        "engine",
        "[build-dependencies]\ncontrolplane = { path = \"../controlplane\" }\n",
    );
    let findings = fixture.boundary();
    named(&findings, "boundary/arrow", "crates/engine/Cargo.toml");
    named(&findings, "boundary/unreadable", "Cargo.lock");
    assert_eq!(fixture.read("Cargo.lock"), lock, "a check changes nothing");
}

#[test]
fn an_arrow_cannot_hide_in_another_section() {
    let sections = [
        "[build-dependencies]\ncontrolplane = { path = \"../controlplane\" }\n",
        "[target.'cfg(windows)'.dependencies]\ncontrolplane = { path = \"../controlplane\" }\n",
        "[target.x86_64-pc-windows-msvc.build-dependencies]\ncontrolplane = { path = \"../controlplane\" }\n",
        "[features]\nextra = [\"dep:controlplane\"]\n[dependencies.controlplane]\npath = \"../controlplane\"\noptional = true\n",
        "[dependencies.cp]\npackage = \"controlplane\"\npath = \"../controlplane\"\n",
    ];
    for section in sections {
        let fixture = Fixture::layered();
        plant(&fixture, "worker", section);
        fixture.lock();
        let findings = fixture.boundary();
        let arrow = named(&findings, "boundary/arrow", "crates/worker/Cargo.toml");
        assert!(
            arrow.problem.contains("worker -> controlplane"),
            "{section}: {arrow}"
        );
        let reach = named(&findings, "boundary/reach", "crates/worker/Cargo.toml");
        assert!(
            reach.problem.contains("worker -> controlplane"),
            "{section}: {reach}"
        );
    }
}

#[test]
fn a_worker_that_reaches_the_control_plane_through_a_third_crate_is_named_with_the_way() {
    let fixture = Fixture::layered();
    fixture.package(
        "middle",
        "[dependencies]\ncontrolplane = { path = \"../controlplane\" }\n",
    );
    plant(&fixture, "worker", "middle = { path = \"../middle\" }\n");
    fixture.layers(
        &(LAYERS.replace("may_use = [\"protocol\", \"engine\"]", "may_use = [\"protocol\", \"engine\", \"middle\"]")
            + "[[crate]]\nname = \"middle\"\nduty = \"duty of middle\"\nmay_use = [\"controlplane\"]\n"),
    );
    let expected = "worker reaches controlplane: worker -> middle -> controlplane";
    let stale = fixture.boundary();
    assert_eq!(
        named(&stale, "boundary/reach", "crates/worker/Cargo.toml").problem,
        expected
    );

    fixture.lock();
    let findings = fixture.boundary();
    assert!(findings.iter().any(|f| f.problem == expected));
    let sql = findings
        .iter()
        .find(|f| f.problem.starts_with("worker reaches sqlx"))
        .unwrap();
    assert!(
        sql.problem
            .contains("middle 0.1.0 -> controlplane 0.1.0 -> sqlx 1.0.0"),
        "{sql}"
    );
    assert_eq!(findings.len(), 2);
}

#[test]
fn a_listed_arrow_that_is_not_used_is_named() {
    let fixture = Fixture::layered();
    let block = "duty = \"duty of controlplane\"";
    fixture.layers(&LAYERS.replace(block, &format!("{block}\ndev_may_use = [\"engine\"]")));
    let findings = fixture.boundary();
    let finding = only(&findings, "boundary/unused", "xtask/rules/layers.toml");
    assert!(
        finding
            .problem
            .contains("dev_may_use of controlplane lists engine"),
        "{finding}"
    );

    let fixture = Fixture::layered();
    fixture.edit(
        "crates/worker/Cargo.toml",
        "protocol = { path = \"../protocol\" }\n",
        "",
    );
    fixture.lock();
    let findings = fixture.boundary();
    let finding = only(&findings, "boundary/unused", "xtask/rules/layers.toml");
    assert!(
        finding.problem.contains("may_use of worker lists protocol"),
        "{finding}"
    );
}

#[test]
fn a_dev_use_does_not_count_as_use() {
    let fixture = Fixture::layered();
    fixture.edit(
        "crates/kit/Cargo.toml",
        "[dependencies]",
        "[dev-dependencies]",
    );
    fixture.lock();
    let findings = fixture.boundary();
    only(&findings, "boundary/unused", "xtask/rules/layers.toml");
}

#[test]
fn a_dev_arrow_needs_its_own_grant() {
    let fixture = Fixture::layered();
    plant(
        &fixture,
        "controlplane",
        "[dev-dependencies]\nengine = { path = \"../engine\" }\n",
    );
    fixture.lock();
    let findings = fixture.boundary();
    let finding = only(
        &findings,
        "boundary/arrow",
        "crates/controlplane/Cargo.toml",
    );
    assert!(finding.remedy.contains("dev_may_use"), "{finding}");

    let grant = "duty = \"duty of controlplane\"\ndev_may_use = [\"engine\"]";
    fixture.layers(&LAYERS.replace("duty = \"duty of controlplane\"", grant));
    none(&fixture.boundary());
}

#[test]
fn a_crate_without_block_and_a_block_without_crate_are_named() {
    let fixture = Fixture::layered();
    fixture.package("stray", "");
    fixture.lock();
    only(
        &fixture.boundary(),
        "boundary/block",
        "crates/stray/Cargo.toml",
    );

    let fixture = Fixture::layered();
    fixture.layers(&format!(
        "{LAYERS}[[crate]]\nname = \"gone\"\nduty = \"x\"\n"
    ));
    only(
        &fixture.boundary(),
        "boundary/block",
        "xtask/rules/layers.toml",
    );
}

#[test]
fn the_kit_stays_out_of_products() {
    for section in [
        "[dependencies]",
        "[build-dependencies]",
        "[target.'cfg(unix)'.dependencies]",
    ] {
        let fixture = Fixture::layered();
        let engine = fixture.read("crates/engine/Cargo.toml");
        let (before, _) = engine.split_once("[dev-dependencies]").unwrap();
        let before = if section == "[dependencies]" {
            before.to_owned()
        } else {
            format!("{before}{section}\n")
        };
        fixture.write(
            "crates/engine/Cargo.toml",
            &format!("{before}kit = {{ path = \"../kit\" }}\n"),
        );
        fixture.layers(&LAYERS.replacen(
            "may_use = [\"protocol\"]",
            "may_use = [\"protocol\", \"kit\"]",
            1,
        ));
        fixture.lock();
        let findings = fixture.boundary();
        named(&findings, "boundary/dev-only", "crates/engine/Cargo.toml");
        let carried = findings
            .iter()
            .find(|f| f.problem.starts_with("worker carries kit"))
            .unwrap();
        assert!(
            carried
                .problem
                .contains("worker 0.1.0 -> engine 0.1.0 -> kit 0.1.0"),
            "{carried}"
        );
    }
}

#[test]
fn a_duty_that_is_not_the_description_is_named() {
    let fixture = Fixture::layered();
    fixture.layers(&LAYERS.replace("duty of kit", "another duty"));
    let findings = fixture.boundary();
    let finding = only(&findings, "boundary/duty", "crates/kit/Cargo.toml");
    assert!(finding.problem.contains("another duty"), "{finding}");

    let fixture = Fixture::layered();
    fixture.edit(
        "crates/kit/Cargo.toml",
        "description = \"duty of kit\"\n",
        "",
    );
    only(
        &fixture.boundary(),
        "boundary/duty",
        "crates/kit/Cargo.toml",
    );
}

#[test]
fn a_name_that_may_not_be_named_is_found_in_every_section() {
    let sections = [
        "harmless = \"1\"\n",
        "other = { package = \"harmless\", version = \"1\" }\n",
        "[dev-dependencies]\nharmless = \"1\"\n",
        "[target.'cfg(windows)'.build-dependencies]\nharmless = \"1\"\n",
    ];
    for section in sections {
        let fixture = Fixture::layered();
        plant(&fixture, "worker", section);
        fixture.lock();
        only(
            &fixture.boundary(),
            "boundary/name",
            "crates/worker/Cargo.toml",
        );
    }
}

#[test]
fn a_path_out_of_the_workspace_is_named() {
    let fixture = Fixture::layered();
    plant(
        &fixture,
        "worker",
        "outsider = { path = \"../../outside/outsider\" }\n",
    );
    fixture.edit(
        "Cargo.toml",
        "resolver = \"3\"",
        "resolver = \"3\"\nexclude = [\"outside\"]",
    );
    fixture.write(
        "outside/outsider/Cargo.toml",
        "[package]\nname = \"outsider\"\nversion = \"0.1.0\"\n[dependencies]\nsqlx = \"1\"\n",
    );
    fixture.write("outside/outsider/src/lib.rs", "");
    fixture.lock();
    let findings = fixture.boundary();
    named(&findings, "boundary/stranger", "crates/worker/Cargo.toml");
    assert!(
        findings
            .iter()
            .any(|f| f.problem.starts_with("worker reaches sqlx"))
    );
}

#[test]
fn a_crate_with_the_name_of_ours_from_elsewhere_is_still_ours() {
    let fixture = Fixture::layered();
    fixture.vendored("engine", "");
    plant(
        &fixture,
        "controlplane",
        "theirs = { package = \"engine\", version = \"1\" }\n",
    );
    fixture.lock();
    let findings = fixture.boundary();
    named(
        &findings,
        "boundary/arrow",
        "crates/controlplane/Cargo.toml",
    );
    named(
        &findings,
        "boundary/reach",
        "crates/controlplane/Cargo.toml",
    );
}

#[test]
fn an_exception_grants_one_thing_and_goes_when_it_is_not_needed() {
    let fixture = Fixture::layered();
    plant(&fixture, "worker", "harmless = \"1\"\n");
    fixture.lock();
    let block = "[[exception]]\nfrom = \"worker\"\nto = \"harmless\"\nkind = \"name\"\nreason = \"until it moves\"\n";
    fixture.layers(&format!("{LAYERS}{block}"));
    none(&fixture.boundary());

    let fixture = Fixture::layered();
    fixture.layers(&format!("{LAYERS}{block}"));
    let findings = fixture.boundary();
    only(&findings, "boundary/exception", "xtask/rules/layers.toml");
}

#[test]
fn every_kind_of_exception_lifts_its_rule() {
    let grant = |from: &str, to: &str, kind: &str| {
        format!(
            "[[exception]]\nfrom = \"{from}\"\nto = \"{to}\"\nkind = \"{kind}\"\nreason = \"r\"\n"
        )
    };
    let fixture = Fixture::layered();
    plant(
        &fixture,
        "engine",
        "[dependencies.controlplane]\npath = \"../controlplane\"\n",
    );
    plant(
        &fixture,
        "protocol",
        "[dev-dependencies]\nengine = { path = \"../engine\" }\n",
    );
    fixture.edit(
        "crates/controlplane/Cargo.toml",
        "sqlx = \"1\"",
        "sqlx = { version = \"1\", features = [\"macros\"] }",
    );
    fixture.lock();
    let grants = [
        grant("engine", "controlplane", "use"),
        grant("engine", "controlplane", "reach"),
        grant("engine", "sqlx", "reach"),
        grant("worker", "controlplane", "reach"),
        grant("worker", "sqlx", "reach"),
        grant("protocol", "engine", "dev_use"),
        grant("controlplane", "sqlx/macros", "feature"),
    ];
    fixture.layers(&format!("{LAYERS}{}", grants.concat()));
    none(&fixture.boundary());
    for left_out in 0..grants.len() {
        let mut fewer = grants.to_vec();
        fewer.remove(left_out);
        fixture.layers(&format!("{LAYERS}{}", fewer.concat()));
        assert_eq!(fixture.boundary().len(), 1, "without {}", grants[left_out]);
    }
}
