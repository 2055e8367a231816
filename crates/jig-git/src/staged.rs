//! What somebody put into an index that is in neither the tree nor `HEAD`.
//!
//! jig writes the index anew before it runs a command, so nothing of it is ever
//! committed; that somebody tried is worth knowing all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::index::State;
use jig_protocol::repo_path::RepoPath;

use crate::attempt_repo::AttemptRepo;
use crate::changes::{Capture, TreeGuard};
use crate::commit::{CommitError, write_tree};
use crate::tree::{blob_at, compare_trees};

/// A larger index is not looked into.
const INDEX_BYTES: u64 = 512 * 1024 * 1024;

/// An index file as it was at one moment. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexImage(Arc<Vec<u8>>);

impl AttemptRepo {
    /// The index as it is; empty when there is none, or none that jig would read.
    pub async fn index_image(&self) -> IndexImage {
        let path = self.git_dir().join("index");
        let bytes = tokio::task::spawn_blocking(move || read(&path)).await;
        IndexImage(Arc::new(bytes.ok().flatten().unwrap_or_default()))
    }

    /// Paths at which the index names a blob that it did not name in `before`
    /// and that neither `HEAD` nor the captured tree has there. None when the
    /// index cannot be parsed: git would not take anything from it either.
    ///
    /// # Errors
    /// When an object cannot be read or written.
    pub async fn planted(
        &self,
        guard: &TreeGuard,
        capture: &Capture,
        head: Option<ObjectId>,
        before: &IndexImage,
    ) -> Result<BTreeSet<RepoPath>, CommitError> {
        let after = self.index_image().await;
        if after == *before {
            return Ok(BTreeSet::new());
        }
        let before = before.clone();
        self.blocking(guard, capture, move |repo, guard, capture| {
            let kind = repo.objects().hash();
            let (Some(before), Some(after)) = (named(&before.0, kind), named(&after.0, kind))
            else {
                return Ok(BTreeSet::new());
            };
            let new: Vec<_> = after.difference(&before).collect();
            if new.is_empty() {
                return Ok(BTreeSet::new());
            }
            let objects = repo.objects();
            let tree = write_tree(&guard, &capture, head)?;
            let committed = match head {
                Some(head) => objects.commit_tree(&head)?,
                None => ObjectId::empty_tree(kind),
            };
            let differ = compare_trees((objects, committed), (objects, tree))?;
            let differ: BTreeMap<_, _> = differ
                .into_iter()
                .map(|change| (change.path, [change.left, change.right]))
                .collect();
            let mut planted = BTreeSet::new();
            for (path, id) in new {
                let is_there = match differ.get(path) {
                    Some(leaves) => leaves.iter().flatten().any(|(_, there)| there == id),
                    None => blob_at(objects, committed, path)? == Some(*id),
                };
                if !is_there {
                    planted.insert(path.clone());
                }
            }
            Ok(planted)
        })
        .await
    }
}

/// A plain file's bytes, links not followed.
fn read(path: &Path) -> Option<Vec<u8>> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).ok()?)
        .open(path)
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(INDEX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= INDEX_BYTES).then_some(bytes)
}

/// What an index names: paths with their blobs.
fn named(bytes: &[u8], kind: HashKind) -> Option<BTreeSet<(RepoPath, ObjectId)>> {
    if bytes.is_empty() {
        return Some(BTreeSet::new());
    }
    let moment = State::new(kind).timestamp();
    let options = gix::index::decode::Options::default();
    let (state, _) = State::from_bytes(bytes, moment, kind, options).ok()?;
    let entries = state.entries().iter();
    Some(
        entries
            .map(|entry| (RepoPath::from_bytes(entry.path(&state).to_vec()), entry.id))
            .collect(),
    )
}
