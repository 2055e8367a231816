//! Removing what an agent left, whatever its modes and depth, without following
//! a link.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

/// Directories held open at once; deeper ones are moved up first.
const HELD: usize = 64;

/// Removes the directory `path` with everything in it. Gone already is fine.
///
/// # Errors
/// When something in it cannot be removed.
pub fn remove_tree(path: &Path) -> std::io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::Error::other("it has no parent"));
    };
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let parent = match openat(CWD, parent, flags, Mode::empty()) {
        Ok(parent) => parent,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    remove_at(parent.as_fd(), std::os::unix::ffi::OsStrExt::as_bytes(name)).map_err(Into::into)
}

/// Removes whatever `name` in `directory` is. Gone already is fine.
pub(crate) fn remove_at(directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
    if !is_directory(directory, name)? {
        return unlink(directory, name, AtFlags::empty());
    }
    let top = open_directory(directory, name)?;
    let mut moved = 0;
    // Emptying may move deep directories to the top; then there is more to do.
    while !empty(top.as_fd(), top.as_fd(), 0, &mut moved)? {}
    drop(top);
    unlink(directory, name, AtFlags::REMOVEDIR)
}

fn is_directory(directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<bool> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

fn unlink(directory: BorrowedFd<'_>, name: &[u8], flags: AtFlags) -> rustix::io::Result<()> {
    match unlinkat(directory, name, flags) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// Opens a directory that was seen not to be a link, making it ours to empty.
fn open_directory(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let mode = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode;
    if mode & 0o700 != 0o700 {
        chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
    }
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Empties `directory`; false when directories were moved into `top` meanwhile.
fn empty(
    top: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    depth: usize,
    moved: &mut usize,
) -> rustix::io::Result<bool> {
    let mut all = true;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let name = name.to_bytes();
        if !is_directory(directory, name)? {
            unlink(directory, name, AtFlags::empty())?;
        } else if depth >= HELD {
            *moved += 1;
            renameat(directory, name, top, free_name(top, *moved)?)?;
            all = false;
        } else {
            let inner = open_directory(directory, name)?;
            all &= empty(top, inner.as_fd(), depth + 1, moved)?;
            drop(inner);
            unlink(directory, name, AtFlags::REMOVEDIR)?;
        }
    }
    Ok(all)
}

fn free_name(top: BorrowedFd<'_>, counter: usize) -> rustix::io::Result<String> {
    for attempt in 0..1000 {
        let name = format!(".jig-removing-{counter}-{attempt}");
        if matches!(
            statat(top, name.as_str(), AtFlags::SYMLINK_NOFOLLOW),
            Err(Errno::NOENT)
        ) {
            return Ok(name);
        }
    }
    Err(Errno::EXIST)
}
