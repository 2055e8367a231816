//! Rules for what is written for people: the list of dependencies, links that
//! lead somewhere, no paths of somebody's machine.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use crate::boundary::Manifests;
use crate::finding::Finding;
use crate::workspace::Workspace;

/// The list of third-party dependencies with their reasons.
const DEPENDENCIES: &str = "docs/dependencies.md";

/// Beginnings of absolute paths that exist on one machine only.
const LOCAL_PATHS: [&str; 5] = ["/home/", "/Users/", "/root/", "/work/", "C:\\"];

/// Checks the documents of the workspace.
///
/// # Errors
///
/// When a document cannot be read, or there is none.
pub fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = dependencies(workspace)?;
    for path in workspace.files(&["md"])? {
        let text = workspace.read(&path)?;
        local_paths(&path, &text, &mut findings);
        links(workspace, &path, &text, &mut findings);
    }
    Ok(findings)
}

/// Every third-party crate of `[workspace.dependencies]` has a row that says why
/// it is there, and no row is left behind.
fn dependencies(workspace: &Workspace) -> Result<Vec<Finding>> {
    let manifests = Manifests::read(workspace)?;
    let manifest: toml::Table = workspace
        .read("Cargo.toml")?
        .parse()
        .context("Cargo.toml is not understood")?;
    let listed = manifest
        .get("workspace")
        .and_then(|w| w.get("dependencies"))
        .and_then(toml::Value::as_table)
        .context("Cargo.toml has no [workspace.dependencies]")?;
    let rows = rows(&workspace.read(DEPENDENCIES)?);
    ensure!(!rows.is_empty(), "{DEPENDENCIES} holds no table");
    let third_party: Vec<&String> = listed
        .iter()
        .filter(|(_, v)| v.get("path").is_none())
        .map(|(name, _)| name)
        .collect();
    let mut findings = Vec::new();
    for name in &third_party {
        if !rows.contains_key(name.as_str()) {
            findings.push(Finding::new(
                "documents/dependencies",
                DEPENDENCIES,
                format!("`{name}` has no row"),
                "add one: name, why it is here, licence",
            ));
        }
    }
    for name in &third_party {
        let is_used = manifests
            .members
            .iter()
            .flat_map(|member| &member.arrows)
            .any(|arrow| arrow.renamed.as_ref().unwrap_or(&arrow.to) == *name);
        if !is_used {
            findings.push(Finding::new(
                "documents/dependencies",
                "Cargo.toml",
                format!("no crate uses `{name}` of [workspace.dependencies]"),
                "take it out, and its row with it",
            ));
        }
    }
    for (name, (line, complete)) in &rows {
        if !third_party.contains(&name) {
            let problem = format!("`{name}` is no dependency of the workspace");
            findings.push(Finding::at(
                "documents/dependencies",
                DEPENDENCIES,
                *line,
                problem,
                "remove the row",
            ));
        } else if !complete {
            let problem = format!("the row of `{name}` has an empty cell");
            findings.push(Finding::at(
                "documents/dependencies",
                DEPENDENCIES,
                *line,
                problem,
                "fill in reason and licence",
            ));
        }
    }
    Ok(findings)
}

/// Name to line and whether all three cells are filled, of every row whose first
/// cell is one word in backticks.
fn rows(text: &str) -> BTreeMap<String, (usize, bool)> {
    let mut rows = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let Some(inner) = line
            .trim()
            .strip_prefix('|')
            .and_then(|l| l.strip_suffix('|'))
        else {
            continue;
        };
        let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
        let name = cells[0]
            .strip_prefix('`')
            .and_then(|cell| cell.strip_suffix('`'));
        if let Some(name) = name {
            let complete = cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty());
            rows.insert(name.to_owned(), (index + 1, complete));
        }
    }
    rows
}

fn local_paths(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        for start in LOCAL_PATHS {
            let begins_there = line.match_indices(start).any(|(at, _)| {
                !line[..at].ends_with(|c: char| {
                    c.is_alphanumeric() || matches!(c, '.' | '~' | '}' | '>' | '_' | '-')
                })
            });
            if begins_there {
                let problem = format!("names a path of one machine (`{start}`)");
                findings.push(Finding::at(
                    "documents/path",
                    path,
                    index + 1,
                    problem,
                    "write it relative to the repository or to `~`",
                ));
            }
        }
    }
}

/// Relative links lead to files that exist.
fn links(workspace: &Workspace, path: &str, text: &str, findings: &mut Vec<Finding>) {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        for (at, _) in line.match_indices("](").filter(|_| !in_code) {
            let target = line[at + 2..]
                .split([')', ' ', '#'])
                .next()
                .unwrap_or_default();
            if target.is_empty() || target.contains(':') {
                continue;
            }
            if !workspace.root().join(directory).join(target).exists() {
                let problem = format!("the link to {target} leads nowhere");
                findings.push(Finding::at(
                    "documents/link",
                    path,
                    index + 1,
                    problem,
                    "correct the link or write the file",
                ));
            }
        }
    }
}
