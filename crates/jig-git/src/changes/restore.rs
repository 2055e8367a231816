//! Bringing a tree back to what a capture recorded, and saying what is on disk.
//!
//! Every act goes through a handle of the parent directory that was opened
//! beneath the root without following a link; files appear by rename. Several
//! rounds, because what lies in a directory that could not be read shows only
//! once it can. The report comes from a capture taken afterwards, never from
//! what was attempted.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jig_protocol::repo_path::RepoPath;

use super::capture::{Capture, CaptureError};
use super::entry::{Entry, EntryKind, tree_order};
use super::guard::TreeGuard;
use super::rebuild::Round;

/// Which paths to restore.
#[derive(Debug, Clone, Copy)]
pub enum Selection<'a> {
    /// Everything that differs.
    All,
    /// These paths, and whatever lies below them.
    Only(&'a BTreeSet<RepoPath>),
}

impl Selection<'_> {
    pub(crate) fn to_owned_paths(self) -> Option<BTreeSet<RepoPath>> {
        match self {
            Self::All => None,
            Self::Only(paths) => Some(paths.clone()),
        }
    }
}

/// A selected path that is still not what it was.
#[derive(Debug, Clone)]
pub struct Remains {
    /// The path.
    pub path: RepoPath,
    /// Why, and what is there now.
    pub why: String,
}

/// What a restore did, by the capture that was taken after it.
#[derive(Debug, Clone)]
pub struct RestoreReport {
    /// Paths that are again what they were.
    pub restored: Vec<RepoPath>,
    /// Paths that are not.
    pub remaining: Vec<Remains>,
    /// The tree as it is now.
    pub capture: Capture,
}

impl RestoreReport {
    /// Whether every selected path is again what it was.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.remaining.is_empty()
    }
}

/// Why a restore could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The tree could not be captured afterwards.
    #[error("could not capture the tree after restoring it")]
    Capture(#[from] CaptureError),
}

/// Rounds until a tree that resists is reported as it is.
const ROUNDS: usize = 4;

pub(crate) fn restore(
    guard: &TreeGuard,
    to: &Capture,
    now: &Capture,
    what: Option<&BTreeSet<RepoPath>>,
) -> Result<RestoreReport, RestoreError> {
    let links = LinkGroups::of(to.entries());
    let mut touched = BTreeSet::new();
    let mut errors = BTreeMap::new();
    let mut capture = now.clone();
    let mut wrong = differing(to, &capture, &links, what);
    for _ in 0..ROUNDS {
        if wrong.is_empty() {
            break;
        }
        touched.extend(wrong.iter().cloned());
        errors = Round::new(guard, to, &capture, &links).apply(&wrong);
        capture = guard.capture_blocking(Some(&capture))?;
        let left = differing(to, &capture, &links, what);
        let stuck = left == wrong;
        wrong = left;
        if stuck {
            break;
        }
    }
    let restored = touched
        .into_iter()
        .filter(|path| !wrong.contains(path))
        .collect();
    let remaining = wrong
        .iter()
        .map(|path| remains(path, to, &capture, errors.get(path)))
        .collect();
    Ok(RestoreReport {
        restored,
        remaining,
        capture,
    })
}

/// Says what is on disk at a path that could not be restored.
fn remains(path: &RepoPath, to: &Capture, now: &Capture, error: Option<&String>) -> Remains {
    let mut why = match (now.get(path), to.get(path)) {
        (None, _) => "missing".to_owned(),
        (Some(now), None) => format!("still there ({})", now.kind.as_str()),
        (Some(now), Some(_)) => format!("still changed ({})", now.kind.as_str()),
    };
    if let Some(error) = error {
        why.push_str(": ");
        why.push_str(error);
    }
    Remains {
        path: path.clone(),
        why,
    }
}

/// Which entries of a capture are names of one file.
#[derive(Debug, Default)]
pub(crate) struct LinkGroups(HashMap<(u64, u64), Vec<RepoPath>>);

impl LinkGroups {
    fn of(entries: &[Entry]) -> Self {
        let mut groups: HashMap<(u64, u64), Vec<RepoPath>> = HashMap::new();
        for entry in entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::File && entry.links > 1)
        {
            groups
                .entry((entry.stat.device, entry.stat.inode))
                .or_default()
                .push(entry.path.clone());
        }
        Self(groups)
    }

    /// All names of the file, in tree order.
    pub(crate) fn names(&self, entry: &Entry) -> &[RepoPath] {
        self.0
            .get(&(entry.stat.device, entry.stat.inode))
            .map_or(&[], Vec::as_slice)
    }

    /// Whether the file has names outside the tree, which nothing here can give
    /// back.
    fn reaches_outside(&self, entry: &Entry) -> bool {
        entry.links > 1 && self.names(entry).len() as u64 != entry.links
    }

    /// Whether `now` is what `was` was, as far as can be restored.
    fn restored(&self, was: &Entry, now: &Entry) -> bool {
        was.same(now)
            || (self.reaches_outside(was)
                && was.same(&Entry {
                    links: was.links,
                    ..now.clone()
                }))
    }
}

/// The selected paths at which two captures differ.
fn differing(
    to: &Capture,
    now: &Capture,
    links: &LinkGroups,
    what: Option<&BTreeSet<RepoPath>>,
) -> BTreeSet<RepoPath> {
    let mut found = BTreeSet::new();
    let (mut old, mut new) = (
        to.entries().iter().peekable(),
        now.entries().iter().peekable(),
    );
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return found,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(l), Some(r)) => tree_order(l.path.as_bytes(), r.path.as_bytes()),
        };
        let (left, right) = match order {
            std::cmp::Ordering::Less => (old.next(), None),
            std::cmp::Ordering::Greater => (None, new.next()),
            std::cmp::Ordering::Equal => (old.next(), new.next()),
        };
        if left
            .zip(right)
            .is_some_and(|(left, right)| links.restored(left, right))
        {
            continue;
        }
        if let Some(entry) = left.or(right)
            && what.is_none_or(|paths| selected(&entry.path, paths))
        {
            found.insert(entry.path.clone());
        }
    }
}

/// Whether `path` or a directory it lies in is among `paths`.
fn selected(path: &RepoPath, paths: &BTreeSet<RepoPath>) -> bool {
    let mut at = Some(path.clone());
    while let Some(path) = at {
        if paths.contains(&path) {
            return true;
        }
        at = path.parent();
    }
    false
}
