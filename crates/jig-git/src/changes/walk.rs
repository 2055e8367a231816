//! The walk: every entry below a root, through directory handles, no link
//! followed, several threads.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use jig_protocol::repo_path::RepoPath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Errno;

use super::entry::{Content, Entry, EntryKind, FileTime, Stat};
use crate::beneath;

/// More entries than any tree that git could serve; a walk must end.
pub(crate) const MAX_ENTRIES: usize = 5_000_000;
/// Deeper than any path git can handle has directories.
const MAX_DEPTH: usize = 512;
/// Below this depth directories are opened from the root again instead of
/// holding their parents open.
const HELD_DEPTH: usize = 64;

/// Why a walk could not be finished.
#[derive(Debug)]
pub(crate) enum WalkError {
    Io {
        path: RepoPath,
        source: std::io::Error,
    },
    TooManyEntries,
}

/// Lists everything below `root` but its own `.git`, in tree order.
///
/// Entries changed at or after `racy_since` are marked racy.
pub(crate) fn walk(
    root: BorrowedFd<'_>,
    threads: usize,
    racy_since: FileTime,
) -> Result<Vec<Entry>, WalkError> {
    let first = Task {
        id: 0,
        parent: None,
        path: Vec::new(),
        depth: 0,
    };
    let shared = Shared {
        root,
        racy_since,
        queue: Mutex::new(Queue {
            tasks: vec![first],
            busy: 0,
            waiting: 0,
            done: Vec::new(),
            error: None,
        }),
        wake: Condvar::new(),
        next_id: AtomicUsize::new(1),
        entries: AtomicUsize::new(0),
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.max(1) {
            scope.spawn(|| shared.work());
        }
        shared.work();
    });
    let queue = shared
        .queue
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = queue.error {
        return Err(error);
    }
    let mut listings = Vec::new();
    listings.resize_with(shared.next_id.into_inner(), || None);
    for (id, listing) in queue.done {
        if let Some(place) = listings.get_mut(id) {
            *place = listing;
        }
    }
    Ok(assemble(listings))
}

/// A directory that is still to be listed.
struct Task {
    id: usize,
    parent: Option<Arc<OwnedFd>>,
    path: Vec<u8>,
    depth: usize,
}

/// A listed directory: its entries by name, each with the id of its own listing
/// when it is a directory. `None`: it could not be listed.
type Listing = Option<Vec<(Entry, usize)>>;

struct Queue {
    tasks: Vec<Task>,
    busy: usize,
    /// Threads that found nothing to do.
    waiting: usize,
    done: Vec<(usize, Listing)>,
    error: Option<WalkError>,
}

struct Shared<'a> {
    root: BorrowedFd<'a>,
    racy_since: FileTime,
    queue: Mutex<Queue>,
    wake: Condvar,
    next_id: AtomicUsize,
    entries: AtomicUsize,
}

impl Shared<'_> {
    fn work(&self) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if queue.error.is_some() {
                return;
            }
            let Some(task) = queue.tasks.pop() else {
                if queue.busy == 0 {
                    return;
                }
                queue.waiting += 1;
                queue = self
                    .wake
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                queue.waiting -= 1;
                continue;
            };
            queue.busy += 1;
            drop(queue);
            let result = self.list(&task);
            queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.busy -= 1;
            match result {
                Ok((listing, tasks)) => {
                    queue.done.push((task.id, listing));
                    queue.tasks.extend(tasks);
                }
                Err(error) => {
                    queue.error.get_or_insert(error);
                }
            }
            if queue.waiting > 0
                && (queue.busy == 0 || queue.tasks.len() > 1 || queue.error.is_some())
            {
                self.wake.notify_all();
            }
        }
    }

    fn list(&self, task: &Task) -> Result<(Listing, Vec<Task>), WalkError> {
        let fail = |errno: Errno| WalkError::Io {
            path: RepoPath::from_bytes(task.path.as_slice()),
            source: errno.into(),
        };
        let handle = match self.open(task) {
            Ok(handle) => Arc::new(handle),
            Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => return Err(fail(errno)),
            // The root itself must be there.
            Err(errno) if task.depth == 0 => return Err(fail(errno)),
            Err(_) => return Ok((None, Vec::new())),
        };
        let mut listing = Vec::new();
        let mut tasks = Vec::new();
        let listed = for_each_name(&handle, &mut |name| {
            if name == c"." || name == c".." || (task.depth == 0 && name == c".git") {
                return true;
            }
            let path = join(&task.path, name.to_bytes());
            let Some(entry) = self.entry(handle.as_fd(), name, path) else {
                return true;
            };
            let mut id = 0;
            if entry.kind == EntryKind::Directory && task.depth < MAX_DEPTH {
                id = self.next_id.fetch_add(1, Ordering::Relaxed);
                let parent = (task.depth < HELD_DEPTH).then(|| handle.clone());
                let path = entry.path.as_bytes().to_vec();
                tasks.push(Task {
                    id,
                    parent,
                    path,
                    depth: task.depth + 1,
                });
            }
            listing.push((entry, id));
            listing.len() <= MAX_ENTRIES
        });
        match listed {
            Ok(()) => {}
            Err(errno) if task.depth == 0 => return Err(fail(errno)),
            Err(_) => return Ok((None, Vec::new())),
        }
        if self.entries.fetch_add(listing.len(), Ordering::Relaxed) + listing.len() > MAX_ENTRIES {
            return Err(WalkError::TooManyEntries);
        }
        listing.sort_unstable_by(|(l, _), (r, _)| l.path.cmp(&r.path));
        Ok((Some(listing), tasks))
    }

    fn open(&self, task: &Task) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match &task.parent {
            Some(parent) => {
                let cut = task
                    .path
                    .iter()
                    .rposition(|byte| *byte == b'/')
                    .map_or(0, |cut| cut + 1);
                openat(
                    parent,
                    task.path.get(cut..).unwrap_or_default(),
                    flags,
                    Mode::empty(),
                )
            }
            None => beneath::open(self.root, &task.path, flags),
        }
    }

    /// Describes one entry; `None` when it vanished in between.
    fn entry(
        &self,
        directory: BorrowedFd<'_>,
        name: &std::ffi::CStr,
        path: Vec<u8>,
    ) -> Option<Entry> {
        let path = RepoPath::from_bytes(path);
        let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return None,
            Err(_) => return Some(unreadable(path)),
        };
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Symlink => EntryKind::Link,
            FileType::Directory => EntryKind::Directory,
            FileType::Fifo => EntryKind::Fifo,
            FileType::Socket => EntryKind::Socket,
            FileType::BlockDevice | FileType::CharacterDevice => EntryKind::Device,
            FileType::Unknown => EntryKind::Unreadable,
        };
        let target = if kind == EntryKind::Link {
            match readlinkat(directory, name, Vec::new()) {
                Ok(target) => Some(target.into_bytes().into_boxed_slice()),
                Err(_) => return Some(unreadable(path)),
            }
        } else {
            None
        };
        let record = record(&stat);
        Some(Entry {
            path,
            kind,
            mode: narrow(stat.st_mode) & 0o7777,
            links: if kind == EntryKind::Directory {
                1
            } else {
                wide(stat.st_nlink)
            },
            target,
            racy: record.changed >= self.racy_since,
            stat: record,
            content: Content::None,
        })
    }
}

/// Gives every name in an open directory to `act`, until it has enough.
#[cfg(target_os = "linux")]
fn for_each_name(
    directory: &OwnedFd,
    act: &mut dyn FnMut(&std::ffi::CStr) -> bool,
) -> rustix::io::Result<()> {
    let mut buffer = Vec::with_capacity(32 * 1024);
    let mut listing = rustix::fs::RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = listing.next() {
        if !act(entry?.file_name()) {
            break;
        }
    }
    Ok(())
}

/// Gives every name in an open directory to `act`, until it has enough.
#[cfg(not(target_os = "linux"))]
fn for_each_name(
    directory: &OwnedFd,
    act: &mut dyn FnMut(&std::ffi::CStr) -> bool,
) -> rustix::io::Result<()> {
    for entry in rustix::fs::Dir::read_from(directory)? {
        if !act(entry?.file_name()) {
            break;
        }
    }
    Ok(())
}

/// Keeps of a stat what identifies an entry.
pub(crate) fn record(stat: &rustix::fs::Stat) -> Stat {
    Stat {
        device: number(stat.st_dev),
        inode: wide(stat.st_ino),
        size: number(stat.st_size),
        modified: FileTime {
            seconds: stat.st_mtime,
            nanos: nanos(stat.st_mtime_nsec),
        },
        changed: FileTime {
            seconds: stat.st_ctime,
            nanos: nanos(stat.st_ctime_nsec),
        },
        user: stat.st_uid,
        group: stat.st_gid,
    }
}

/// Some fields of a stat have other widths on other platforms.
fn wide(value: impl Into<u64>) -> u64 {
    value.into()
}

fn number(value: impl TryInto<u64>) -> u64 {
    value.try_into().unwrap_or(u64::MAX)
}

fn nanos(value: impl TryInto<u32>) -> u32 {
    value.try_into().unwrap_or(0)
}

fn narrow(value: impl Into<u32>) -> u32 {
    value.into()
}

fn unreadable(path: RepoPath) -> Entry {
    Entry {
        path,
        kind: EntryKind::Unreadable,
        mode: 0,
        links: 1,
        target: None,
        stat: Stat::default(),
        content: Content::None,
        racy: true,
    }
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
    path.extend_from_slice(directory);
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Puts the listings together, each directory followed by its content.
fn assemble(mut listings: Vec<Listing>) -> Vec<Entry> {
    let mut entries = Vec::with_capacity(listings.iter().flatten().map(Vec::len).sum());
    let mut take = |id: usize| listings.get_mut(id).and_then(Option::take);
    let mut stack = vec![take(0).unwrap_or_default().into_iter()];
    while let Some(siblings) = stack.last_mut() {
        let Some((mut entry, id)) = siblings.next() else {
            stack.pop();
            continue;
        };
        if entry.kind == EntryKind::Directory {
            match take(id) {
                Some(listing) => stack.push(listing.into_iter()),
                None => {
                    entry.kind = EntryKind::Unreadable;
                    entry.racy = true;
                }
            }
        }
        entries.push(entry);
    }
    entries
}
