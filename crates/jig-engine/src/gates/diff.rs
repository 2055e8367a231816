//! `diff_matches_claims`: the claimed change is the real one, both ways.

use std::collections::{BTreeMap, BTreeSet};

use jig_protocol::envelope::{Envelope, type_name};
use jig_protocol::outcome::Check;
use jig_protocol::repo_path::RepoPath;
use serde_json::Value;

use super::artifacts::claimed_path;

/// The field that holds the claims.
const FIELD: &str = "changed_files";

/// What one entry of a phase really changed so far: files and links whose
/// content, kind or mode differs from when it was entered. Ignored files, build
/// outputs and empty directories are left out, because no commit holds them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntryChanges {
    /// Each changed path, and whether it is gone now.
    pub paths: BTreeMap<RepoPath, Gone>,
}

/// Whether a changed path is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// It was removed.
    Yes,
    /// It was added or changed.
    No,
}

/// `changed_files` names exactly what changed.
pub(super) fn diff_matches_claims(
    envelope: &Envelope,
    changed: Result<&EntryChanges, &str>,
) -> Vec<Check> {
    let claims = match claims(envelope) {
        Ok(claims) => claims,
        Err(check) => return vec![check],
    };
    let changed = match changed {
        Ok(changed) => changed,
        Err(why) => {
            return vec![Check::fail(
                FIELD,
                format!("the real change is not known: {why}"),
            )];
        }
    };
    if claims.is_empty() && changed.paths.is_empty() {
        return vec![Check::pass(
            FIELD,
            "claims nothing changed, and nothing did",
        )];
    }
    let mut checks = Vec::new();
    let mut claimed = BTreeSet::new();
    for claim in claims {
        let path = claimed_path(claim);
        checks.push(judge_claim(claim, path.as_ref(), changed));
        claimed.extend(path);
    }
    checks.extend(
        changed
            .paths
            .iter()
            .filter(|(path, _)| !claimed.contains(*path))
            .map(|(path, gone)| {
                let what = match gone {
                    Gone::Yes => "was removed",
                    Gone::No => "was changed",
                };
                Check::fail(path.to_string(), format!("{what} but not claimed"))
            }),
    );
    checks
}

/// The claims as texts, or the one check that refuses them.
fn claims(envelope: &Envelope) -> Result<Vec<&str>, Check> {
    let list = match envelope.field(FIELD) {
        None => {
            return Err(Check::fail(
                FIELD,
                "is missing; list every file changed, added or removed, or [] for none",
            ));
        }
        Some(Value::Array(list)) => list,
        Some(other) => {
            return Err(Check::fail(
                FIELD,
                format!("must be a list of paths, not {}", type_name(other)),
            ));
        }
    };
    list.iter()
        .enumerate()
        .map(|(at, entry)| {
            entry.as_str().ok_or_else(|| {
                Check::fail(
                    format!("{FIELD}[{at}]"),
                    format!("must be a path, not {}", type_name(entry)),
                )
            })
        })
        .collect()
}

fn judge_claim(claim: &str, path: Option<&RepoPath>, changed: &EntryChanges) -> Check {
    let Some(path) = path else {
        return Check::fail(claim, "is not a path inside the work tree");
    };
    match changed.paths.get(path) {
        Some(Gone::Yes) => Check::pass(claim, "was removed"),
        Some(Gone::No) => Check::pass(claim, "was changed"),
        None => Check::fail(claim, "is claimed but did not change"),
    }
}
