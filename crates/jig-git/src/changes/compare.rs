//! What changed between two captures. Pure: it looks at nothing but its input.

use std::collections::BTreeSet;

use gix::bstr::ByteSlice;
use jig_protocol::repo_path::RepoPath;

use super::capture::Capture;
use super::entry::{Entry, EntryKind, tree_order};
use super::metadata::{MetadataChange, compare_metadata};

/// How a path changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// It was not there before.
    Added,
    /// It is no longer there.
    Removed,
    /// It is there and differs: content, kind, mode, target, owner, or number
    /// of hard links.
    Modified,
}

/// Why a changed path can be allowed to nobody (unless it is a build output).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hazard {
    /// A pipe, socket or device.
    Special,
    /// It lies in, or is, a repository of its own, or has a name that git
    /// refuses: `.git` in any spelling that some file system takes for it.
    DotGit,
    /// `.gitmodules` as a link.
    LinkedGitmodules,
    /// It lies where the base has a submodule.
    InSubmodule,
    /// It cannot be read.
    Unreadable,
}

/// One changed path.
#[derive(Debug, Clone)]
pub struct Change {
    /// The path.
    pub path: RepoPath,
    /// How it changed.
    pub kind: ChangeKind,
    /// What was there.
    pub before: Option<Entry>,
    /// What is there.
    pub after: Option<Entry>,
    /// Set when no allowlist can permit the change.
    pub hazard: Option<Hazard>,
}

impl Change {
    /// Whether only directories are concerned (an empty one appeared or
    /// vanished, or the mode of one changed).
    #[must_use]
    pub fn is_directory(&self) -> bool {
        let is = |entry: &Option<Entry>| {
            entry
                .as_ref()
                .is_none_or(|entry| entry.kind == EntryKind::Directory)
        };
        is(&self.before) && is(&self.after)
    }
}

/// Everything that differs between two captures.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Changed paths, a directory before what lies in it. Directories that
    /// appeared or vanished together with something in them are left out.
    pub paths: Vec<Change>,
    /// Directories that appeared or vanished together with what lies in them.
    pub implied_directories: Vec<RepoPath>,
    /// Files and links that were written and hold what they held before.
    pub transient: Vec<RepoPath>,
    /// What changed in the metadata of the attempt's repository and of the
    /// lender.
    pub metadata: Vec<MetadataChange>,
}

impl Changes {
    /// Whether nothing differs at all (transient writes aside).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.implied_directories.is_empty() && self.metadata.is_empty()
    }
}

/// Compares two captures of one tree.
pub(crate) fn compare(
    before: &Capture,
    after: &Capture,
    submodules: &BTreeSet<RepoPath>,
) -> Changes {
    let mut changes = Changes {
        metadata: compare_metadata(before.metadata(), after.metadata()),
        ..Changes::default()
    };
    let mut pairs = Vec::new();
    pair(
        before.entries(),
        after.entries(),
        &mut pairs,
        &mut changes.transient,
    );
    for (at, (old, new)) in pairs.iter().enumerate() {
        let Some(entry) = new.or(*old) else { continue };
        let kind = match (old, new) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            _ => ChangeKind::Modified,
        };
        if kind != ChangeKind::Modified
            && entry.kind == EntryKind::Directory
            && has_content(&pairs, at, entry, kind)
        {
            changes.implied_directories.push(entry.path.clone());
            continue;
        }
        changes.paths.push(Change {
            path: entry.path.clone(),
            kind,
            before: old.cloned(),
            after: new.cloned(),
            hazard: new.and_then(|entry| hazard(entry, submodules)),
        });
    }
    changes
}

type Pair<'a> = (Option<&'a Entry>, Option<&'a Entry>);

/// Merges two sorted lists into the pairs that differ.
fn pair<'a>(
    before: &'a [Entry],
    after: &'a [Entry],
    pairs: &mut Vec<Pair<'a>>,
    transient: &mut Vec<RepoPath>,
) {
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(l), Some(r)) => tree_order(l.path.as_bytes(), r.path.as_bytes()),
        };
        match order {
            std::cmp::Ordering::Less => pairs.push((old.next(), None)),
            std::cmp::Ordering::Greater => pairs.push((None, new.next())),
            std::cmp::Ordering::Equal => {
                let (Some(l), Some(r)) = (old.next(), new.next()) else {
                    return;
                };
                if !l.same(r) {
                    pairs.push((Some(l), Some(r)));
                } else if matches!(l.kind, EntryKind::File | EntryKind::Link)
                    && (l.stat.changed != r.stat.changed || l.stat.inode != r.stat.inode)
                {
                    transient.push(r.path.clone());
                }
            }
        }
    }
}

/// Whether the pair after `at` lies in the directory and changed the same way.
fn has_content(pairs: &[Pair<'_>], at: usize, directory: &Entry, kind: ChangeKind) -> bool {
    let Some((old, new)) = pairs.get(at + 1) else {
        return false;
    };
    let inside = if kind == ChangeKind::Added { new } else { old };
    inside.is_some_and(|entry| is_below(&entry.path, directory.path.as_bytes()))
}

/// Whether `path` lies somewhere in `directory`.
pub(crate) fn is_below(path: &RepoPath, directory: &[u8]) -> bool {
    path.as_bytes()
        .strip_prefix(directory)
        .is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// Why `entry` may be allowed to nobody.
fn hazard(entry: &Entry, submodules: &BTreeSet<RepoPath>) -> Option<Hazard> {
    if entry.path.components().any(is_dot_git) {
        return Some(Hazard::DotGit);
    }
    if entry.kind.is_special() {
        return Some(Hazard::Special);
    }
    if entry.kind == EntryKind::Unreadable {
        return Some(Hazard::Unreadable);
    }
    if entry.kind == EntryKind::Link && is_refused(entry.path.file_name(), true) {
        return Some(Hazard::LinkedGitmodules);
    }
    if submodules.iter().any(|submodule| {
        is_below(&entry.path, submodule.as_bytes())
            || (entry.path == *submodule && entry.kind != EntryKind::Directory)
    }) {
        return Some(Hazard::InSubmodule);
    }
    None
}

/// Whether some file system takes `name`, one part of a path, for `.git`.
#[must_use]
pub fn is_dot_git(name: &[u8]) -> bool {
    is_refused(name, false)
}

fn is_refused(name: &[u8], link: bool) -> bool {
    let options = gix::validate::path::component::Options {
        protect_windows: false,
        protect_hfs: true,
        protect_ntfs: true,
    };
    let mode = link.then_some(gix::validate::path::component::Mode::Symlink);
    gix::validate::path::component(name.as_bstr(), mode, options).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_dot_git_is_refused_and_nothing_else() {
        for name in [
            ".git",
            ".GIT",
            ".gIt",
            "git~1",
            ".git ",
            ".git.",
            ".git::$INDEX_ALLOCATION",
            ".g\u{200c}it",
        ] {
            assert!(is_dot_git(name.as_bytes()), "{name}");
        }
        for name in [
            ".github",
            ".gitignore",
            "git",
            "a.git",
            ".gitmodules",
            "CON",
            "a:b",
            "a\\b",
            "-n",
            "\u{1}",
        ] {
            assert!(!is_dot_git(name.as_bytes()), "{name}");
        }
        assert!(is_refused(b".gitmodules", true));
    }
}
