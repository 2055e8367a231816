//! Removing directories that others filled: read-only ones, endlessly deep
//! ones, links to elsewhere, places where something else is mounted.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// How deep directories are walked into before they are moved up instead: each
/// level holds a file descriptor and a stack frame.
const MAX_DEPTH: usize = 48;

/// Why a directory was not removed completely.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// Something in it stays; the rest is gone.
    #[error("could not remove {}", path.display())]
    Stays {
        /// The first path that stays.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Removes `path` and everything in it; nothing there is success. Links are
/// removed, never followed; other file systems mounted inside are left alone
/// and are an error.
///
/// # Errors
/// Names the first path that stays. All that could be removed is gone.
pub(crate) fn remove_tree(path: &Path) -> Result<(), RemoveError> {
    let stays = |source: io::Error| RemoveError::Stays {
        path: path.to_owned(),
        source,
    };
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(stays(io::ErrorKind::InvalidInput.into()));
    };
    let parent = match open_dir(rustix::fs::CWD, parent.as_os_str()) {
        Ok(parent) => parent,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(stays(error.into())),
    };
    let mut removal = match Removal::start(&parent, name) {
        Ok(Some(removal)) => removal,
        Ok(None) => return Ok(()),
        Err(error) => return Err(stays(error.into())),
    };
    removal.empty_root();
    if let Some((below, source)) = removal.first_failure {
        let path = path.join(below);
        return Err(RemoveError::Stays { path, source });
    }
    rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).map_err(|error| stays(error.into()))
}

/// One removal in progress.
struct Removal {
    root: OwnedFd,
    device: u64,
    /// Directories that were moved up; each gets a fresh name.
    moved: u64,
    first_failure: Option<(PathBuf, io::Error)>,
}

impl Removal {
    /// Opens what is to be removed; `None` when it is gone already.
    fn start(parent: &OwnedFd, name: &OsStr) -> Result<Option<Self>, Errno> {
        let stat = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error),
        };
        if FileType::from_raw_mode(stat.st_mode as _) != FileType::Directory {
            rustix::fs::unlinkat(parent, name, AtFlags::empty())?;
            return Ok(None);
        }
        let root = open_for_removal(parent.as_fd(), name)?;
        let stat = rustix::fs::fstat(&root)?;
        Ok(Some(Self {
            root,
            device: device(&stat),
            moved: 0,
            first_failure: None,
        }))
    }

    /// Empties the root, again and again while directories move up into it.
    fn empty_root(&mut self) {
        let Ok(root) = self.root.try_clone() else {
            return self.fail(Path::new(""), io::Error::other("no file descriptor left"));
        };
        loop {
            let moved = self.moved;
            self.empty(root.as_fd(), Path::new(""), 0);
            if self.moved == moved {
                return;
            }
        }
    }

    fn empty(&mut self, dir: BorrowedFd<'_>, at: &Path, depth: usize) {
        let names = match list(dir) {
            Ok(names) => names,
            Err(error) => return self.fail(at, error.into()),
        };
        for name in names {
            let path = at.join(&name);
            if let Err(error) = self.remove_entry(dir, &name, &path, depth) {
                self.fail(&path, error.into());
            }
        }
    }

    fn remove_entry(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        depth: usize,
    ) -> Result<(), Errno> {
        let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode as _) != FileType::Directory {
            return rustix::fs::unlinkat(dir, name, AtFlags::empty());
        }
        if device(&stat) != self.device {
            return Err(Errno::XDEV);
        }
        let inner = open_for_removal(dir, name)?;
        if depth >= MAX_DEPTH {
            self.moved += 1;
            let fresh = format!(".removing-{}-{}", self.moved, path.as_os_str().len());
            return rustix::fs::renameat(dir, name, &self.root, fresh.as_str());
        }
        self.empty(inner.as_fd(), path, depth + 1);
        match rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR) {
            // Why it is not empty was recorded where it happened.
            Err(Errno::NOTEMPTY) if self.first_failure.is_some() => Ok(()),
            other => other,
        }
    }

    fn fail(&mut self, path: &Path, error: io::Error) {
        self.first_failure
            .get_or_insert_with(|| (path.to_owned(), error));
    }
}

/// The file system an entry lies on.
fn device(stat: &rustix::fs::Stat) -> u64 {
    #[cfg(target_os = "linux")]
    let device = stat.st_dev;
    #[cfg(not(target_os = "linux"))]
    let device = stat.st_dev as u64;
    device
}

fn open_dir(at: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// Opens a directory so that its entries can be removed, whatever its mode.
fn open_for_removal(at: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let opened = match open_dir(at, name) {
        Err(Errno::ACCESS) => {
            // Known to be a directory; nothing runs that could swap it.
            rustix::fs::chmodat(at, name, Mode::RWXU, AtFlags::empty())?;
            open_dir(at, name)?
        }
        other => other?,
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode as _);
    if !mode.contains(Mode::RWXU) {
        rustix::fs::fchmod(&opened, Mode::RWXU)?;
    }
    Ok(opened)
}

/// Every name in a directory. All are read before any is removed, since a
/// listing that is changed underneath may skip names.
fn list(dir: BorrowedFd<'_>) -> Result<Vec<OsString>, Errno> {
    let own = rustix::fs::openat(
        dir,
        c".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut names = Vec::new();
    for entry in Dir::new(own)? {
        let name: CString = entry?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push(OsString::from_vec(name.into_bytes()));
        }
    }
    names.sort_unstable_by(|left, right| left.as_bytes().cmp(right.as_bytes()));
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
    }

    #[test]
    fn a_tree_deeper_than_descriptors_and_path_lengths_goes() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        let mut at = open_dir(rustix::fs::CWD, tree.as_os_str()).unwrap();
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&at, c"deep", Mode::RWXU).unwrap();
            at = open_dir(&at, OsStr::new("deep")).unwrap();
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
}
