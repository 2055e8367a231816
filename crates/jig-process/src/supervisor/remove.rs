//! Removing files (copies of credentials) from a directory that an agent could
//! write.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Mode, OFlags, open, openat, unlinkat};

/// Files to be removed, with their directories opened before anybody could
/// put something else in their place.
pub(crate) struct Removals(Vec<Removal>);

struct Removal {
    root: Option<OwnedFd>,
    name: OsString,
    below: OsString,
}

impl Removals {
    /// Opens the directories. One that is not there is reported at the end.
    pub(crate) fn prepare(list: &[(OsString, OsString)]) -> Self {
        let prepare = |(root, below): &(OsString, OsString)| Removal {
            root: open(Path::new(root), DIRECTORY, Mode::empty()).ok(),
            name: Path::new(root).join(below).into_os_string(),
            below: below.clone(),
        };
        Self(list.iter().map(prepare).collect())
    }

    /// Removes the files. Returns those that may still be there.
    pub(crate) fn remove(&self) -> Vec<OsString> {
        let failed = |removal: &&Removal| !matches!(removal.remove(), Ok(()));
        self.0
            .iter()
            .filter(failed)
            .map(|removal| removal.name.clone())
            .collect()
    }
}

/// Never through a link: the directory above a copy may have been replaced by
/// a link to where the original is.
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Removal {
    fn remove(&self) -> io::Result<()> {
        let root = self.root.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let path = Path::new(&self.below);
        let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        match descend(root, parent).and_then(|dir| unlink(dir.as_ref().unwrap_or(root), name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

fn descend(root: &OwnedFd, path: &Path) -> io::Result<Option<OwnedFd>> {
    let mut at: Option<OwnedFd> = None;
    for part in path.components() {
        let Component::Normal(name) = part else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let above = at.as_ref().unwrap_or(root);
        at = Some(openat(above, name, DIRECTORY, Mode::empty())?);
    }
    Ok(at)
}

fn unlink(directory: &OwnedFd, name: &OsStr) -> io::Result<()> {
    Ok(unlinkat(directory, name, AtFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn removals(root: &Path, below: &str) -> Removals {
        Removals::prepare(&[(root.into(), below.into())])
    }

    #[test]
    fn a_file_is_removed_and_a_missing_one_is_no_failure() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/token"), "x").unwrap();
        let removals = removals(dir.path(), "a/b/token");
        assert!(removals.remove().is_empty());
        assert!(!dir.path().join("a/b/token").exists());
        assert!(removals.remove().is_empty());
    }

    #[test]
    fn a_link_planted_above_the_copy_does_not_lead_to_the_original() {
        let dir = tempfile::tempdir().unwrap();
        let operator = tempfile::tempdir().unwrap();
        fs::write(operator.path().join("token"), "x").unwrap();
        let removals = removals(dir.path(), ".cli/token");
        std::os::unix::fs::symlink(operator.path(), dir.path().join(".cli")).unwrap();
        assert_eq!(removals.remove(), [dir.path().join(".cli/token")]);
        assert!(operator.path().join("token").exists());
    }

    #[test]
    fn nothing_above_the_directory_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("in")).unwrap();
        fs::write(dir.path().join("out"), "x").unwrap();
        let removals = removals(&dir.path().join("in"), "../out");
        assert_eq!(removals.remove().len(), 1);
        assert!(dir.path().join("out").exists());
    }
}
