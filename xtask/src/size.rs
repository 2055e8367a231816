//! How long a product file may get, from `xtask/rules/size.toml`.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::finding::Finding;
use crate::source::Source;
use crate::workspace::Workspace;

/// Where the limit and the exceptions are kept.
const FILE: &str = "xtask/rules/size.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    /// Product lines that need no reason.
    limit: usize,
    /// How many exceptions there may be: always exactly as many as there are, so
    /// that one that goes takes its place along.
    exceptions_at_most: usize,
    #[serde(default)]
    exception: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    path: String,
    /// Its product lines when it was granted; the file may not outgrow them.
    lines: usize,
    reason: String,
}

/// Compares each product file with the limit; test files have none.
///
/// # Errors
///
/// When the rules cannot be read or contradict themselves.
pub fn check(workspace: &Workspace, sources: &[Source]) -> Result<Vec<Finding>> {
    let rules: Rules = workspace.rules("size.toml")?;
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for exception in &rules.exception {
        ensure!(
            seen.insert(&exception.path),
            "{FILE} holds {} twice",
            exception.path
        );
        ensure!(
            !exception.reason.trim().is_empty(),
            "{FILE}: {} has no reason",
            exception.path
        );
        findings.extend(exception.check(rules.limit, sources));
    }
    if rules.exception.len() != rules.exceptions_at_most {
        findings.push(Finding::new(
            "size/list",
            FILE,
            format!(
                "{} exceptions, but exceptions_at_most is {}",
                rules.exception.len(),
                rules.exceptions_at_most
            ),
            "the list only shrinks: lower the number when one goes; split a file instead of adding one",
        ));
    }
    for source in sources
        .iter()
        .filter(|source| !source.is_test && !seen.contains(&source.path))
    {
        let lines = source.product_lines();
        if lines > rules.limit {
            findings.push(Finding::new(
                "size",
                &source.path,
                format!(
                    "{lines} product lines, {} over the limit",
                    lines - rules.limit
                ),
                "split it by what its parts are for",
            ));
        }
    }
    Ok(findings)
}

impl Exception {
    fn check(&self, limit: usize, sources: &[Source]) -> Option<Finding> {
        let Some(source) = sources.iter().find(|source| source.path == self.path) else {
            let problem = format!("the exception {} names no file", self.path);
            return Some(Finding::new("size/list", FILE, problem, "remove it"));
        };
        let lines = source.product_lines();
        if lines <= limit {
            let problem = format!(
                "{} has {lines} product lines and needs no exception",
                self.path
            );
            return Some(Finding::new(
                "size/list",
                FILE,
                problem,
                "remove the exception",
            ));
        }
        (lines > self.lines).then(|| {
            let problem = format!("{lines} product lines, grown beyond its {}", self.lines);
            Finding::new(
                "size",
                &self.path,
                problem,
                "move something out: an exception does not grow",
            )
        })
    }
}
