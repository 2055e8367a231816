//! The operator's index while an attempt works in the checkout itself.
//!
//! jig writes the index anew before commands run, so that nothing an agent left
//! in it is ever committed. What the operator had staged comes back at the end,
//! unless a commit was made in between, which is what the index then stands for.

use std::io;
use std::path::{Path, PathBuf};

use super::manifest::replace_file;

/// A copy of the index.
#[derive(Debug)]
pub(crate) struct SavedIndex {
    index: PathBuf,
    pub(super) copy: PathBuf,
}

impl SavedIndex {
    /// Copies the index of `git_dir` into the attempt's directory.
    pub(crate) fn take(git_dir: &Path, directory: &Path) -> io::Result<Self> {
        let saved = Self::of(git_dir, directory);
        match std::fs::read(&saved.index) {
            Ok(bytes) => replace_file(&saved.copy, &bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(saved)
    }

    /// Where it is, or would be.
    pub(super) fn of(git_dir: &Path, directory: &Path) -> Self {
        Self {
            index: git_dir.join("index"),
            copy: directory.join("operator-index"),
        }
    }

    /// Whether there is a copy, and the index is not what it was.
    pub(super) fn differs(&self) -> bool {
        let now = std::fs::read(&self.index).ok();
        std::fs::read(&self.copy).is_ok_and(|saved| now != Some(saved))
    }

    /// Puts the operator's index back, byte for byte. Nothing may be running.
    pub(crate) fn put_back(&self) -> io::Result<()> {
        let saved = match std::fs::read(&self.copy) {
            Ok(saved) => saved,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if std::fs::read(&self.index).is_ok_and(|now| now == saved) {
            return Ok(());
        }
        replace_file(&self.index, &saved)
    }
}
