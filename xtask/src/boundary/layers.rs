//! `xtask/rules/layers.toml` as data.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use serde::Deserialize;

use crate::finding::Finding;
use crate::workspace::Workspace;

/// Where the rules are kept; named in every finding about them.
pub(crate) const FILE: &str = "xtask/rules/layers.toml";

/// All of `layers.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layers {
    /// Crates that may only ever be dev-dependencies, and may be that everywhere.
    #[serde(default)]
    pub dev_only: Vec<String>,
    /// One block per crate of the workspace.
    #[serde(rename = "crate")]
    pub crates: Vec<CrateRules>,
    /// What is granted against the rules, each with its reason.
    #[serde(default, rename = "exception")]
    pub exceptions: Vec<Exception>,
}

/// What one crate is for, may use and must never meet.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrateRules {
    /// The package name.
    pub name: String,
    /// One sentence; the same as the `description` in the crate's manifest.
    pub duty: String,
    /// Crates of ours that it uses (normal and build dependencies). Each must be in use.
    #[serde(default)]
    pub may_use: Vec<String>,
    /// Crates of ours that its tests use beyond `may_use` and `dev_only`. Each must be in use.
    #[serde(default)]
    pub dev_may_use: Vec<String>,
    /// Packages that may not appear anywhere below it.
    #[serde(default)]
    pub never_reach: Vec<String>,
    /// Packages that its manifest may not name, in whatever section.
    #[serde(default)]
    pub never_name: Vec<String>,
    /// Features, as `package/feature`, that may not be on anywhere below it.
    #[serde(default)]
    pub never_feature: Vec<String>,
}

/// One grant against the rules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The crate that is granted something.
    pub from: String,
    /// What it is granted: a package, or `package/feature`.
    pub to: String,
    /// Which rule is lifted.
    pub kind: ExceptionKind,
    /// Why.
    pub reason: String,
}

/// The rule that an exception lifts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExceptionKind {
    /// A normal or build arrow between two of ours.
    Use,
    /// A dev arrow between two of ours.
    DevUse,
    /// `never_reach`.
    Reach,
    /// `never_name`.
    Name,
    /// `never_feature`.
    Feature,
}

impl Layers {
    pub(crate) fn read(workspace: &Workspace) -> Result<Self> {
        let layers: Self = workspace.rules("layers.toml")?;
        layers.validate()?;
        Ok(layers)
    }

    /// The block of a crate.
    pub fn of(&self, name: &str) -> Option<&CrateRules> {
        self.crates.iter().find(|rules| rules.name == name)
    }

    fn validate(&self) -> Result<()> {
        ensure!(!self.crates.is_empty(), "{FILE} holds no crate");
        let mut seen = BTreeSet::new();
        for rules in &self.crates {
            ensure!(
                seen.insert(&rules.name),
                "{FILE} holds two blocks for {}",
                rules.name
            );
            for feature in &rules.never_feature {
                ensure!(
                    feature
                        .split_once('/')
                        .is_some_and(|(p, f)| !p.is_empty() && !f.is_empty()),
                    "{FILE}: `{feature}` in never_feature of {} is not `package/feature`",
                    rules.name
                );
            }
        }
        for exception in &self.exceptions {
            if exception.reason.trim().is_empty() {
                bail!(
                    "{FILE}: the exception {} -> {} has no reason",
                    exception.from,
                    exception.to
                );
            }
        }
        Ok(())
    }
}

/// Which exceptions were needed; the others must go.
#[derive(Debug, Default)]
pub(crate) struct UsedExceptions(BTreeSet<usize>);

impl UsedExceptions {
    /// Whether the rules grant `from` the thing; remembers that it was asked for.
    pub(crate) fn grants(
        &mut self,
        layers: &Layers,
        kind: ExceptionKind,
        from: &str,
        to: &str,
    ) -> bool {
        let granted = layers
            .exceptions
            .iter()
            .position(|e| e.kind == kind && e.from == from && e.to == to);
        self.0.extend(granted);
        granted.is_some()
    }

    pub(crate) fn unused(&self, layers: &Layers) -> Vec<Finding> {
        layers
            .exceptions
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.0.contains(index))
            .map(|(_, e)| {
                Finding::new(
                    "boundary/exception",
                    FILE,
                    format!(
                        "the exception {} -> {} ({:?}) is not needed",
                        e.from, e.to, e.kind
                    ),
                    "remove its block",
                )
            })
            .collect()
    }
}
