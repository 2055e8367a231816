//! The part of `docs/ARCHITECTURE.md` that is derived: crates and arrows.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

use crate::boundary::{ArrowKind, Manifests, Member};
use crate::finding::Finding;
use crate::workspace::Workspace;

/// The document that holds the derived part.
pub const FILE: &str = "docs/ARCHITECTURE.md";
const BEGIN: &str = "<!-- generated:crates -->";
const END: &str = "<!-- /generated -->";

/// Compares the derived part with the manifests; with `bless` writes it instead.
///
/// # Errors
///
/// When the manifests or the document cannot be read, or the marks are missing.
pub fn check(workspace: &Workspace, bless: bool) -> Result<Vec<Finding>> {
    let manifests = Manifests::read(workspace)?;
    let text = workspace.read(FILE)?;
    let (before, rest) = text
        .split_once(BEGIN)
        .with_context(|| format!("{FILE} has no {BEGIN}"))?;
    let (present, after) = rest
        .split_once(END)
        .with_context(|| format!("{FILE} has no {END}"))?;
    ensure!(!after.contains(BEGIN), "{FILE} has {BEGIN} twice");
    let wanted = render(&manifests);
    if present == wanted {
        return Ok(Vec::new());
    }
    if bless {
        std::fs::write(
            workspace.root().join(FILE),
            format!("{before}{BEGIN}{wanted}{END}{after}"),
        )
        .with_context(|| format!("cannot write {FILE}"))?;
        return Ok(Vec::new());
    }
    let line = before.lines().count();
    Ok(vec![Finding::at(
        "generated/architecture",
        FILE,
        line,
        "the table of crates and arrows is not what the manifests say",
        "run `JIG_BLESS=1 cargo xtask generated` and look at the difference",
    )])
}

/// The table of crates, then a graph of the product arrows.
fn render(manifests: &Manifests) -> String {
    let mut out = String::from(
        "\n\n| Crate | Its duty | Uses, of ours | Its tests use, of ours |\n|---|---|---|---|\n",
    );
    for member in &manifests.members {
        let product = ours(manifests, member, |kind| kind != ArrowKind::Dev);
        let mut tests = ours(manifests, member, |kind| kind == ArrowKind::Dev);
        tests.retain(|name| !product.contains(name));
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            member.name,
            member.description.as_deref().unwrap_or(""),
            list(&product),
            list(&tests)
        );
    }
    out.push_str("\n```mermaid\ngraph TD\n");
    for member in &manifests.members {
        for to in ours(manifests, member, |kind| kind != ArrowKind::Dev) {
            let _ = writeln!(out, "  {} --> {to}", member.name);
        }
    }
    out.push_str("```\n\n");
    out
}

fn ours<'a>(
    manifests: &Manifests,
    member: &'a Member,
    wanted: fn(ArrowKind) -> bool,
) -> Vec<&'a str> {
    let mut names: Vec<&str> = member
        .arrows
        .iter()
        .filter(|arrow| wanted(arrow.kind) && manifests.is_ours(&arrow.to))
        .map(|arrow| arrow.to.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn list(names: &[&str]) -> String {
    if names.is_empty() {
        return "—".to_owned();
    }
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
