//! `cargo xtask check`: all house rules; `cargo xtask <part>`: one of them.
#![expect(
    clippy::print_stdout,
    reason = "this program talks to the person who runs it"
)]

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use xtask::check::{PARTS, Part, Report, part};
use xtask::commands::Outcome;
use xtask::generated::BLESS;
use xtask::workspace::Workspace;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask has no parent")?;
    let workspace = Workspace::at(root);
    let parts = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["check"] => PARTS.into_iter().filter(|part| part.in_check).collect(),
        ["generated"] if std::env::var_os(BLESS).is_some() => part("bless").into_iter().collect(),
        [name] if part(name).is_some() => part(name).into_iter().collect(),
        ["help" | "--help" | "-h"] => {
            print!("{}", help());
            return Ok(ExitCode::SUCCESS);
        }
        _ => {
            print!("{}", help());
            return Ok(ExitCode::from(2));
        }
    };
    Ok(run(&workspace, parts))
}

/// Runs all parts, whatever they find, and says at the end what failed.
fn run(workspace: &Workspace, parts: Vec<Part>) -> ExitCode {
    let mut reports = Vec::new();
    for part in parts {
        println!("== {}: {}", part.name, part.about);
        let report = part.run(workspace);
        println!(
            "== {}: {} in {:.1} s",
            part.name,
            verdict(&report),
            report.elapsed.as_secs_f64()
        );
        reports.push(report);
    }
    let failed: Vec<&Report> = reports.iter().filter(|report| !report.passed()).collect();
    for report in &failed {
        println!("\n{} failed:", report.part.name);
        match &report.outcome {
            Ok(Outcome::Ran(findings)) => findings.iter().for_each(|f| println!("  {f}")),
            Ok(Outcome::Skipped(_)) => {}
            Err(error) => println!("  it could not look: {error:#}"),
        }
    }
    let names: Vec<&str> = failed.iter().map(|report| report.part.name).collect();
    if names.is_empty() {
        println!(
            "\nall passed: {}",
            reports
                .iter()
                .map(|r| r.part.name)
                .collect::<Vec<_>>()
                .join(", ")
        );
        ExitCode::SUCCESS
    } else {
        println!(
            "\n{} of {} parts failed: {}",
            names.len(),
            reports.len(),
            names.join(", ")
        );
        ExitCode::FAILURE
    }
}

fn verdict(report: &Report) -> String {
    match &report.outcome {
        Ok(Outcome::Ran(findings)) if findings.is_empty() => "passed".to_owned(),
        Ok(Outcome::Ran(findings)) => format!("FAILED with {} finding(s)", findings.len()),
        Ok(Outcome::Skipped(why)) => format!("skipped, {why}"),
        Err(_) => "FAILED, could not look".to_owned(),
    }
}

fn help() -> String {
    let mut text = String::from(
        "usage: cargo xtask check | <part>\n\n  check        all parts but the last two\n",
    );
    for part in PARTS {
        text.push_str(&format!("  {:<12} {}\n", part.name, part.about));
    }
    text
}
