//! What cannot be read is a failure, never a pass.

use xtask::boundary::{Manifests, Tree, check};
use xtask::finding::Finding;

use crate::fixture::{Fixture, LAYERS, named, none};

#[test]
fn no_metadata_is_an_error() {
    let scripts = [
        ("exit 101", "failed"),
        ("exit 0", "printed something else"),
        ("echo '{}'", "printed something else"),
        ("echo '{\"packages\": []}'", "names no package"),
        ("printf '\\377'", "not text"),
    ];
    for (script, expected) in scripts {
        let fixture = Fixture::layered();
        let cargo = fixture.program("cargo", script);
        let error = check(&fixture.workspace().with_cargo(cargo)).unwrap_err();
        assert!(
            format!("{error:#}").contains(expected),
            "{script}: {error:#}"
        );
    }
    let missing = Fixture::layered()
        .workspace()
        .with_cargo("/nonexistent/cargo");
    assert!(check(&missing).is_err());
}

#[test]
fn a_broken_manifest_is_an_error() {
    let fixture = Fixture::layered();
    fixture.write("crates/kit/Cargo.toml", "[package\n");
    assert!(check(&fixture.workspace()).is_err());
}

#[test]
fn a_crate_that_hides_from_the_workspace_is_an_error() {
    let fixture = Fixture::layered();
    fixture.package(
        "hidden",
        "[dependencies]\ncontrolplane = { path = \"../controlplane\" }\n",
    );
    fixture.edit(
        "Cargo.toml",
        "resolver = \"3\"",
        "resolver = \"3\"\nexclude = [\"crates/hidden\"]",
    );
    let error = check(&fixture.workspace()).unwrap_err();
    assert!(
        format!("{error:#}").contains("crates/hidden/Cargo.toml is no member"),
        "{error:#}"
    );
}

#[test]
fn a_tree_that_cannot_be_read_is_a_finding() {
    let real = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    for script in [
        "exit 101",
        "exit 0",
        "echo nonsense",
        "echo '0|other v1.0.0||'",
    ] {
        let fixture = Fixture::layered();
        let text = format!("if [ \"$1\" = tree ]; then {script}; exit; fi\nexec '{real}' \"$@\"");
        let cargo = fixture.program("cargo", &text);
        let findings = check(&fixture.workspace().with_cargo(cargo)).unwrap();
        for name in ["protocol", "engine", "worker", "controlplane", "kit"] {
            let is_named =
                |f: &Finding| f.rule == "boundary/unreadable" && f.problem.contains(name);
            assert!(
                findings.iter().any(is_named),
                "{script}: {name} in {findings:?}"
            );
        }
    }
}

#[test]
fn a_missing_lock_file_is_a_finding() {
    let fixture = Fixture::layered();
    std::fs::remove_file(fixture.path("Cargo.lock")).unwrap();
    named(&fixture.boundary(), "boundary/unreadable", "Cargo.lock");
    assert!(
        !fixture.path("Cargo.lock").exists(),
        "a check writes nothing"
    );
}

#[test]
fn trees_that_are_none_are_refused() {
    let texts = [
        "",
        "\n\n",
        "error: something\n",
        "0|b v1.0.0||\n",
        "1|a v1.0.0||\n",
        "0|a v1.0.0||\n2|b v1.0.0||\n",
        "0|a v1.0.0||\n0|b v1.0.0||\n",
        "0|a||\n",
        "0|a v1.0.0||\n1|b v1.0.0|x| surprise\n",
        "x|a v1.0.0||\n",
    ];
    for text in texts {
        assert!(Tree::parse(text, "a").is_err(), "{text:?}");
    }
}

#[test]
fn metadata_of_another_place_is_refused() {
    let fixture = Fixture::layered();
    let elsewhere = Fixture::layered();
    let printed = fixture
        .workspace()
        .cargo_output(&[
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .unwrap();
    assert!(Manifests::parse(&printed, elsewhere.workspace().root()).is_err());
    assert_eq!(
        Manifests::parse(&printed, fixture.workspace().root())
            .unwrap()
            .members
            .len(),
        5
    );
}

#[test]
fn rules_that_say_nothing_are_refused() {
    let fixture = Fixture::layered();
    let bad = [
        String::new(),
        "dev_only = []".to_owned(),
        format!("{LAYERS}[[crate]]\nname = \"kit\"\nduty = \"duty of kit\"\n"),
        format!("{LAYERS}mayuse = [\"engine\"]\n"),
        format!("{LAYERS}never_feature = [\"sqlx\"]\n"),
        format!(
            "{LAYERS}[[exception]]\nfrom = \"kit\"\nto = \"engine\"\nkind = \"use\"\nreason = \" \"\n"
        ),
        format!(
            "{LAYERS}[[exception]]\nfrom = \"kit\"\nto = \"engine\"\nkind = \"all\"\nreason = \"x\"\n"
        ),
    ];
    for text in bad {
        fixture.layers(&text);
        assert!(check(&fixture.workspace()).is_err(), "{text}");
    }
    std::fs::remove_file(fixture.path("xtask/rules/layers.toml")).unwrap();
    assert!(check(&fixture.workspace()).is_err());
    fixture.layers(LAYERS);
    none(&fixture.boundary());
}

#[test]
fn an_exception_is_not_called_needless_while_a_tree_is_unreadable() {
    let fixture = Fixture::layered();
    std::fs::remove_file(fixture.path("Cargo.lock")).unwrap();
    fixture.layers(&format!(
        "{LAYERS}[[exception]]\nfrom = \"engine\"\nto = \"sqlx\"\nkind = \"reach\"\nreason = \"r\"\n"
    ));
    let findings = fixture.boundary();
    assert!(
        findings.iter().all(|f| f.rule == "boundary/unreadable"),
        "{findings:?}"
    );
    fixture.lock();
    named(
        &fixture.boundary(),
        "boundary/exception",
        "xtask/rules/layers.toml",
    );
}
