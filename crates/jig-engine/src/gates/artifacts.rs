//! `artifacts_exist` and `files_non_empty`: the files an envelope claims.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use jig_git::changes::is_dot_git;
use jig_protocol::envelope::Envelope;
use jig_protocol::outcome::Check;
use jig_protocol::repo_path::RepoPath;

use crate::beneath::{Found, look_inside, os_path};

/// What the note of a refused claim says.
const OUTSIDE: &str = "is not a path inside the work tree";
/// What it says of a claim to git's own files.
const OF_GIT: &str = "is git's own and never an artifact";

/// Every claimed artifact is there.
pub(super) fn artifacts_exist(tree: &Path, envelope: &Envelope) -> Vec<Check> {
    over_claims(envelope, |claim| {
        let Some(path) = claimed_path(claim) else {
            return Some(Check::fail(claim, OUTSIDE));
        };
        if is_of_git(tree, &path) {
            return Some(Check::fail(claim, OF_GIT));
        }
        Some(match look_inside(tree, os_path(&path)) {
            Ok(Found::File(size)) => Check::pass(claim, format!("exists ({})", size_text(size))),
            Ok(Found::Directory) => Check::pass(claim, "exists (directory)"),
            Ok(Found::Special) => Check::fail(claim, "is neither a file nor a directory"),
            Ok(Found::Missing) => Check::fail(claim, "does not exist"),
            Ok(Found::Outside) => Check::fail(claim, "is a link that leads out of the work tree"),
            Err(error) => Check::fail(claim, format!("cannot be looked at: {error}")),
        })
    })
}

/// No claimed artifact is an empty file. What is missing, outside or no file is
/// the other gate's business; when nothing is left to check, that is said.
pub(super) fn files_non_empty(tree: &Path, envelope: &Envelope) -> Vec<Check> {
    over_claims(envelope, |claim| {
        let path = claimed_path(claim).filter(|path| !is_of_git(tree, path))?;
        match look_inside(tree, os_path(&path)) {
            Ok(Found::File(0)) => Some(Check::fail(claim, "is empty")),
            Ok(Found::File(size)) => Some(Check::pass(claim, size_text(size))),
            Ok(_) => None,
            Err(error) => Some(Check::fail(claim, format!("cannot be looked at: {error}"))),
        }
    })
}

/// One check per claim. An absent list fails: a phase that is gated on its
/// artifacts must say that it has none.
fn over_claims(envelope: &Envelope, check: impl Fn(&str) -> Option<Check>) -> Vec<Check> {
    match envelope.artifacts.as_deref() {
        None => vec![Check::fail(
            "artifacts",
            "is missing; list the files made or changed, or [] for none",
        )],
        Some([]) => vec![Check::pass("artifacts", "claims none")],
        Some(claims) => claims.iter().filter_map(|claim| check(claim)).collect(),
    }
}

/// A path as an agent wrote it: plain, or in the quoted form that jig itself
/// shows for names a JSON string cannot hold.
pub(super) fn claimed_path(claim: &str) -> Option<RepoPath> {
    if !claim.starts_with('"') {
        return RepoPath::from_claim(claim);
    }
    let path = RepoPath::from_json_form(claim)?;
    let bytes = path.as_bytes();
    let inside = !bytes.is_empty()
        && !bytes.contains(&0)
        && path
            .components()
            .all(|part| !matches!(part, b"" | b"." | b".."));
    inside.then_some(path)
}

/// Whether a claim names `.git` or something in it, in any spelling that a file
/// system takes for it, or leads there over links.
fn is_of_git(tree: &Path, path: &RepoPath) -> bool {
    if path.components().any(is_dot_git) {
        return true;
    }
    let real = |path: &Path| path.canonicalize();
    // What does not resolve, or resolves elsewhere, is refused by the look at it.
    let (Ok(root), Ok(target)) = (real(tree), real(&tree.join(os_path(path)))) else {
        return false;
    };
    target.strip_prefix(root).is_ok_and(|inside| {
        inside
            .components()
            .any(|part| is_dot_git(part.as_os_str().as_bytes()))
    })
}

/// Bytes below 1024, else kilobytes with one decimal.
fn size_text(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let tenths = bytes.saturating_mul(10) / 1024;
    format!("{}.{}KB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_that_leave_the_tree_are_no_paths() {
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "\"../x\"",
            "\"/x\"",
            "\"a//b\"",
            "\"\"",
            "\"unclosed",
        ] {
            assert_eq!(claimed_path(bad), None, "{bad}");
        }
        assert_eq!(claimed_path("./a/b"), Some(RepoPath::from("a/b")));
        assert_eq!(
            claimed_path("\"a\\nb\\377\""),
            Some(RepoPath::from_bytes(b"a\nb\xff".to_vec()))
        );
    }

    #[test]
    fn sizes_read_as_people_write_them() {
        assert_eq!(size_text(0), "0B");
        assert_eq!(size_text(1023), "1023B");
        assert_eq!(size_text(1024), "1.0KB");
        assert_eq!(size_text(1587), "1.5KB");
    }
}
