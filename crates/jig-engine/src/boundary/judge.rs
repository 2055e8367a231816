//! Which changes are permitted: a pure decision over the differences of two
//! captures.

use std::collections::{BTreeMap, BTreeSet};

use jig_protocol::definition::{DirGrant, PathPattern};
use jig_protocol::repo_path::RepoPath;

use super::steering;

/// What kind of thing a path is, as far as judging cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A directory; judged only when it is empty or its own mode changed.
    Directory,
    /// A directory that is a repository of its own, or what looks like one.
    Repository,
    /// A FIFO, a socket, a device.
    Special,
    /// Something that could not be read.
    Unreadable,
}

/// One path that differs between the captures before and after an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The path.
    pub path: RepoPath,
    /// What was there before; `None` when nothing was.
    pub before: Option<Kind>,
    /// What is there now; `None` when nothing is.
    pub after: Option<Kind>,
    /// Whether the base commit tracks this path, or anything below it.
    pub tracked_in_base: bool,
    /// Whether the ignore rules of the base commit leave it out.
    pub ignored: bool,
    /// Whether git refuses the name in a tree (any spelling of `.git`).
    pub refused_name: bool,
    /// Whether the content is the same and only its write left a mark.
    pub transient: bool,
}

/// Whose changes are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgeKind {
    /// An agent: what it may not write is a breach.
    Agent,
    /// A command of the operator: metadata it changed is put back instead.
    Code,
}

/// The rules an entry's changes are judged by.
#[derive(Debug, Clone, Copy)]
pub struct Judge<'a> {
    /// The role, or the phase of a command without one; named in the records.
    pub role: &'a str,
    /// What may be written; `None` is anything, empty is nothing.
    pub writes: Option<&'a [PathPattern]>,
    /// Where builds may write, whoever runs them.
    pub build_outputs: &'a [DirGrant],
    /// Whether the attempt branch may be moved forward.
    pub commits: bool,
    /// Whose changes they are.
    pub kind: JudgeKind,
}

impl Judge<'_> {
    /// Whether nothing may be written at all.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.writes.is_some_and(<[_]>::is_empty)
    }
}

/// What was decided about a set of differences.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judgement {
    /// Permitted changes that a commit can hold.
    pub touched: Vec<RepoPath>,
    /// Changes inside a build output grant.
    pub outputs: Vec<RepoPath>,
    /// Permitted changes of ignored paths.
    pub ignored: Vec<RepoPath>,
    /// Written and written back.
    pub transient: Vec<RepoPath>,
    /// Not permitted; to be undone.
    pub breached: Vec<RepoPath>,
    /// Directories that came or went with nothing but breached paths in them:
    /// to be undone with these, but no breach of their own.
    pub frames: Vec<RepoPath>,
}

/// Decides about every difference.
///
/// In this order: a build output where the base tracks nothing; a kind or name
/// that no commit may hold; files that steer the next agent; the allowlist.
#[must_use]
pub fn judge(differences: &[Difference], rules: &Judge<'_>) -> Judgement {
    let mut judgement = Judgement::default();
    // Every directory with something below it that differs, and whether
    // anything of that is permitted.
    let mut holding: BTreeMap<RepoPath, bool> = BTreeMap::new();
    let (frames, leaves): (Vec<_>, Vec<_>) = split_frames(differences);
    for difference in leaves {
        let decision = decide(difference, rules);
        let list = match decision {
            Decision::Output => &mut judgement.outputs,
            Decision::Permitted if difference.ignored => &mut judgement.ignored,
            Decision::Permitted => &mut judgement.touched,
            Decision::Transient => &mut judgement.transient,
            Decision::Breach => &mut judgement.breached,
        };
        list.push(difference.path.clone());
        let mut above = difference.path.parent();
        while let Some(dir) = above {
            above = dir.parent();
            *holding.entry(dir).or_default() |= decision != Decision::Breach;
        }
    }
    judgement.frames = frames
        .into_iter()
        .filter(|frame| holding.get(&frame.path) == Some(&false))
        .map(|frame| frame.path.clone())
        .collect();
    judgement
}

/// Sets directories apart that came or went together with what they hold; what
/// they hold is judged in their place.
fn split_frames(differences: &[Difference]) -> (Vec<&Difference>, Vec<&Difference>) {
    let mut filled_before: BTreeSet<RepoPath> = BTreeSet::new();
    let mut filled_after: BTreeSet<RepoPath> = BTreeSet::new();
    for difference in differences {
        if let Some(dir) = difference.path.parent() {
            if difference.before.is_some() {
                filled_before.insert(dir.clone());
            }
            if difference.after.is_some() {
                filled_after.insert(dir);
            }
        }
    }
    differences.iter().partition(|difference| {
        let path = &difference.path;
        match (difference.before, difference.after) {
            (None, Some(Kind::Directory)) => filled_after.contains(path),
            (Some(Kind::Directory), None) => filled_before.contains(path),
            _ => false,
        }
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Output,
    Permitted,
    Transient,
    Breach,
}

fn decide(difference: &Difference, rules: &Judge<'_>) -> Decision {
    let path = &difference.path;
    let granted = |grant: &DirGrant| grant.covers(path);
    if !difference.tracked_in_base && rules.build_outputs.iter().any(granted) {
        return Decision::Output;
    }
    if difference.transient {
        return if rules.is_read_only() {
            Decision::Breach
        } else {
            Decision::Transient
        };
    }
    let forbidden = matches!(
        difference.after,
        Some(Kind::Repository | Kind::Special | Kind::Unreadable)
    );
    if forbidden || difference.refused_name {
        return Decision::Breach;
    }
    let permitted = match steering::steers(path, difference.after == Some(Kind::Directory)) {
        Some(key) => rules.writes.is_some_and(|writes| {
            writes
                .iter()
                .any(|pattern| pattern.matches(path) && steering::names(pattern, key))
        }),
        None => allows(rules.writes, difference),
    };
    if permitted {
        Decision::Permitted
    } else {
        Decision::Breach
    }
}

fn allows(writes: Option<&[PathPattern]>, difference: &Difference) -> bool {
    let Some(writes) = writes else { return true };
    // An empty directory on the way to what may be written is no harm.
    let empty_dir = matches!(
        (difference.before, difference.after),
        (None, Some(Kind::Directory)) | (Some(Kind::Directory), None)
    );
    writes.iter().any(|pattern| {
        pattern.matches(&difference.path)
            || empty_dir && leads_to(pattern.literal_dir(), &difference.path)
    })
}

/// Whether `dir` is `path` or lies below it.
fn leads_to(dir: &str, path: &RepoPath) -> bool {
    dir.as_bytes()
        .strip_prefix(path.as_bytes())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
