//! The two comparisons, one after the other.

use anyhow::Result;

use super::layers::{Layers, UsedExceptions};
use super::manifests::Manifests;
use super::{arrows, reach};
use crate::finding::Finding;
use crate::workspace::Workspace;

/// Compares the workspace with `xtask/rules/layers.toml`.
///
/// # Errors
///
/// When the rules or the manifests cannot be read. A dependency tree that cannot
/// be read is a finding, so that what the manifests show is still reported.
pub fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let layers = Layers::read(workspace)?;
    let manifests = Manifests::read(workspace)?;
    let mut findings = Vec::new();
    let mut used = UsedExceptions::default();
    arrows::check(workspace, &layers, &manifests, &mut used, &mut findings)?;
    let complete = reach::check(workspace, &layers, &manifests, &mut used, &mut findings);
    if complete {
        findings.extend(used.unused(&layers));
    }
    Ok(findings)
}
