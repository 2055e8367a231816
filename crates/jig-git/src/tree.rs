//! Trees as git stores them: building them from paths, and comparing two.

use std::collections::BTreeMap;

use gix::ObjectId;
use gix::objs::tree::EntryKind as TreeKind;
use gix::objs::{Kind, TreeRef};
use gix::odb::HandleArc;
use jig_protocol::repo_path::RepoPath;

use crate::objects::{ObjectError, Objects};
use crate::pinned_tree::PinnedKind;

/// What a tree has at a path.
pub(crate) type Leaf = (PinnedKind, ObjectId);

/// A tree in the making.
#[derive(Debug, Default)]
pub(crate) struct TreeBuilder {
    root: BTreeMap<Vec<u8>, Item>,
}

#[derive(Debug)]
enum Item {
    Leaf(Leaf),
    Directory(BTreeMap<Vec<u8>, Item>),
}

impl TreeBuilder {
    /// Adds a path, unless something else is in its way.
    pub(crate) fn insert(&mut self, path: &RepoPath, leaf: Leaf) {
        let mut at = &mut self.root;
        let mut parts = path.components().peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                at.entry(part.to_vec()).or_insert(Item::Leaf(leaf));
                return;
            }
            let next = at
                .entry(part.to_vec())
                .or_insert_with(|| Item::Directory(BTreeMap::new()));
            match next {
                Item::Directory(children) => at = children,
                Item::Leaf(_) => return,
            }
        }
    }

    /// Writes what `base` does not have and gives the root's name.
    pub(crate) fn write(&self, base: &Objects, target: &Objects) -> Result<ObjectId, ObjectError> {
        write_directory(&self.root, (base, &base.handle()), target)
    }
}

fn write_directory(
    children: &BTreeMap<Vec<u8>, Item>,
    base: (&Objects, &HandleArc),
    target: &Objects,
) -> Result<ObjectId, ObjectError> {
    let mut entries = Vec::with_capacity(children.len());
    for (name, item) in children {
        let (mode, id) = match item {
            Item::Leaf((kind, id)) => (mode_of(*kind), *id),
            Item::Directory(children) => ("40000", write_directory(children, base, target)?),
        };
        entries.push((name, mode, id));
    }
    // Directories sort as if their names ended with a slash.
    let key = |name: &[u8], mode: &str| {
        let mut key = name.to_vec();
        if mode == "40000" {
            key.push(b'/');
        }
        key
    };
    entries.sort_by_cached_key(|(name, mode, _)| key(name, mode));
    let mut data = Vec::new();
    for (name, mode, id) in entries {
        data.extend_from_slice(mode.as_bytes());
        data.push(b' ');
        data.extend_from_slice(name);
        data.push(0);
        data.extend_from_slice(id.as_slice());
    }
    let id = target.name_of(Kind::Tree, &data)?;
    if base.0.had(base.1, &id) {
        Ok(id)
    } else {
        target.write_named(id, Kind::Tree, &data)
    }
}

const fn mode_of(kind: PinnedKind) -> &'static str {
    match kind {
        PinnedKind::File => "100644",
        PinnedKind::Executable => "100755",
        PinnedKind::Link => "120000",
        PinnedKind::Submodule => "160000",
    }
}

/// A path at which two trees differ, with what either has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeChange {
    pub(crate) path: RepoPath,
    pub(crate) left: Option<Leaf>,
    pub(crate) right: Option<Leaf>,
}

/// Compares two trees; what both have under one name is not read.
pub(crate) fn compare_trees(
    left: (&Objects, ObjectId),
    right: (&Objects, ObjectId),
) -> Result<Vec<TreeChange>, ObjectError> {
    let mut changes = Vec::new();
    let mut pending = vec![(
        RepoPath::from_bytes(Vec::new()),
        Some(left.1),
        Some(right.1),
    )];
    while let Some((directory, old, new)) = pending.pop() {
        if old == new {
            continue;
        }
        let old = list(left.0, old)?;
        let mut new = list(right.0, new)?;
        for (name, old) in old {
            let path = directory.join(&name);
            step(
                path,
                Some(old),
                new.remove(&name),
                &mut pending,
                &mut changes,
            );
        }
        for (name, new) in new {
            step(
                directory.join(&name),
                None,
                Some(new),
                &mut pending,
                &mut changes,
            );
        }
    }
    changes.sort_by(|l, r| l.path.cmp(&r.path));
    Ok(changes)
}

type Pending = Vec<(RepoPath, Option<ObjectId>, Option<ObjectId>)>;

/// One name of two listings: directories are looked into later, leaves compared.
fn step(
    path: RepoPath,
    old: Option<Listed>,
    new: Option<Listed>,
    pending: &mut Pending,
    changes: &mut Vec<TreeChange>,
) {
    if old == new {
        return;
    }
    let directory = |listed: Option<Listed>| match listed {
        Some(Listed::Directory(id)) => Some(id),
        _ => None,
    };
    let leaf = |listed: Option<Listed>| match listed {
        Some(Listed::Leaf(leaf)) => Some(leaf),
        _ => None,
    };
    if directory(old).is_some() || directory(new).is_some() {
        pending.push((path.clone(), directory(old), directory(new)));
    }
    let (left, right) = (leaf(old), leaf(new));
    if left != right {
        changes.push(TreeChange { path, left, right });
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    Directory(ObjectId),
    Leaf(Leaf),
}

/// The leaf's object that a tree has at `path`.
pub(crate) fn blob_at(
    objects: &Objects,
    tree: ObjectId,
    path: &RepoPath,
) -> Result<Option<ObjectId>, ObjectError> {
    let mut at = Some(tree);
    let mut components = path.components().peekable();
    while let Some(name) = components.next() {
        at = match list(objects, at)?.remove(name) {
            Some(Listed::Leaf((_, id))) if components.peek().is_none() => return Ok(Some(id)),
            Some(Listed::Directory(id)) => Some(id),
            _ => return Ok(None),
        };
    }
    Ok(None)
}

fn list(objects: &Objects, id: Option<ObjectId>) -> Result<BTreeMap<Vec<u8>, Listed>, ObjectError> {
    let Some(id) = id else {
        return Ok(BTreeMap::new());
    };
    let data = objects.read(&id, Kind::Tree)?;
    let tree = TreeRef::from_bytes(&data, objects.hash())
        .map_err(|error| objects.damaged(&id, error.to_string()))?;
    let mut listed = BTreeMap::new();
    for entry in tree.entries {
        let oid = entry.oid.to_owned();
        let item = match entry.mode.kind() {
            TreeKind::Tree => Listed::Directory(oid),
            TreeKind::Blob => Listed::Leaf((PinnedKind::File, oid)),
            TreeKind::BlobExecutable => Listed::Leaf((PinnedKind::Executable, oid)),
            TreeKind::Link => Listed::Leaf((PinnedKind::Link, oid)),
            TreeKind::Commit => Listed::Leaf((PinnedKind::Submodule, oid)),
        };
        if listed.insert(entry.filename.to_vec(), item).is_some() {
            return Err(objects.damaged(&id, format!("{:?} is there twice", entry.filename)));
        }
    }
    Ok(listed)
}
