//! The blobs of captured files: what git would have of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use gix::ObjectId;
use gix::objs::Kind;
use gix::odb::HandleArc;
use jig_protocol::repo_path::RepoPath;

use crate::changes::{Capture, CaptureData, Content, Entry, EntryKind, TreeGuard};
use crate::commit::CommitError;
use crate::conversions::Converter;
use crate::parallel;
use crate::pinned_tree::PinnedKind;
use crate::tree::Leaf;

/// What git has for content that was captured, so that nothing is converted and
/// named twice.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The blob that each path last became (conversions go by path), with the
    /// hash of its content.
    blobs: Mutex<HashMap<RepoPath, ([u8; 32], ObjectId)>>,
    /// The tree that was written last.
    tree: Mutex<Option<WrittenTree>>,
}

#[derive(Debug)]
struct WrittenTree {
    /// Held weakly, a capture can be forgotten, but none takes its address.
    of: Weak<CaptureData>,
    /// What keeps its ignored files and build outputs.
    on: Option<ObjectId>,
    id: ObjectId,
}

impl Known {
    pub(crate) fn blob(&self, path: &RepoPath, hash: &[u8; 32]) -> Option<ObjectId> {
        let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, id) = blobs.get(path)?;
        (of == hash).then_some(*id)
    }

    fn remember_blob(&self, path: &RepoPath, hash: [u8; 32], id: ObjectId) {
        let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        blobs.insert(path.clone(), (hash, id));
    }

    pub(crate) fn tree(&self, capture: &Capture, head: Option<ObjectId>) -> Option<ObjectId> {
        let last = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last.as_ref()?;
        (last.of.as_ptr() == Arc::as_ptr(&capture.0) && last.on == head).then_some(last.id)
    }

    pub(crate) fn remember_tree(&self, capture: &Capture, head: Option<ObjectId>, id: ObjectId) {
        let mut last = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(WrittenTree {
            of: Arc::downgrade(&capture.0),
            on: head,
            id,
        });
    }
}

/// Larger files are read one after the other: each is held in memory.
const LARGE: u64 = 16 * 1024 * 1024;

/// Writes blobs that neither the base nor the guard knows yet, several at a
/// time; large ones are left to [`Blobs::leaf`].
pub(crate) fn write_blobs(guard: &TreeGuard, entries: &[&Entry]) -> Result<(), CommitError> {
    let new: Vec<&Entry> = entries
        .iter()
        .copied()
        .filter(|entry| {
            entry.kind == EntryKind::File
                && entry.size() <= LARGE
                && matches!(entry.content, Content::Hash(hash)
                    if guard.known().blob(&entry.path, &hash).is_none())
        })
        .collect();
    parallel::for_each(
        &new,
        || Blobs::new(guard),
        |blobs, entry| blobs.of_file(entry).map(drop),
    )
}

/// Finds and writes blobs; made for one thread's work.
pub(crate) struct Blobs<'a> {
    guard: &'a TreeGuard,
    converter: Converter,
    base: HandleArc,
    buffer: Vec<u8>,
}

impl<'a> Blobs<'a> {
    pub(crate) fn new(guard: &'a TreeGuard) -> Self {
        Self {
            guard,
            converter: guard.conversions().converter(),
            base: guard.pinned().objects().handle(),
            buffer: Vec::new(),
        }
    }

    /// What git would have at a captured entry; its blob is written when the
    /// base does not have it.
    pub(crate) fn leaf(&mut self, entry: &Entry) -> Result<Option<Leaf>, CommitError> {
        let pin = self.guard.pinned().get(&entry.path);
        match entry.kind {
            EntryKind::File => {
                let executable = match pin {
                    Some(pin) if !self.guard.repo().file_mode() => {
                        pin.kind == PinnedKind::Executable
                    }
                    _ => entry.is_executable(),
                };
                let kind = if executable {
                    PinnedKind::Executable
                } else {
                    PinnedKind::File
                };
                Ok(Some((kind, self.of_file(entry)?)))
            }
            EntryKind::Link => {
                let target = entry.target.as_deref().unwrap_or_default();
                Ok(Some((PinnedKind::Link, self.write(target)?)))
            }
            EntryKind::Directory => Ok(pin
                .filter(|pin| pin.kind == PinnedKind::Submodule)
                .map(|pin| (pin.kind, pin.id))),
            EntryKind::Fifo | EntryKind::Socket | EntryKind::Device | EntryKind::Unreadable => {
                Ok(None)
            }
        }
    }

    fn of_file(&mut self, entry: &Entry) -> Result<ObjectId, CommitError> {
        let gone = || CommitError::ContentGone {
            path: entry.path.clone(),
        };
        let hash = match entry.content {
            Content::Pinned => {
                let pin = self.guard.pinned().get(&entry.path);
                return pin.map(|pin| pin.id).ok_or_else(gone);
            }
            Content::Hash(hash) => hash,
            Content::None => return Err(gone()),
        };
        if let Some(id) = self.guard.known().blob(&entry.path, &hash) {
            return Ok(id);
        }
        let bytes = self
            .guard
            .captured_content(entry, &hash)?
            .ok_or_else(gone)?;
        let clean = self.converter.clean_form(&entry.path, bytes)?;
        let id = self.write(&clean)?;
        self.guard.known().remember_blob(&entry.path, hash, id);
        Ok(id)
    }

    fn write(&mut self, data: &[u8]) -> Result<ObjectId, CommitError> {
        let base = self.guard.pinned().objects();
        let id = base.name_of(Kind::Blob, data)?;
        // One that the base has need not be written, if it is what it is named.
        if base.had(&self.base, &id) {
            let there = base.check(&self.base, &id, Kind::Blob, &mut self.buffer);
            if there.is_ok() {
                return Ok(id);
            }
        }
        let objects = self.guard.repo().objects();
        Ok(objects.write_named(id, Kind::Blob, data)?)
    }
}
