//! Opening things below a directory without ever following a link.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

/// Opens `path` (relative, `/`-separated; empty is `root` itself) with `flags`.
/// No part of it may be a symbolic link.
pub(crate) fn open(
    root: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    if path.is_empty() {
        return openat(root, c".", flags, Mode::empty());
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(root, path, flags, Mode::empty(), resolve) {
            // An old kernel, a system-call filter, or a path that only fits in
            // pieces.
            Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG | Errno::INVAL) => {}
            other => return other,
        }
    }
    by_components(root, path, flags)
}

/// Opens one part after the other; each is refused when it is a link.
fn by_components(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let mut current: Option<OwnedFd> = None;
    let mut parts = path.split(|byte| *byte == b'/').peekable();
    while let Some(part) = parts.next() {
        if part.is_empty() || part == b".." || part == b"." {
            return Err(Errno::INVAL);
        }
        let at = current.as_ref().map_or(root, AsFd::as_fd);
        let flags = if parts.peek().is_some() {
            OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
        } else {
            flags
        };
        current = Some(openat(at, part, flags, Mode::empty())?);
    }
    current.ok_or(Errno::INVAL)
}

/// Opens the directory that `path` lies in and gives the last part with it.
pub(crate) fn parent<'a>(
    root: BorrowedFd<'_>,
    path: &'a [u8],
) -> rustix::io::Result<(OwnedFd, &'a [u8])> {
    let cut = path.iter().rposition(|byte| *byte == b'/');
    let (directory, name) = match cut {
        Some(cut) => (
            path.get(..cut).unwrap_or_default(),
            path.get(cut + 1..).unwrap_or_default(),
        ),
        None => (&b""[..], path),
    };
    Ok((
        open(root, directory, OFlags::DIRECTORY | OFlags::RDONLY)?,
        name,
    ))
}
