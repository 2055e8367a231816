//! Runs parts and says what they came to.

use std::io::Write;

use anyhow::Result;

use crate::check::{Part, Report};
use crate::commands::Outcome;
use crate::workspace::Workspace;

/// Runs all parts, whatever they find, and reports every failure at the end.
/// Returns whether all of them passed.
///
/// # Errors
///
/// When `out` cannot be written.
pub fn run(workspace: &Workspace, parts: &[Part], out: &mut impl Write) -> Result<bool> {
    let mut reports = Vec::new();
    for part in parts {
        writeln!(out, "== {}: {}", part.name, part.about)?;
        out.flush()?;
        let report = part.run(workspace);
        let seconds = report.elapsed.as_secs_f64();
        writeln!(
            out,
            "== {}: {} in {seconds:.1} s",
            part.name,
            verdict(&report)
        )?;
        reports.push(report);
    }
    let (passed, failed): (Vec<_>, Vec<_>) = reports.iter().partition(|report| report.passed());
    for report in &failed {
        writeln!(out, "\n{} failed:", report.part.name)?;
        match &report.outcome {
            Ok(Outcome::Ran(findings)) => {
                for finding in findings {
                    writeln!(out, "  {finding}")?;
                }
            }
            Ok(Outcome::Skipped(_)) => {}
            Err(error) => writeln!(out, "  it could not look: {error:#}")?,
        }
    }
    if failed.is_empty() {
        writeln!(out, "\nall passed: {}", names(&passed))?;
    } else {
        let (few, all) = (failed.len(), reports.len());
        writeln!(out, "\n{few} of {all} parts failed: {}", names(&failed))?;
    }
    Ok(failed.is_empty())
}

fn names(reports: &[&Report]) -> String {
    let names: Vec<&str> = reports.iter().map(|report| report.part.name).collect();
    names.join(", ")
}

fn verdict(report: &Report) -> String {
    match &report.outcome {
        Ok(Outcome::Ran(findings)) if findings.is_empty() => "passed".to_owned(),
        Ok(Outcome::Ran(findings)) => format!("FAILED with {} finding(s)", findings.len()),
        Ok(Outcome::Skipped(why)) => format!("skipped, {why}"),
        Err(_) => "FAILED, could not look".to_owned(),
    }
}
