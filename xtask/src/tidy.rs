//! Small rules that every crate follows: documents at the top, no bare `allow`,
//! `mod.rs` without code, unsafe code in one crate only, shared settings.

use anyhow::{Context, Result};

use crate::boundary::Manifests;
use crate::finding::Finding;
use crate::source::{Source, Token};
use crate::workspace::Workspace;

/// The only crate that may lift the ban on unsafe code.
const UNSAFE_CRATE: &str = "crates/jig-process/";

/// Checks every crate and every source.
///
/// # Errors
///
/// When manifests cannot be read.
pub fn check(workspace: &Workspace, sources: &[Source]) -> Result<Vec<Finding>> {
    let manifests = Manifests::read(workspace)?;
    let mut findings = Vec::new();
    for source in sources {
        crate_root(source, &mut findings);
        attributes(source, &mut findings);
        module_file(source, &mut findings);
    }
    for member in &manifests.members {
        shared_settings(workspace, &member.manifest, &mut findings)?;
        one_test_binary(workspace, &member.manifest, &mut findings)?;
    }
    Ok(findings)
}

/// `lib.rs` and `main.rs` open with what the crate is for; a library warns of
/// missing documentation.
fn crate_root(source: &Source, findings: &mut Vec<Finding>) {
    let is_library = source.path.ends_with("/src/lib.rs");
    if !is_library && !source.path.ends_with("/src/main.rs") {
        return;
    }
    if !source.text.starts_with("//! ") {
        findings.push(Finding::at(
            "tidy/docs",
            &source.path,
            1,
            "does not open with `//!` documentation",
            "say what it does, what it must not know, and where to start reading",
        ));
    }
    if is_library
        && !has_sequence(
            &source.tokens,
            &["#", "!", "[", "warn", "(", "missing_docs", ")"],
        )
    {
        findings.push(Finding::at(
            "tidy/docs",
            &source.path,
            1,
            "has no `#![warn(missing_docs)]`",
            "add it below the documentation of the crate",
        ));
    }
}

/// No `allow` at all, and `expect` of unsafe code in one crate only.
fn attributes(source: &Source, findings: &mut Vec<Finding>) {
    for (at, token) in source.tokens.iter().enumerate() {
        let Some(inside) = attribute_at(&source.tokens, at) else {
            continue;
        };
        let lifts = |level: &str| has_sequence(inside, &[level, "("]);
        if lifts("allow") {
            findings.push(Finding::at(
                "tidy/allow",
                &source.path,
                token.line,
                "silences a lint with `allow`",
                "write `#[expect(…, reason = \"…\")]`, which complains once it is not needed",
            ));
        }
        let lifted = lifts("allow") || lifts("expect") || lifts("warn");
        let is_unsafe = inside.iter().any(|token| token.is_word("unsafe_code"));
        if lifted && is_unsafe && !source.path.starts_with(UNSAFE_CRATE) {
            findings.push(Finding::at(
                "tidy/unsafe",
                &source.path,
                token.line,
                "lifts the ban on unsafe code",
                "put the call into jig-process behind a safe function",
            ));
        }
    }
}

/// `mod.rs` holds documentation and re-exports.
fn module_file(source: &Source, findings: &mut Vec<Finding>) {
    if !source.path.ends_with("/mod.rs") || source.is_test {
        return;
    }
    const CODE: [&str; 6] = ["fn", "impl", "macro_rules", "struct", "enum", "trait"];
    let is_code = |token: &&Token| !token.in_test && CODE.iter().any(|word| token.is_word(word));
    if let Some(token) = source.tokens.iter().find(is_code) {
        findings.push(Finding::at(
            "tidy/mod",
            &source.path,
            token.line,
            "`mod.rs` holds code",
            "move it to a file named after what it does; keep documentation and re-exports",
        ));
    }
}

/// Lints come from the workspace, versions too.
fn shared_settings(
    workspace: &Workspace,
    manifest: &str,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let text = workspace.read(manifest)?;
    let table: toml::Table = text
        .parse()
        .with_context(|| format!("{manifest} is not understood"))?;
    let inherits = |section: &str| {
        let section = table.get(section).and_then(toml::Value::as_table);
        section
            .and_then(|s| s.get("workspace"))
            .and_then(toml::Value::as_bool)
            == Some(true)
    };
    if !inherits("lints") {
        findings.push(Finding::new(
            "tidy/lints",
            manifest,
            "does not take the lints of the workspace",
            "add `[lints] workspace = true`",
        ));
    }
    for (section, dependencies) in dependency_tables(&table) {
        for (name, value) in dependencies {
            let shared = value.get("workspace").and_then(toml::Value::as_bool) == Some(true);
            if !shared {
                findings.push(Finding::new(
                    "tidy/versions",
                    manifest,
                    format!("`{name}` in [{section}] does not take its version from the workspace"),
                    "name it in [workspace.dependencies] and write `workspace = true` here",
                ));
            }
        }
    }
    Ok(())
}

/// Every dependency table of a manifest, those of single platforms included.
fn dependency_tables(manifest: &toml::Table) -> Vec<(String, &toml::Table)> {
    const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    let mut found = Vec::new();
    for section in SECTIONS {
        if let Some(table) = manifest.get(section).and_then(toml::Value::as_table) {
            found.push((section.to_owned(), table));
        }
    }
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    for (target, table) in targets.into_iter().flatten() {
        for section in SECTIONS {
            if let Some(table) = table.get(section).and_then(toml::Value::as_table) {
                found.push((format!("target.{target}.{section}"), table));
            }
        }
    }
    found
}

/// Each integration test binary links everything again: one per crate.
fn one_test_binary(
    workspace: &Workspace,
    manifest: &str,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let tests = manifest.replace("Cargo.toml", "tests");
    if !workspace.has(&tests) {
        return Ok(());
    }
    let entries = std::fs::read_dir(workspace.root().join(&tests))
        .with_context(|| format!("cannot list {tests}"))?;
    for entry in entries {
        let path = entry
            .with_context(|| format!("cannot list {tests}"))?
            .path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_binary = name.ends_with(".rs") || path.join("main.rs").is_file();
        if is_binary && name != "it" {
            findings.push(Finding::new(
                "tidy/tests",
                format!("{tests}/{name}"),
                "a second integration test binary",
                "make it a module of tests/it/main.rs",
            ));
        }
    }
    Ok(())
}

/// The tokens of the attribute that begins at `at`, brackets included.
fn attribute_at(tokens: &[Token], at: usize) -> Option<&[Token]> {
    tokens[at].is_mark('#').then_some(())?;
    let open = at + 1 + usize::from(tokens.get(at + 1)?.is_mark('!'));
    tokens.get(open).filter(|token| token.is_mark('['))?;
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        depth += usize::from(token.is_mark('['));
        if token.is_mark(']') {
            depth -= 1;
            if depth == 0 {
                return Some(&tokens[open..=index]);
            }
        }
    }
    None
}

fn has_sequence(tokens: &[Token], words: &[&str]) -> bool {
    tokens.windows(words.len()).any(|window| {
        window.iter().zip(words).all(|(token, word)| {
            token.is_word(word)
                || word
                    .chars()
                    .next()
                    .is_some_and(|c| word.len() == 1 && token.is_mark(c))
        })
    })
}
