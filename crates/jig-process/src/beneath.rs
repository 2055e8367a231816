//! Files in directories that others control, written and removed without being
//! led elsewhere: no link is followed on the way, and none is written through.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Component, Path};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

/// What to do about a missing directory on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTheWay {
    /// Give up.
    MustExist,
    /// Make it, 0700; a link or file in its place is removed first.
    Make,
}

/// Opens the directory `path` below `root`, component by component, following
/// no link at all. `root` itself may not be a link either.
///
/// # Errors
/// Whatever the file system says; `InvalidInput` for a path that is absolute or
/// goes up.
pub fn open_dir_beneath(
    root: &Path,
    path: &Path,
    on_the_way: OnTheWay,
) -> io::Result<rustix::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir = rustix::fs::open(root, flags, Mode::empty())?;
    for component in path.components() {
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            _ => return Err(io::Error::from(io::ErrorKind::InvalidInput)),
        };
        let opened = rustix::fs::openat(&dir, name, flags, Mode::empty());
        dir = match (opened, on_the_way) {
            (Ok(next), _) => next,
            (Err(Errno::NOENT), OnTheWay::Make) => {
                rustix::fs::mkdirat(&dir, name, Mode::RWXU)?;
                rustix::fs::openat(&dir, name, flags, Mode::empty())?
            }
            (Err(Errno::NOTDIR | Errno::LOOP), OnTheWay::Make) => {
                rustix::fs::unlinkat(&dir, name, AtFlags::empty())?;
                rustix::fs::mkdirat(&dir, name, Mode::RWXU)?;
                rustix::fs::openat(&dir, name, flags, Mode::empty())?
            }
            (Err(other), _) => return Err(other.into()),
        };
    }
    Ok(dir)
}

/// Makes the directory `path` below `root`, following no link on the way.
///
/// # Errors
/// Whatever the file system says.
pub fn make_dir_beneath(root: &Path, path: &Path) -> io::Result<()> {
    open_dir_beneath(root, path, OnTheWay::Make).map(drop)
}

/// Writes `content` to a new file `path` below `root`, 0600, following no link
/// on the way. A link or file at the place, or in the place of a directory on
/// the way, is replaced, never written through; a directory at the place is put
/// aside.
///
/// # Errors
/// Whatever the file system says.
pub fn write_beneath(root: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let name = path.file_name().ok_or_else(invalid)?;
    let parent = path.parent().unwrap_or(Path::new(""));
    let dir = open_dir_beneath(root, parent, OnTheWay::Make)?;
    match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(Errno::ISDIR | Errno::PERM) => put_aside(&dir, name)?,
        Err(other) => return Err(other.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&dir, name, flags, Mode::RUSR | Mode::WUSR)?;
    let mut file = File::from(file);
    file.write_all(content)
}

/// Gives a directory another name beside its own. It is not removed: it may hold
/// more levels than can be gone through here, and goes with what it lies in.
fn put_aside(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    for number in 0..1_000 {
        let aside = format!(".jig-aside-{number}");
        match rustix::fs::statat(dir, &aside, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(rustix::fs::renameat(dir, name, dir, &aside)?),
            Ok(_) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes the file `path` below `root`, following no link on the way. `false`
/// when nothing is there, or a directory, which is no file that was written.
///
/// # Errors
/// Whatever the file system says, absence aside.
pub fn remove_beneath(root: &Path, path: &Path) -> io::Result<bool> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let name = path.file_name().ok_or_else(invalid)?;
    let parent = path.parent().unwrap_or(Path::new(""));
    let gone = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    };
    let dir = match open_dir_beneath(root, parent, OnTheWay::MustExist) {
        Ok(dir) => dir,
        Err(error) if gone(&error) || error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT | Errno::ISDIR) => Ok(false),
        Err(other) => Err(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn writing_replaces_a_planted_link_and_never_follows_one() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::fs::write(dir.path().join("secret"), "outside").unwrap();
        symlink("../secret", home.join("token")).unwrap();
        write_beneath(&home, Path::new("token"), b"new").unwrap();
        assert_eq!(
            std::fs::read_to_string(dir.path().join("secret")).unwrap(),
            "outside"
        );
        let meta = std::fs::symlink_metadata(home.join("token")).unwrap();
        assert!(meta.is_file() && meta.permissions().mode() & 0o777 == 0o600);

        std::fs::create_dir(dir.path().join("elsewhere")).unwrap();
        symlink("../elsewhere", home.join("conf")).unwrap();
        assert!(!remove_beneath(&home, Path::new("conf/token")).unwrap());
        write_beneath(&home, Path::new("conf/token"), b"x").unwrap();
        assert!(!dir.path().join("elsewhere/token").exists());
        assert!(home.join("conf/token").exists());
        assert!(remove_beneath(&home, Path::new("conf/token")).unwrap());
        assert!(!home.join("conf/token").exists());
    }

    #[test]
    fn a_path_that_leads_out_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let absolute = dir.path().join("absolute");
        for path in [Path::new("../up"), Path::new("a/../../up"), &absolute] {
            let refused = write_beneath(&home, path, b"x").unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }
}
