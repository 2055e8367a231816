//! Derived files are in step with what they are derived from.
//!
//! A derived file is written by a test of the crate that owns its source, when
//! `JIG_BLESS` is set; without it the same test compares. This part runs those
//! tests, listed in `xtask/rules/generated.toml`.

use std::process::{Child, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::architecture;
use crate::finding::Finding;
use crate::workspace::Workspace;

/// Where the owners of derived files are listed.
const FILE: &str = "xtask/rules/generated.toml";

/// The variable that turns comparing into writing.
pub const BLESS: &str = "JIG_BLESS";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    #[serde(default)]
    owner: Vec<Owner>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Owner {
    /// The package whose tests write the files.
    package: String,
    /// What the names of those tests contain.
    filter: String,
    /// The files, from the root.
    files: Vec<String>,
}

/// Runs the tests that own derived files, and the one derived part that belongs
/// to this crate.
///
/// # Errors
///
/// When rules, manifests or documents cannot be read or cargo cannot be started.
pub fn check(workspace: &Workspace, bless: bool) -> Result<Vec<Finding>> {
    let rules: Rules = workspace.rules("generated.toml")?;
    let mut findings = architecture::check(workspace, bless)?;
    for owner in &rules.owner {
        ensure!(
            !owner.files.is_empty(),
            "{FILE}: {} owns no file",
            owner.package
        );
        findings.extend(owner.run(workspace, bless)?);
        for file in owner.files.iter().filter(|file| !workspace.has(file)) {
            let problem = format!("the derived file {file} is missing");
            findings.push(Finding::new("generated", FILE, problem, remedy()));
        }
    }
    Ok(findings)
}

fn remedy() -> String {
    format!("run `{BLESS}=1 cargo xtask generated` and look at the difference")
}

impl Owner {
    fn run(&self, workspace: &Workspace, bless: bool) -> Result<Option<Finding>> {
        let mut command = workspace.cargo();
        command
            .args(["test", "-p", &self.package, &self.filter])
            .stdout(Stdio::piped());
        if bless {
            command.env(BLESS, "1");
        } else {
            command.env_remove(BLESS);
        }
        let output = command
            .spawn()
            .and_then(Child::wait_with_output)
            .context("cannot run `cargo test`")?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let problem = if !output.status.success() {
            format!(
                "a derived file of {} is out of step:\n{}",
                self.package,
                printed.trim_end()
            )
        } else if tests_passed(&printed) == 0 {
            format!("no test of {} is named `{}`", self.package, self.filter)
        } else {
            return Ok(None);
        };
        Ok(Some(Finding::new(
            "generated",
            self.files.join(", "),
            problem,
            remedy(),
        )))
    }
}

/// The sum over the closing lines of `cargo test`.
fn tests_passed(printed: &str) -> usize {
    printed
        .lines()
        .filter_map(|line| line.strip_prefix("test result: ok. "))
        .filter_map(|rest| rest.split(' ').next()?.parse::<usize>().ok())
        .sum()
}
