//! `cargo xtask check`: all house rules; `cargo xtask <part>`: one of them.
#![expect(
    clippy::print_stdout,
    reason = "this program talks to the person who runs it"
)]

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use xtask::check::{PARTS, Part, part};
use xtask::generated::BLESS;
use xtask::run::run;
use xtask::workspace::Workspace;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask has no parent")?;
    let workspace = Workspace::at(root);
    let parts: Vec<Part> = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
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
    let passed = run(&workspace, &parts, &mut std::io::stdout())?;
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn help() -> String {
    let mut text =
        String::from("usage: cargo xtask check | <part>\n\nparts of the check, in order:\n");
    let line = |part: &Part| format!("  {:<12} {}\n", part.name, part.about);
    text.extend(PARTS.iter().filter(|part| part.in_check).map(line));
    text.push_str("\nbeside it:\n");
    text.extend(PARTS.iter().filter(|part| !part.in_check).map(line));
    text
}
