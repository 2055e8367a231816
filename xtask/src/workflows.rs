//! Workflows run what was reviewed: actions by commit, and no more rights than
//! reading.

use anyhow::{Context, Result, ensure};

use crate::finding::Finding;
use crate::workspace::Workspace;

const DIRECTORY: &str = ".github/workflows";

/// Checks every workflow.
///
/// # Errors
///
/// When the workflows cannot be read, or there is none.
pub fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let entries = std::fs::read_dir(workspace.root().join(DIRECTORY))
        .with_context(|| format!("cannot list {DIRECTORY}"))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list {DIRECTORY}"))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| name.ends_with(".yml") || name.ends_with(".yaml"));
    names.sort();
    ensure!(!names.is_empty(), "no workflow under {DIRECTORY}");
    let mut findings = Vec::new();
    for name in names {
        let path = format!("{DIRECTORY}/{name}");
        let text = workspace.read(&path)?;
        actions(&path, &text, &mut findings);
        permissions(&path, &text, &mut findings);
    }
    Ok(findings)
}

/// A tag can be moved after review; a commit cannot.
fn actions(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start().trim_start_matches("- ");
        let Some(action) = line.strip_prefix("uses:") else {
            continue;
        };
        let action = action
            .split('#')
            .next()
            .unwrap_or_default()
            .trim()
            .trim_matches(['"', '\'']);
        let is_local = action.starts_with("./");
        let commit = action.rsplit_once('@').map_or("", |(_, commit)| commit);
        let is_commit = commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_local && !is_commit {
            findings.push(Finding::at(
                "tidy/workflows",
                path,
                index + 1,
                format!("`{action}` is not pinned by commit"),
                "write the full commit, and the version it is in a comment",
            ));
        }
    }
}

/// The whole workflow may read the repository; what needs more has no place here.
fn permissions(path: &str, text: &str, findings: &mut Vec<Finding>) {
    if !text.contains("\npermissions:\n  contents: read\n") {
        findings.push(Finding::new(
            "tidy/workflows",
            path,
            "does not limit its token to reading",
            "write `permissions:` with `contents: read` at the top level",
        ));
    }
    let granted = text.lines().position(|line| {
        let line = line.split('#').next().unwrap_or_default().trim_end();
        line.ends_with(": write") || line.ends_with(": write-all")
    });
    if let Some(index) = granted {
        findings.push(Finding::at(
            "tidy/workflows",
            path,
            index + 1,
            "grants a right to write",
            "take it out; checks only read",
        ));
    }
}
