//! One round of a restore: removes what must go, makes what must be there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use jig_protocol::repo_path::RepoPath;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, chmodat, chownat,
    fchmod, futimens, linkat, mkdirat, openat, renameat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::capture::Capture;
use super::compare::is_below;
use super::entry::{Content, Entry, EntryKind, tree_order};
use super::guard::TreeGuard;
use super::restore::LinkGroups;
use super::store::clone_or_copy;
use crate::beneath;
use crate::removal::remove_at;

pub(crate) struct Round<'a> {
    guard: &'a TreeGuard,
    to: &'a Capture,
    now: &'a Capture,
    links: &'a LinkGroups,
    errors: BTreeMap<RepoPath, String>,
    /// Directories that were made writable for the time of the round.
    opened: BTreeSet<RepoPath>,
}

impl<'a> Round<'a> {
    pub(crate) fn new(
        guard: &'a TreeGuard,
        to: &'a Capture,
        now: &'a Capture,
        links: &'a LinkGroups,
    ) -> Self {
        Self {
            guard,
            to,
            now,
            links,
            errors: BTreeMap::new(),
            opened: BTreeSet::new(),
        }
    }

    /// Works on the paths `wrong`; gives what failed, by path.
    pub(crate) fn apply(mut self, wrong: &BTreeSet<RepoPath>) -> BTreeMap<RepoPath, String> {
        let mut paths: Vec<&RepoPath> = wrong.iter().collect();
        paths.sort_by(|l, r| tree_order(l.as_bytes(), r.as_bytes()));
        for path in &paths {
            self.open_parents(path);
        }
        self.remove_unwanted(&paths);
        let mut finished = BTreeSet::new();
        for path in &paths {
            if let Some(entry) = self.to.get(path)
                && !finished.contains(*path)
            {
                let done = self.make(entry, wrong, &mut finished);
                self.note(path, done);
            }
        }
        self.settle_directories(&paths);
        self.errors
    }

    fn note(&mut self, path: &RepoPath, done: rustix::io::Result<()>) {
        if let Err(error) = done {
            let why = std::io::Error::from(error).to_string();
            self.errors.entry(path.clone()).or_insert(why);
        }
    }

    /// Makes the directories on the way to `path` readable and writable.
    fn open_parents(&mut self, path: &RepoPath) {
        let mut on_the_way = Vec::new();
        let mut at = path.parent();
        while let Some(directory) = at {
            at = directory.parent();
            on_the_way.push(directory);
        }
        if self
            .now
            .get(path)
            .is_some_and(|now| now.kind == EntryKind::Unreadable)
        {
            on_the_way.insert(0, path.clone());
        }
        for directory in on_the_way.into_iter().rev() {
            let closed = self.now.get(&directory).is_some_and(|now| {
                (now.kind == EntryKind::Directory && now.mode & 0o700 != 0o700)
                    || now.kind == EntryKind::Unreadable
            });
            if closed && self.opened.insert(directory.clone()) {
                let done = self.open_directory(&directory);
                self.note(&directory, done);
            }
        }
    }

    fn open_directory(&self, path: &RepoPath) -> rustix::io::Result<()> {
        let (parent, name) = beneath::parent(self.guard.root(), path.as_bytes())?;
        let stat = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Ok(());
        }
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777) | Mode::RWXU;
        chmodat(&parent, name, mode, AtFlags::empty())
    }

    /// Removes what was not there, or was something else; a directory with all
    /// it holds.
    fn remove_unwanted(&mut self, paths: &[&RepoPath]) {
        let mut gone: Option<&RepoPath> = None;
        for path in paths {
            if gone.is_some_and(|directory| is_below(path, directory.as_bytes())) {
                continue;
            }
            let Some(now) = self.now.get(path) else {
                continue;
            };
            let unwanted = match self.to.get(path) {
                None => true,
                // It may only have lost its modes: the next round will tell.
                Some(was) if was.kind == EntryKind::Directory => {
                    !matches!(now.kind, EntryKind::Directory | EntryKind::Unreadable)
                }
                Some(was) => was.kind != now.kind,
            };
            if unwanted {
                let done = self.remove(path);
                self.note(path, done);
                gone = Some(path);
            }
        }
    }

    fn remove(&self, path: &RepoPath) -> rustix::io::Result<()> {
        let (parent, name) = beneath::parent(self.guard.root(), path.as_bytes())?;
        remove_at(parent.as_fd(), name)?;
        // Directories that only existed to hold it go with it.
        let mut at = path.parent();
        while let Some(directory) = at.filter(|directory| self.to.get(directory).is_none()) {
            let (parent, name) = beneath::parent(self.guard.root(), directory.as_bytes())?;
            if unlinkat(&parent, name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
            at = directory.parent();
        }
        Ok(())
    }

    fn make(
        &mut self,
        entry: &Entry,
        wrong: &BTreeSet<RepoPath>,
        finished: &mut BTreeSet<RepoPath>,
    ) -> rustix::io::Result<()> {
        self.make_parents(&entry.path)?;
        let (parent, name) = beneath::parent(self.guard.root(), entry.path.as_bytes())?;
        match entry.kind {
            EntryKind::Directory => match mkdirat(&parent, name, Mode::RWXU) {
                Err(Errno::EXIST) => Ok(()),
                other => other,
            },
            EntryKind::File if entry.links > 1 => self.make_linked(entry, wrong, finished),
            EntryKind::File => {
                let now = self.now.get(&entry.path);
                let same = now.is_some_and(|now| {
                    now.kind == EntryKind::File && now.content == entry.content && now.links == 1
                });
                if same {
                    own_and_mode(&parent, name, entry)
                } else {
                    self.write(&parent, name, entry)
                }
            }
            EntryKind::Link => {
                let target = entry.target.as_deref().unwrap_or_default();
                let temporary = Temporary::in_directory(&parent)?;
                symlinkat(target, &parent, temporary.name())?;
                own(&parent, temporary.name(), entry, AtFlags::SYMLINK_NOFOLLOW)?;
                temporary.rename_to(name)
            }
            EntryKind::Fifo | EntryKind::Socket => {
                remove_at(parent.as_fd(), name)?;
                make_special(&parent, name, entry)?;
                own_and_mode(&parent, name, entry)
            }
            EntryKind::Device | EntryKind::Unreadable => Err(Errno::NOTSUP),
        }
    }

    /// Makes the directories on the way that are not there.
    fn make_parents(&mut self, path: &RepoPath) -> rustix::io::Result<()> {
        let mut missing = Vec::new();
        let mut at = path.parent();
        while let Some(directory) = at {
            let flags = OFlags::DIRECTORY | OFlags::RDONLY;
            if beneath::open(self.guard.root(), directory.as_bytes(), flags).is_ok() {
                break;
            }
            at = directory.parent();
            missing.push(directory);
        }
        for directory in missing.into_iter().rev() {
            let (parent, name) = beneath::parent(self.guard.root(), directory.as_bytes())?;
            mkdirat(&parent, name, Mode::RWXU)?;
            self.opened.insert(directory);
        }
        Ok(())
    }

    /// Writes the file under a temporary name, then gives it its own.
    fn write(&self, parent: &OwnedFd, name: &[u8], entry: &Entry) -> rustix::io::Result<()> {
        let temporary = Temporary::in_directory(parent)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(
            parent,
            temporary.name(),
            flags,
            Mode::RUSR | Mode::WUSR,
        )?);
        self.fill(&mut file, entry)?;
        own(parent, temporary.name(), entry, AtFlags::SYMLINK_NOFOLLOW)?;
        fchmod(&file, Mode::from_raw_mode(raw(entry.mode)))?;
        let modified = entry.stat.modified;
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
            last_modification: Timespec {
                tv_sec: modified.seconds,
                tv_nsec: modified.nanos.into(),
            },
        };
        futimens(&file, &times)?;
        temporary.rename_to(name)
    }

    fn fill(&self, file: &mut File, entry: &Entry) -> rustix::io::Result<()> {
        let errno = |error: &std::io::Error| Errno::from_io_error(error).unwrap_or(Errno::IO);
        match entry.content {
            Content::Hash(hash) => {
                let kept = self
                    .guard
                    .store()
                    .open_kept(&hash)
                    .map_err(|error| errno(&error))?;
                // The budget did not allow to keep it.
                let mut kept = kept.ok_or(Errno::NODATA)?;
                clone_or_copy(&mut kept, file).map_err(|error| errno(&error))
            }
            Content::Pinned => {
                let pin = self.guard.pinned().get(&entry.path).ok_or(Errno::IO)?;
                let mut converter = self.guard.conversions().converter();
                let bytes = converter
                    .checkout_form(&entry.path, &pin.id)
                    .map_err(|_| Errno::IO)?;
                file.write_all(&bytes).map_err(|error| errno(&error))
            }
            Content::None => Err(Errno::IO),
        }
    }

    /// Makes a file with several names: one is written, the others linked to it.
    /// A name that now holds something else and is not to be restored is left.
    fn make_linked(
        &mut self,
        entry: &Entry,
        wrong: &BTreeSet<RepoPath>,
        finished: &mut BTreeSet<RepoPath>,
    ) -> rustix::io::Result<()> {
        let (parent, name) = beneath::parent(self.guard.root(), entry.path.as_bytes())?;
        self.write(&parent, name, entry)?;
        finished.insert(entry.path.clone());
        for other in self.links.names(entry) {
            let untouched = self.now.get(other).is_some_and(|now| {
                now.kind == EntryKind::File
                    && now.content == entry.content
                    && now.mode == entry.mode
            });
            if *other == entry.path || !(wrong.contains(other) || untouched) {
                continue;
            }
            self.open_parents(other);
            self.make_parents(other)?;
            let (to_parent, to_name) = beneath::parent(self.guard.root(), other.as_bytes())?;
            let temporary = Temporary::in_directory(&to_parent)?;
            linkat(
                &parent,
                name,
                &to_parent,
                temporary.name(),
                AtFlags::empty(),
            )?;
            // Renaming one name of a file to another of its names does nothing.
            remove_at(to_parent.as_fd(), to_name)?;
            temporary.rename_to(to_name)?;
            finished.insert(other.clone());
        }
        Ok(())
    }

    /// Gives directories their modes, the deepest first: those that are
    /// restored, and those that were opened for the time of the round.
    fn settle_directories(&mut self, paths: &[&RepoPath]) {
        let restored = paths.iter().filter_map(|path| self.to.get(path));
        let mut modes: BTreeMap<RepoPath, Entry> = restored
            .filter(|entry| entry.kind == EntryKind::Directory)
            .map(|entry| (entry.path.clone(), entry.clone()))
            .collect();
        for path in &self.opened {
            let chosen = modes.contains_key(path);
            let before = self
                .now
                .get(path)
                .filter(|now| now.kind == EntryKind::Directory);
            if let Some(entry) = before.or_else(|| self.to.get(path))
                && !chosen
                && entry.kind == EntryKind::Directory
            {
                modes.insert(path.clone(), entry.clone());
            }
        }
        let mut directories: Vec<Entry> = modes.into_values().collect();
        directories.sort_by(|l, r| tree_order(r.path.as_bytes(), l.path.as_bytes()));
        for entry in directories {
            let done = beneath::parent(self.guard.root(), entry.path.as_bytes())
                .and_then(|(parent, name)| own_and_mode(&parent, name, &entry));
            match done {
                // It was removed in this round, or is not there yet.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                other => self.note(&entry.path, other),
            }
        }
    }
}

/// The name a thing has until it is complete; what is left under it is removed.
struct Temporary<'a> {
    directory: &'a OwnedFd,
    name: String,
}

impl<'a> Temporary<'a> {
    /// A name that nothing in the directory has.
    fn in_directory(directory: &'a OwnedFd) -> rustix::io::Result<Self> {
        for n in 0..1_000 {
            let name = format!(".jig-restoring-{n}");
            match rustix::fs::statat(directory, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => return Ok(Self { directory, name }),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Errno::EXIST)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn rename_to(self, name: &[u8]) -> rustix::io::Result<()> {
        renameat(self.directory, self.name.as_str(), self.directory, name)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // After the rename there is nothing to remove.
        let _ = unlinkat(self.directory, self.name.as_str(), AtFlags::empty());
    }
}

#[cfg(target_os = "linux")]
fn make_special(parent: &OwnedFd, name: &[u8], entry: &Entry) -> rustix::io::Result<()> {
    let kind = if entry.kind == EntryKind::Fifo {
        FileType::Fifo
    } else {
        FileType::Socket
    };
    rustix::fs::mknodat(parent, name, kind, Mode::from_raw_mode(raw(entry.mode)), 0)
}

/// There is no such call relative to a directory here; the report names what
/// is missing.
#[cfg(not(target_os = "linux"))]
fn make_special(_: &OwnedFd, _: &[u8], _: &Entry) -> rustix::io::Result<()> {
    Err(Errno::NOTSUP)
}

/// Permission bits as the system takes them: 16 bits wide on some platforms.
fn raw(mode: u32) -> rustix::fs::RawMode {
    rustix::fs::RawMode::try_from(mode & 0o7777).unwrap_or(0)
}

/// Gives the entry its owner where it differs.
fn own(
    parent: &OwnedFd,
    name: impl rustix::path::Arg + Copy,
    entry: &Entry,
    flags: AtFlags,
) -> rustix::io::Result<()> {
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if stat.st_uid == entry.stat.user && stat.st_gid == entry.stat.group {
        return Ok(());
    }
    let (user, group) = (
        Uid::from_raw(entry.stat.user),
        Gid::from_raw(entry.stat.group),
    );
    chownat(parent, name, Some(user), Some(group), flags)
}

/// Gives a thing that is no link its owner and mode.
fn own_and_mode(parent: &OwnedFd, name: &[u8], entry: &Entry) -> rustix::io::Result<()> {
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    own(parent, name, entry, AtFlags::SYMLINK_NOFOLLOW)?;
    chmodat(
        parent,
        name,
        Mode::from_raw_mode(raw(entry.mode)),
        AtFlags::empty(),
    )
}
