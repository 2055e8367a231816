//! The rules of this repository, shown what they are there to find.

use std::fs;
use std::path::Path;

use xtask::words;

use crate::fixture::{Fixture, named, none, repository};

/// Code with a place where it may not stand and one where it may.
const PLANTED: [(&str, &str, Option<&str>); 15] = [
    (
        "sqlx::query(\"x\");",
        "crates/jig-engine/src/x.rs",
        Some("crates/jig-controlplane/src/store/x.rs"),
    ),
    (
        "sqlx::query(\"x\");",
        "crates/jig-controlplane/src/service/x.rs",
        Some("crates/jig-controlplane/tests/it/x.rs"),
    ),
    (
        "axum::serve();",
        "crates/jig-controlplane/src/store/x.rs",
        Some("crates/jig-controlplane/src/http/x.rs"),
    ),
    (
        "Command::new(\"git\");",
        "crates/jig-git/src/x.rs",
        Some("crates/jig-process/src/x.rs"),
    ),
    (
        "use std::process::{Command as C};",
        "crates/jig-engine/src/x.rs",
        Some("crates/jig-engine/benches/x.rs"),
    ),
    (
        "println!(\"x\");",
        "crates/jig-engine/src/x.rs",
        Some("crates/jig-cli/src/x.rs"),
    ),
    (
        "eprintln!(\"x\");",
        "crates/jig-testkit/src/x.rs",
        Some("xtask/src/x.rs"),
    ),
    ("todo!();", "crates/jig-cli/tests/it/x.rs", None),
    ("unimplemented!();", "xtask/src/x.rs", None),
    ("dbg!(1);", "crates/jig-cli/src/x.rs", None),
    (
        "SystemTime::now();",
        "crates/jig-process/src/x.rs",
        Some("crates/jig-process/src/clock.rs"),
    ),
    (
        "Instant::now();",
        "crates/jig-engine/src/x.rs",
        Some("crates/jig-process/src/x.rs"),
    ),
    (
        "std::env::var(\"HOME\");",
        "crates/jig-engine/src/x.rs",
        Some("crates/jig-cli/src/x.rs"),
    ),
    (
        "anyhow::bail!(\"x\");",
        "crates/jig-engine/src/x.rs",
        Some("crates/jig-engine/tests/it/x.rs"),
    ),
    (
        "std::process::exit(1);",
        "crates/jig-engine/src/x.rs",
        Some("crates/jig-cli/src/x.rs"),
    ),
];

fn with_real_words() -> Fixture {
    let fixture = Fixture::empty();
    let rules = fs::read_to_string(repository().join("xtask/rules/words.toml")).unwrap();
    fixture.write("xtask/rules/words.toml", &rules);
    fixture
}

#[test]
fn the_words_of_the_house_stand_where_they_belong() {
    for (code, wrong, right) in PLANTED {
        let text = format!("//! {code}\nfn f() {{\n    // {code}\n    {code}\n}}\n");
        let fixture = with_real_words();
        fixture.write(wrong, &text);
        let findings = words::check(&fixture.workspace(), &fixture.sources()).unwrap();
        assert!(!findings.is_empty(), "{code} in {wrong}");
        assert!(
            findings.iter().all(|f| f.place == format!("{wrong}:4")),
            "{code}: {findings:?}"
        );

        if let Some(right) = right {
            let fixture = with_real_words();
            fixture.write(right, &text);
            none(&words::check(&fixture.workspace(), &fixture.sources()).unwrap());
        }
    }
}

#[test]
fn every_word_of_the_house_is_found_where_it_is_looked_for() {
    let fixture = with_real_words();
    let rules: toml::Table = fixture.read("xtask/rules/words.toml").parse().unwrap();
    let strings = |rule: &toml::Value, key: &str| -> Vec<String> {
        let list = rule.get(key).and_then(toml::Value::as_array);
        let texts = list.into_iter().flatten().filter_map(toml::Value::as_str);
        texts.map(str::to_owned).collect()
    };
    for rule in rules["word"].as_array().unwrap() {
        let within = strings(rule, "within");
        let place = within
            .first()
            .map_or("crates/jig-engine/src/".to_owned(), |w| w.replace('*', "x"));
        for word in strings(rule, "words") {
            let path = format!("{place}planted.rs");
            let code = word.replace('…', ".map(|x| { x; y })");
            fixture.write(&path, &format!("fn f() {{ {code} }}\n"));
            let findings = words::check(&fixture.workspace(), &fixture.sources()).unwrap();
            let named = findings
                .iter()
                .any(|f| f.problem.contains(&format!("`{word}`")));
            assert!(named, "{word} in {path}: {findings:?}");
            fs::remove_file(fixture.path(&path)).unwrap();
        }
    }
}

#[test]
fn a_dropped_error_of_a_row_is_found_under_store_only() {
    let dropped = [
        "let x: Vec<_> = rows.into_iter().map(decode).flatten().collect();",
        "for row in rows.flatten() {}",
        "let x = sqlx::query(\"q\").fetch(&pool).flatten();",
        "let x = results.filter_map(Result::ok);",
        "let x = results.filter_map(|row| row.ok());",
        "let x = results.map_while(Result::ok);",
        "let x = results.flat_map(Result::ok);",
        "while let Ok(Some(row)) = stream.try_next().await {}",
    ];
    for code in dropped {
        let text = format!("fn f() {{ {code} }}\n");
        let fixture = with_real_words();
        fixture.write("crates/jig-controlplane/src/store/jobs.rs", &text);
        fixture.write("crates/jig-git/src/x.rs", &text.replace("sqlx", "other"));
        let findings = words::check(&fixture.workspace(), &fixture.sources()).unwrap();
        assert_eq!(findings.len(), 1, "{code}: {findings:?}");
        named(
            &findings,
            "words",
            "crates/jig-controlplane/src/store/jobs.rs",
        );
    }
    let kept = [
        "let x = sqlx::query(\"q\").fetch_optional(&pool).await?.flatten();",
        "let x: Result<Vec<_>, _> = rows.into_iter().map(decode).collect();",
        "while let Some(row) = stream.try_next().await? { names.push(row.get::<Option<Option<u8>>>(0).flatten()); }",
    ];
    for code in kept {
        let fixture = with_real_words();
        fixture.write(
            "crates/jig-controlplane/src/store/jobs.rs",
            &format!("fn f() {{ {code} }}\n"),
        );
        none(&words::check(&fixture.workspace(), &fixture.sources()).unwrap());
    }
}

/// The real manifests and the real rules, without anything that takes time to copy.
fn copy_of_the_house() -> Fixture {
    let fixture = Fixture::empty();
    fs::remove_file(fixture.path(".cargo/config.toml")).unwrap();
    copy(repository(), &fixture.path(""));
    fixture
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let (source, target) = (entry.path(), to.join(&name));
        let skipped = name == ".git" || name == ".cargo" || source.join("CACHEDIR.TAG").exists();
        if entry.file_type().unwrap().is_dir() && !skipped {
            fs::create_dir_all(&target).unwrap();
            copy(&source, &target);
        } else if entry.file_type().unwrap().is_file() {
            fs::copy(&source, &target).unwrap();
        }
    }
}

fn plant_arrow(fixture: &Fixture, from: &str, to: &str) {
    let manifest = format!("crates/{from}/Cargo.toml");
    let line = format!("[dependencies]\n{to} = {{ path = \"../{to}\" }}");
    fixture.edit(&manifest, "\n[dependencies]", &format!("\n{line}"));
}

#[test]
fn the_layers_of_the_house_name_arrows_that_break_them() {
    let planted = [
        ("jig-engine", "jig-controlplane"),
        ("jig-runtime", "jig-controlplane"),
        ("jig-git", "jig-controlplane"),
        ("jig-protocol", "jig-process"),
        ("jig-controlplane", "jig-engine"),
        ("jig-runtime-claude", "jig-runtime-scripted"),
        ("jig-runtime-codex", "jig-runtime-claude"),
        ("jig-engine", "jig-runtime-claude"),
    ];
    for (from, to) in planted {
        let fixture = copy_of_the_house();
        plant_arrow(&fixture, from, to);
        let findings = fixture.boundary();
        let arrow = format!("the arrow {from} -> {to} ");
        assert!(
            findings.iter().any(|f| f.problem.starts_with(&arrow)),
            "{arrow}: {findings:?}"
        );
    }
}

#[test]
fn a_worker_of_the_house_cannot_reach_the_control_plane_through_a_third_crate() {
    let fixture = copy_of_the_house();
    let layers = fixture.read("xtask/rules/layers.toml");
    let blocks = "\n[[crate]]\nname = \"jig-worker\"\nduty = \"duty of jig-worker\"\nmay_use = [\"jig-bridge\"]\n\
        never_reach = [\"jig-controlplane\", \"sqlx\"]\n\
        [[crate]]\nname = \"jig-bridge\"\nduty = \"duty of jig-bridge\"\nmay_use = [\"jig-controlplane\"]\n";
    fixture.layers(&format!("{layers}{blocks}"));
    fixture.package(
        "jig-worker",
        "[dependencies]\njig-bridge = { path = \"../jig-bridge\" }\n",
    );
    fixture.package(
        "jig-bridge",
        "[dependencies]\njig-controlplane.workspace = true\n",
    );
    let findings = fixture.boundary();
    let expected =
        "jig-worker reaches jig-controlplane: jig-worker -> jig-bridge -> jig-controlplane";
    assert!(
        findings.iter().any(|f| f.problem == expected),
        "{findings:?}"
    );
    assert!(
        !findings
            .iter()
            .any(|f| f.problem.contains("jig-worker has no block"))
    );
}
