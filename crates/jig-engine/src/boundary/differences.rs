//! What two captures differ in, with what judging has to know about it.

use std::collections::BTreeMap;

use jig_git::changes::{Capture, Change, Changes, EntryKind as Found};
use jig_protocol::repo_path::RepoPath;

use super::entries::Boundary;
use super::judge::{Difference, Kind, is_output};
use crate::gates::Gone;

impl Boundary {
    pub(super) fn differences(&self, changes: &Changes) -> Vec<Difference> {
        let mut differences: Vec<Difference> = changes
            .paths
            .iter()
            .map(|change| self.difference(change))
            .collect();
        differences.extend(changes.transient.iter().map(|path| Difference {
            path: path.clone(),
            before: Some(Kind::File),
            after: Some(Kind::File),
            tracked_in_base: self.guard.is_tracked_in_base(path),
            ignored: self.guard.is_ignored(path, false),
            hazard: false,
            transient: true,
        }));
        differences
    }

    pub(super) fn difference(&self, change: &Change) -> Difference {
        let kind = |found: Found| match found {
            Found::File => Kind::File,
            Found::Link => Kind::Link,
            Found::Directory => Kind::Directory,
            Found::Fifo | Found::Socket | Found::Device | Found::Unreadable => Kind::Other,
        };
        let (before, after) = (
            change.before.as_ref().map(|entry| kind(entry.kind)),
            change.after.as_ref().map(|entry| kind(entry.kind)),
        );
        let is_directory = after.or(before) == Some(Kind::Directory);
        Difference {
            tracked_in_base: self.guard.is_tracked_in_base(&change.path),
            ignored: self.guard.is_ignored(&change.path, is_directory),
            path: change.path.clone(),
            before,
            after,
            hazard: change.hazard.is_some(),
            transient: false,
        }
    }

    pub(super) fn is_output(&self, difference: &Difference) -> bool {
        !difference.tracked_in_base && is_output(difference, &self.build_outputs)
    }

    /// Changed files and links that a commit can hold.
    pub(super) fn committable(&self, from: &Capture, to: &Capture) -> BTreeMap<RepoPath, Gone> {
        let changes = self.guard.compare(from, to);
        let holds = |kind: Option<Kind>| matches!(kind, Some(Kind::File | Kind::Link));
        self.differences(&changes)
            .into_iter()
            .filter(|difference| {
                (holds(difference.before) || holds(difference.after))
                    && !difference.transient
                    && !difference.ignored
                    && !self.is_output(difference)
            })
            .map(|difference| {
                let gone = if holds(difference.after) {
                    Gone::No
                } else {
                    Gone::Yes
                };
                (difference.path, gone)
            })
            .collect()
    }
}
