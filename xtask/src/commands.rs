//! The parts of the check that are runs of cargo; their output is theirs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::finding::Finding;
use crate::generated::BLESS;
use crate::workspace::Workspace;

/// What a part came to when nothing kept it from running.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran; nothing found means that it passed.
    Ran(Vec<Finding>),
    /// It could not run here, and that is no failure.
    Skipped(String),
}

/// Brings every package of the lock file onto this machine, for all platforms, so
/// that what follows can be asked offline.
pub fn fetch(workspace: &Workspace) -> Result<Outcome> {
    run(
        workspace,
        &["fetch", "--locked"],
        "commit the Cargo.lock that `cargo metadata` writes",
    )
}

/// `rustfmt` agrees with every file.
pub fn fmt(workspace: &Workspace) -> Result<Outcome> {
    run(
        workspace,
        &["fmt", "--all", "--", "--check"],
        "run `cargo fmt --all`",
    )
}

/// Clippy has nothing to say about any target.
pub fn clippy(workspace: &Workspace) -> Result<Outcome> {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    run(
        workspace,
        &arguments,
        "do what clippy says, or expect the lint with a reason",
    )
}

/// The vocabulary builds where there is no operating system at all.
pub fn wasm(workspace: &Workspace) -> Result<Outcome> {
    const TARGET: &str = "wasm32-unknown-unknown";
    let output = workspace
        .rustc()
        .args(["--print", "sysroot"])
        .output()
        .context("cannot start rustc")?;
    ensure!(output.status.success(), "`rustc --print sysroot` failed");
    let sysroot = String::from_utf8(output.stdout).context("the sysroot is not text")?;
    if !Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(TARGET)
        .exists()
    {
        return Ok(Outcome::Skipped(format!(
            "the target {TARGET} is not installed"
        )));
    }
    let arguments = [
        "build",
        "--package",
        "jig-protocol",
        "--target",
        TARGET,
        "--locked",
    ];
    run(
        workspace,
        &arguments,
        "keep input and output out of jig-protocol",
    )
}

/// Every stock definition is valid without so much as a warning.
pub fn definitions(workspace: &Workspace) -> Result<Outcome> {
    const DIRECTORY: &str = "examples/definitions/";
    let files: Vec<String> = workspace
        .files(&["yaml", "yml"])
        .unwrap_or_default()
        .into_iter()
        .filter(|path| path.starts_with(DIRECTORY))
        .collect();
    if files.is_empty() {
        bail!("no stock definition under {DIRECTORY}");
    }
    let mut arguments = vec![
        "run",
        "--quiet",
        "--locked",
        "--package",
        "jig-cli",
        "--",
        "def",
        "validate",
        "--strict",
    ];
    arguments.extend(files.iter().map(String::as_str));
    run(
        workspace,
        &arguments,
        "correct the definition, or the validator",
    )
}

/// All tests, those in the documentation included, and the examples.
pub fn test(workspace: &Workspace) -> Result<Outcome> {
    let mut findings = Vec::new();
    let remedy = "make the named test pass";
    let has_nextest = workspace.cargo_output(&["nextest", "--version"]).is_ok();
    // Benchmarks are no tests; doc tests are, and have a run of their own.
    let mut all = "test --workspace --locked --no-fail-fast --lib --bins --tests".to_owned();
    if has_nextest {
        // Most of what a test does is to wait for others.
        let threads = 2 * std::thread::available_parallelism()?.get();
        all = format!("nextest run --workspace --locked --no-fail-fast --test-threads={threads}");
    }
    let all: Vec<&str> = all.split(' ').collect();
    findings.extend(findings_of(workspace, &all, remedy)?);
    findings.extend(findings_of(
        workspace,
        &["test", "--workspace", "--locked", "--doc"],
        remedy,
    )?);
    for (package, example) in examples(workspace)? {
        let arguments = [
            "run",
            "--quiet",
            "--locked",
            "--package",
            &package,
            "--example",
            &example,
        ];
        findings.extend(findings_of(workspace, &arguments, "make the example run")?);
    }
    Ok(Outcome::Ran(findings))
}

/// The examples that lie under `crates/*/examples/`: each must run by itself.
fn examples(workspace: &Workspace) -> Result<Vec<(String, String)>> {
    let files = workspace.files(&["rs"])?;
    Ok(files
        .iter()
        .filter_map(|path| match *path.split('/').collect::<Vec<_>>() {
            ["crates", package, "examples", file] => {
                Some((package.to_owned(), file.trim_end_matches(".rs").to_owned()))
            }
            _ => None,
        })
        .collect())
}

/// The documentation builds without a warning.
pub fn docs(workspace: &Workspace) -> Result<Outcome> {
    let mut command = workspace.cargo();
    command
        .args(["doc", "--no-deps", "--workspace", "--locked"])
        .env("RUSTDOCFLAGS", "-D warnings");
    Ok(Outcome::Ran(
        finding_of(command, "correct the documentation")?
            .into_iter()
            .collect(),
    ))
}

/// Licences, sources and banned packages, without the network. Not part of the
/// check, which needs no tool beyond the toolchain; `.ci/run` installs it.
pub fn deny(workspace: &Workspace) -> Result<Outcome> {
    let arguments = [
        "deny",
        "--offline",
        "--locked",
        "check",
        "bans",
        "licenses",
        "sources",
    ];
    run(
        workspace,
        &arguments,
        "install cargo-deny if it is missing, else see deny.toml",
    )
}

fn run(workspace: &Workspace, arguments: &[&str], remedy: &str) -> Result<Outcome> {
    Ok(Outcome::Ran(findings_of(workspace, arguments, remedy)?))
}

fn findings_of(workspace: &Workspace, arguments: &[&str], remedy: &str) -> Result<Vec<Finding>> {
    let mut command = workspace.cargo();
    // Whoever blesses derived files does it in the part that compares them.
    command.args(arguments).env_remove(BLESS);
    Ok(finding_of(command, remedy)?.into_iter().collect())
}

fn finding_of(mut command: Command, remedy: &str) -> Result<Option<Finding>> {
    let words: Vec<String> = command
        .get_args()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let line = format!("cargo {}", words.join(" "));
    let status = command
        .status()
        .with_context(|| format!("cannot start `{line}`"))?;
    if status.success() {
        return Ok(None);
    }
    Ok(Some(Finding::new(
        "command",
        line,
        format!("it failed ({status})"),
        remedy,
    )))
}
