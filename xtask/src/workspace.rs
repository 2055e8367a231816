//! The workspace under examination: its root, its files, and cargo run in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;

/// A cargo workspace on disk.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    cargo: PathBuf,
    rustc: PathBuf,
    quiet: bool,
}

impl Workspace {
    /// The workspace whose root manifest lies in `root`, examined with the cargo
    /// that runs this program (or the one on the path).
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let cargo = std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from);
        let rustc = std::env::var_os("RUSTC").map_or_else(|| "rustc".into(), PathBuf::from);
        Self {
            root: root.into(),
            cargo,
            rustc,
            quiet: false,
        }
    }

    /// The same workspace, examined with another cargo program.
    #[must_use]
    pub fn with_cargo(mut self, cargo: impl Into<PathBuf>) -> Self {
        self.cargo = cargo.into();
        self
    }

    /// The same workspace, examined with another compiler.
    #[must_use]
    pub fn with_rustc(mut self, rustc: impl Into<PathBuf>) -> Self {
        self.rustc = rustc.into();
        self
    }

    /// The same workspace, examined without showing what cargo prints.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// The compiler, to be asked what it can do.
    pub fn rustc(&self) -> Command {
        let mut command = Command::new(&self.rustc);
        command.current_dir(&self.root);
        command
    }

    /// The directory of the root manifest.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A cargo run in the root that sees nothing of the run that started us.
    ///
    /// `cargo run` describes the running package in the environment; handed on,
    /// that makes build scripts of a nested run believe that something changed.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(&self.cargo);
        command.current_dir(&self.root);
        if self.quiet {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command
    }

    /// Runs cargo with `arguments` and returns what it printed; a failure is an
    /// error that carries cargo's own words.
    pub fn cargo_output(&self, arguments: &[&str]) -> Result<String> {
        let Output {
            status,
            stdout,
            stderr,
        } = self
            .cargo()
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .with_context(|| format!("cannot start `cargo {}`", arguments.join(" ")))?;
        if !status.success() {
            let said = String::from_utf8_lossy(&stderr);
            bail!(
                "`cargo {}` failed ({status}):\n{}",
                arguments.join(" "),
                said.trim_end()
            );
        }
        String::from_utf8(stdout).with_context(|| {
            format!(
                "`cargo {}` printed bytes that are not text",
                arguments.join(" ")
            )
        })
    }

    /// Reads a text file by its path from the root.
    pub fn read(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.root.join(path)).with_context(|| format!("cannot read {path}"))
    }

    /// Reads one of the rule files under `xtask/rules/`.
    pub fn rules<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let path = format!("xtask/rules/{name}");
        toml::from_str(&self.read(&path)?).with_context(|| format!("{path} is not understood"))
    }

    /// Whether a path from the root exists.
    pub fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// Every file with one of `extensions`, as sorted paths from the root.
    ///
    /// Build output, hidden directories and links are not entered. A root without
    /// a single such file is an error: it means that we look in the wrong place.
    pub fn files(&self, extensions: &[&str]) -> Result<Vec<String>> {
        let mut found = BTreeSet::new();
        walk(&self.root, "", extensions, &mut found)?;
        ensure!(
            !found.is_empty(),
            "no {} file under {}",
            extensions.join("/"),
            self.root.display()
        );
        Ok(found.into_iter().collect())
    }

    /// The names of the directories under `crates/` that hold a manifest.
    pub fn crate_directories(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.root.join("crates")).context("cannot list crates/")? {
            let entry = entry.context("cannot list crates/")?;
            if entry.path().join("Cargo.toml").is_file() {
                names.push(utf8_name(&entry)?);
            }
        }
        names.sort();
        Ok(names)
    }
}

fn walk(root: &Path, below: &str, extensions: &[&str], found: &mut BTreeSet<String>) -> Result<()> {
    let directory = root.join(below);
    let entries =
        fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list {}", directory.display()))?;
        let name = utf8_name(&entry)?;
        let path = if below.is_empty() {
            name.clone()
        } else {
            format!("{below}/{name}")
        };
        let kind = entry
            .file_type()
            .with_context(|| format!("cannot examine {path}"))?;
        if kind.is_dir() {
            let skipped = name.starts_with('.')
                || entry.path().join("CACHEDIR.TAG").exists()
                || (below.is_empty() && name == "target");
            if !skipped {
                walk(root, &path, extensions, found)?;
            }
        } else if kind.is_file()
            && name
                .rsplit_once('.')
                .is_some_and(|(_, end)| extensions.contains(&end))
        {
            found.insert(path);
        }
    }
    Ok(())
}

fn utf8_name(entry: &fs::DirEntry) -> Result<String> {
    entry
        .file_name()
        .into_string()
        .map_err(|name| anyhow::anyhow!("file name is not text: {}", name.display()))
}
