//! Copies of what a tree has beyond the base, by path: for a person, who cannot
//! find anything by its hash.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::capture::{Capture, CaptureError};
use super::entry::{Content, EntryKind};
use super::guard::TreeGuard;

impl TreeGuard {
    /// Copies what a capture has beyond the base to `directory`, which is new:
    /// files and links, ignored files and build outputs aside. Gives how many.
    ///
    /// # Errors
    /// When one cannot be copied, or its content was more than is kept.
    pub async fn copy_kept(
        &self,
        capture: &Capture,
        directory: PathBuf,
    ) -> Result<usize, CaptureError> {
        let (guard, capture) = (self.clone(), capture.clone());
        let work = move || guard.copy_kept_blocking(&capture, &directory);
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or(Err(CaptureError::Interrupted))
    }

    fn copy_kept_blocking(
        &self,
        capture: &Capture,
        directory: &Path,
    ) -> Result<usize, CaptureError> {
        let mut copied = 0;
        for entry in capture.entries() {
            let is_beyond = matches!(entry.content, Content::Hash(_))
                || (entry.kind == EntryKind::Link && !matches!(entry.content, Content::Pinned));
            if !is_beyond
                || self.is_build_output(&entry.path)
                || self.is_ignored(&entry.path, false)
            {
                continue;
            }
            let name = directory.join(OsStr::from_bytes(entry.path.as_bytes()));
            let copy = || -> std::io::Result<()> {
                std::fs::create_dir_all(name.parent().unwrap_or(directory))?;
                match (entry.content, &entry.target) {
                    (_, Some(target)) => symlink(OsStr::from_bytes(target), &name),
                    (Content::Hash(hash), None) => self.store().link_to(&hash, &name),
                    _ => Ok(()),
                }
            };
            copy().map_err(|source| CaptureError::Store {
                path: name.clone(),
                source,
            })?;
            copied += 1;
        }
        Ok(copied)
    }
}
