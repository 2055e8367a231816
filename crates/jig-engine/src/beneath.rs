//! Looking at files that others control, without being led elsewhere.
//!
//! Work trees, HOMEs and handoff directories are written by agents. Nothing
//! here follows a link out of the directory it was given, and nothing waits
//! for a FIFO.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use jig_process::beneath::{OnTheWay, open_dir_beneath};
pub(crate) use jig_process::beneath::{make_dir_beneath, remove_beneath, write_beneath};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// What a path inside a tree leads to, links inside the tree followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A regular file and its size in bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A FIFO, a socket or a device.
    Special,
    /// Nothing, or a link that leads to nothing.
    Missing,
    /// A link leads out of the tree.
    Outside,
}

/// What `path`, relative to `tree`, leads to.
///
/// # Errors
/// Whatever the file system says, absence aside.
pub(crate) fn look_inside(tree: &Path, path: &Path) -> io::Result<Found> {
    match open_following_inside(tree, path) {
        Ok(handle) => {
            let stat = rustix::fs::fstat(&handle)?;
            Ok(match FileType::from_raw_mode(stat.st_mode as _) {
                FileType::RegularFile => Found::File(u64::try_from(stat.st_size).unwrap_or(0)),
                FileType::Directory => Found::Directory,
                _ => Found::Special,
            })
        }
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(Found::Missing),
        Err(Errno::XDEV | Errno::LOOP) => Ok(Found::Outside),
        Err(other) => Err(other.into()),
    }
}

/// A handle to look at, nothing more: opening it neither reads nor blocks.
#[cfg(target_os = "linux")]
fn open_following_inside(tree: &Path, path: &Path) -> Result<rustix::fd::OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let root = rustix::fs::open(
        tree,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    loop {
        let opened = rustix::fs::openat2(
            &root,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        );
        match opened {
            // A rename raced with the walk; the kernel asks to try again.
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Without `openat2` the links are resolved first; nothing that could swap them
/// is running when jig looks.
#[cfg(not(target_os = "linux"))]
fn open_following_inside(tree: &Path, path: &Path) -> Result<rustix::fd::OwnedFd, Errno> {
    let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let root = tree.canonicalize().map_err(errno)?;
    let target = root.join(path).canonicalize().map_err(errno)?;
    if !target.starts_with(&root) {
        return Err(Errno::XDEV);
    }
    rustix::fs::open(
        &target,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// The first `max` bytes of the regular file `path` below `root`, following no
/// link at all, and whether there is more. `None` when there is no such file,
/// or something else in its place.
///
/// # Errors
/// Whatever the file system says while a regular file is read.
pub(crate) fn read_plain_file(
    root: &Path,
    path: &Path,
    max: usize,
) -> io::Result<Option<(Vec<u8>, bool)>> {
    let Some(name) = path.file_name() else {
        return Ok(None);
    };
    let parent = path.parent().unwrap_or(Path::new(""));
    let Ok(dir) = open_dir_beneath(root, parent, OnTheWay::MustExist) else {
        return Ok(None);
    };
    // NONBLOCK: a FIFO in the file's place must not hold jig up.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(&dir, name, flags, Mode::empty()) else {
        return Ok(None);
    };
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode as _) != FileType::RegularFile {
        return Ok(None);
    }
    let mut content = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    File::from(file).take(limit).read_to_end(&mut content)?;
    let more = content.len() > max;
    content.truncate(max);
    Ok(Some((content, more)))
}

/// The path of a repository, as the system's path type.
pub(crate) fn os_path(path: &jig_protocol::repo_path::RepoPath) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        std::fs::write(dir.path().join("secret"), "outside").unwrap();
        (dir, tree)
    }

    #[test]
    fn links_are_followed_inside_the_tree_only() {
        let (_dir, tree) = tree();
        std::fs::write(tree.join("a"), "12345").unwrap();
        symlink("a", tree.join("inside")).unwrap();
        symlink("../secret", tree.join("outside")).unwrap();
        symlink("/etc/passwd", tree.join("absolute")).unwrap();
        symlink("nowhere", tree.join("dangling")).unwrap();
        let look = |name: &str| look_inside(&tree, Path::new(name)).unwrap();
        assert_eq!(look("a"), Found::File(5));
        assert_eq!(look("inside"), Found::File(5));
        assert_eq!(look("outside"), Found::Outside);
        assert_eq!(look("absolute"), Found::Outside);
        assert_eq!(look("dangling"), Found::Missing);
        assert_eq!(look("a/b"), Found::Missing);
    }

    #[test]
    fn only_plain_files_are_read_and_only_so_far() {
        let (_dir, home) = tree();
        std::fs::write(home.join("note"), "0123456789").unwrap();
        symlink("../secret", home.join("link")).unwrap();
        let fifo = std::process::Command::new("mkfifo")
            .arg(home.join("fifo"))
            .status()
            .unwrap();
        assert!(fifo.success());
        let read = |name: &str, max| read_plain_file(&home, Path::new(name), max).unwrap();
        assert_eq!(read("note", 4), Some((b"0123".to_vec(), true)));
        assert_eq!(read("note", 10), Some((b"0123456789".to_vec(), false)));
        assert_eq!(read("link", 10), None);
        assert_eq!(read("fifo", 10), None);
        assert_eq!(read("missing", 10), None);
    }
}
