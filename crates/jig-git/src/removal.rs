//! Removing what others filled: read-only directories, endlessly deep ones,
//! links to elsewhere, places where something else is mounted.
//!
//! Links are removed, never followed; nothing behind a mount is touched; one
//! thing that stays does not keep the rest.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, fchmod, fstat};
use rustix::fs::{openat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// How deep directories are walked into before they are moved up instead: each
/// level holds a file descriptor and a stack frame.
const MAX_DEPTH: usize = 48;

/// A directory that was not removed completely.
#[derive(Debug, thiserror::Error)]
#[error("could not remove {}", path.display())]
pub struct RemoveError {
    /// The first path that stays.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl From<RemoveError> for io::Error {
    fn from(error: RemoveError) -> Self {
        Self::new(error.source.kind(), format!("{error}: {}", error.source))
    }
}

/// Removes `path` and everything in it. Gone already is fine.
///
/// # Errors
/// Names the first path that stays. All that could be removed is gone.
pub fn remove_tree(path: &Path) -> Result<(), RemoveError> {
    let stays = |source: io::Error| RemoveError {
        path: path.to_owned(),
        source,
    };
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(stays(io::ErrorKind::InvalidInput.into()));
    };
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let parent = match openat(CWD, parent, flags, Mode::empty()) {
        Ok(parent) => parent,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(stays(error.into())),
    };
    remove(parent.as_fd(), name.as_bytes()).map_err(|failure| RemoveError {
        path: path.join(failure.below),
        source: failure.errno.into(),
    })
}

/// Removes whatever `name` in `directory` is. Gone already is fine.
pub(crate) fn remove_at(directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
    remove(directory, name).map_err(|failure| failure.errno)
}

/// What stays, below what was to be removed.
#[derive(Debug)]
struct Failure {
    below: PathBuf,
    errno: Errno,
}

fn remove(parent: BorrowedFd<'_>, name: &[u8]) -> Result<(), Failure> {
    let at_top = |errno| Failure {
        below: PathBuf::new(),
        errno,
    };
    if !is_directory(parent, name).map_err(at_top)? {
        return unlink(parent, name, AtFlags::empty()).map_err(at_top);
    }
    let mut removal = Removal {
        top: open_directory(parent, name).map_err(at_top)?,
        moved: 0,
        failure: None,
    };
    removal.empty_top().map_err(at_top)?;
    match removal.failure {
        Some(failure) => Err(failure),
        None => unlink(parent, name, AtFlags::REMOVEDIR).map_err(at_top),
    }
}

/// One removal in progress.
struct Removal {
    top: OwnedFd,
    /// Directories that were moved up so far.
    moved: u64,
    /// The first thing that stays.
    failure: Option<Failure>,
}

impl Removal {
    /// Empties the top, again and again while directories move up into it.
    fn empty_top(&mut self) -> rustix::io::Result<()> {
        let top = rustix::io::fcntl_dupfd_cloexec(&self.top, 0)?;
        loop {
            let moved = self.moved;
            self.empty(top.as_fd(), Path::new(""), 0);
            if self.moved == moved {
                return Ok(());
            }
        }
    }

    fn empty(&mut self, directory: BorrowedFd<'_>, at: &Path, depth: usize) {
        let names = match list(directory) {
            Ok(names) => names,
            Err(errno) => return self.fail(at, errno),
        };
        for name in names {
            let path = at.join(&name);
            if let Err(errno) = self.remove_entry(directory, name.as_bytes(), &path, depth) {
                self.fail(&path, errno);
            }
        }
    }

    fn remove_entry(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        path: &Path,
        depth: usize,
    ) -> rustix::io::Result<()> {
        if !is_directory(directory, name)? {
            return unlink(directory, name, AtFlags::empty());
        }
        let inner = open_directory(directory, name)?;
        if depth >= MAX_DEPTH {
            let free = self.free_name()?;
            return renameat(directory, name, &self.top, free.as_str());
        }
        self.empty(inner.as_fd(), path, depth + 1);
        drop(inner);
        match unlink(directory, name, AtFlags::REMOVEDIR) {
            // Why it is not empty was recorded where it happened.
            Err(Errno::NOTEMPTY) if self.failure.is_some() => Ok(()),
            other => other,
        }
    }

    /// A name that nothing at the top has.
    fn free_name(&mut self) -> rustix::io::Result<String> {
        loop {
            self.moved += 1;
            let name = format!(".removing-{}", self.moved);
            match statat(&self.top, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => return Ok(name),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn fail(&mut self, path: &Path, errno: Errno) {
        self.failure.get_or_insert_with(|| Failure {
            below: path.to_owned(),
            errno,
        });
    }
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
    let opened = match open_here(parent, name) {
        Err(Errno::ACCESS) => {
            // Nothing is running that could swap it for a link meanwhile.
            chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
            open_here(parent, name)?
        }
        other => other?,
    };
    let mode = Mode::from_raw_mode(fstat(&opened)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        fchmod(&opened, Mode::RWXU)?;
    }
    Ok(opened)
}

/// Opens a directory unless something is mounted there.
#[cfg(target_os = "linux")]
fn open_here(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    loop {
        match openat2(parent, name, flags, Mode::empty(), resolve) {
            // A rename elsewhere raced with the look; the kernel asks again.
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Opens a directory unless another file system is mounted there.
#[cfg(not(target_os = "linux"))]
fn open_here(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(parent, name, flags, Mode::empty())?;
    if fstat(&opened)?.st_dev != fstat(parent)?.st_dev {
        return Err(Errno::XDEV);
    }
    Ok(opened)
}

/// Every name in a directory. All are read before any is removed, since a
/// listing that is changed underneath may skip names.
fn list(directory: BorrowedFd<'_>) -> rustix::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name.to_vec()));
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn hostile_trees_go_and_what_links_name_stays() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        std::fs::create_dir_all(tree.join("locked/inner")).unwrap();
        std::fs::write(tree.join("locked/inner/file"), "x").unwrap();
        std::fs::create_dir(dir.path().join("outside")).unwrap();
        std::fs::write(dir.path().join("outside/keep"), "x").unwrap();
        symlink("../outside", tree.join("link")).unwrap();
        for locked in ["locked/inner", "locked"] {
            let mode = std::fs::Permissions::from_mode(0o000);
            std::fs::set_permissions(tree.join(locked), mode).unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        assert!(dir.path().join("outside/keep").exists());
        remove_tree(&tree).unwrap();
        remove_tree(&tree.join("no/parent/either")).unwrap();
    }

    #[test]
    fn a_tree_deeper_than_descriptors_and_path_lengths_goes() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        // Names that the removal itself would use are taken.
        std::fs::write(tree.join(".removing-1"), "x").unwrap();
        std::fs::create_dir(tree.join(".removing-2")).unwrap();
        let flags = OFlags::DIRECTORY | OFlags::RDONLY;
        let mut at = openat(CWD, &tree, flags, Mode::empty()).unwrap();
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&at, c"deep", Mode::RWXU).unwrap();
            at = openat(&at, c"deep", flags, Mode::empty()).unwrap();
        }
        drop(at);
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }

    #[test]
    fn a_link_in_the_place_of_the_tree_is_only_a_link() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("outside")).unwrap();
        std::fs::write(dir.path().join("outside/keep"), "x").unwrap();
        symlink("outside", dir.path().join("tree")).unwrap();
        remove_tree(&dir.path().join("tree")).unwrap();
        assert!(dir.path().join("tree").symlink_metadata().is_err());
        assert!(dir.path().join("outside/keep").exists());
    }

    /// Runs itself again in a mount namespace of its own, where that can be
    /// had.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_mounted_inside_stays_and_is_named() {
        const INSIDE: &str = "JIG_TEST_MOUNT_NAMESPACE";
        if std::env::var_os(INSIDE).is_none() {
            let name = "removal::tests::what_is_mounted_inside_stays_and_is_named";
            let output = std::process::Command::new("unshare")
                .args(["--mount", "--map-root-user", "--"])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", name])
                .env(INSIDE, "1")
                .output();
            match output {
                Ok(output)
                    if String::from_utf8_lossy(&output.stdout).contains("running 1 test") =>
                {
                    assert!(output.status.success(), "{output:?}");
                }
                // There is no mount namespace to be had here.
                _ => {}
            }
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (tree, outside) = (dir.path().join("tree"), dir.path().join("outside"));
        std::fs::create_dir_all(tree.join("a/mount")).unwrap();
        std::fs::write(tree.join("b"), "x").unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("keep"), "x").unwrap();
        let mounted = std::process::Command::new("mount")
            .arg("--bind")
            .args([&outside, &tree.join("a/mount")])
            .status()
            .unwrap();
        assert!(mounted.success());
        // The same file system, so that only the mount itself tells.
        let error = remove_tree(&tree).unwrap_err();
        assert_eq!(error.path, tree.join("a/mount"));
        assert!(outside.join("keep").exists());
        assert!(!tree.join("b").exists(), "the rest is gone");
    }
}
