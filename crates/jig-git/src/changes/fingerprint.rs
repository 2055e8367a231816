//! What files hold: the stat of the previous capture where it still tells, else
//! a hash of the content.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FileType, OFlags, fstat};

use super::entry::{Content, Entries, Entry, EntryKind, Stat, tree_order};
use super::walk::record;
use crate::beneath;
use crate::conversions::{Conversions, ConvertError, Converter};
use crate::pinned_tree::{PinnedKind, PinnedTree};

/// Hashes of the checkout forms of pinned blobs, by place in the pinned tree.
#[derive(Debug, Default)]
pub(crate) struct PinnedHashes(Mutex<HashMap<usize, [u8; 32]>>);

impl PinnedHashes {
    /// The hash of the checkout form of the pinned entry at `at`.
    fn get(
        &self,
        pinned: &PinnedTree,
        at: usize,
        converter: &mut Converter,
    ) -> Result<Option<[u8; 32]>, ConvertError> {
        let Some(entry) = pinned.entries().get(at) else {
            return Ok(None);
        };
        if !matches!(entry.kind, PinnedKind::File | PinnedKind::Executable) {
            return Ok(None);
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hash) = known.get(&at) {
            return Ok(Some(*hash));
        }
        let bytes = converter.checkout_form(&entry.path, &entry.id)?;
        let hash = *blake3::hash(&bytes).as_bytes();
        known.insert(at, hash);
        Ok(Some(hash))
    }
}

/// Opens the regular file that `entry` describes; `None` when it is no longer
/// one, or cannot be read.
pub(crate) fn open_file(root: BorrowedFd<'_>, entry: &Entry) -> Option<(File, Stat)> {
    // Not blocking, in case a pipe took the file's place.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = beneath::open(root, entry.path.as_bytes(), flags).ok()?;
    let stat = fstat(&file).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
        .then(|| (File::from(file), record(&stat)))
}

pub(crate) fn hash_file(file: &File) -> std::io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(*hasher.finalize().as_bytes())
}

/// Takes over what `previous` knows of files whose stat is the same; gives the
/// places of the files that must be read. `fresh`: files that the pinned tree
/// has were just checked out and are the pinned blobs.
pub(crate) fn take_over(
    entries: &mut [Entry],
    previous: Option<&Entries>,
    pinned: &PinnedTree,
    fresh: bool,
) -> Vec<usize> {
    let mut unknown = Vec::new();
    let (mut old, mut pins) = (0, 0);
    let none = Entries::default();
    let earlier = &previous.unwrap_or(&none).0;
    for (at, entry) in entries.iter_mut().enumerate() {
        if entry.kind != EntryKind::File {
            continue;
        }
        let path = entry.path.as_bytes();
        if fresh && previous.is_none() {
            while pinned
                .entries()
                .get(pins)
                .is_some_and(|pin| tree_order(pin.path.as_bytes(), path).is_lt())
            {
                pins += 1;
            }
            if let Some(pin) = pinned.entries().get(pins)
                && pin.path == entry.path
                && matches!(pin.kind, PinnedKind::File | PinnedKind::Executable)
            {
                entry.content = Content::Pinned;
                continue;
            }
        }
        while earlier
            .get(old)
            .is_some_and(|was| tree_order(was.path.as_bytes(), path).is_lt())
        {
            old += 1;
        }
        match earlier.get(old) {
            Some(was)
                if was.path == entry.path
                    && was.kind == EntryKind::File
                    && was.stat == entry.stat
                    && !was.racy =>
            {
                entry.content = was.content;
            }
            _ => unknown.push(at),
        }
    }
    unknown
}

/// Reads the files at the places `unknown` and says what they hold.
pub(crate) fn hash_all(
    root: BorrowedFd<'_>,
    entries: &mut [Entry],
    unknown: &[usize],
    pinned: &PinnedTree,
    hashes: &PinnedHashes,
    conversions: &Conversions,
    threads: usize,
) -> Result<(), ConvertError> {
    let found = hash_in_parallel(root, entries, unknown, threads);
    let mut converter = conversions.converter();
    for (at, found) in found {
        let Some(entry) = entries.get_mut(at) else {
            continue;
        };
        let Some((hash, stat)) = found else {
            entry.kind = EntryKind::Unreadable;
            entry.racy = true;
            continue;
        };
        entry.racy |= stat != entry.stat;
        entry.stat = stat;
        entry.content = Content::Hash(hash);
        if let Some(place) = pinned.index_of(&entry.path)
            && hashes.get(pinned, place, &mut converter)? == Some(hash)
        {
            entry.content = Content::Pinned;
        }
    }
    Ok(())
}

type Found = (usize, Option<([u8; 32], Stat)>);

fn hash_in_parallel(
    root: BorrowedFd<'_>,
    entries: &[Entry],
    unknown: &[usize],
    threads: usize,
) -> Vec<Found> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(unknown.len()));
    let work = || {
        let mut own = Vec::new();
        while let Some(at) = unknown.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = entries.get(*at).and_then(|entry| {
                let (file, stat) = open_file(root, entry)?;
                Some((hash_file(&file).ok()?, stat))
            });
            own.push((*at, found));
        }
        results
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(&mut own);
    };
    // A thread costs more than reading a few files.
    let threads = threads.min(unknown.len() / 16 + 1);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}
