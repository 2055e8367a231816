//! A capture: everything in a work tree and the metadata around it, at one
//! moment.

use std::path::PathBuf;
use std::sync::Arc;

use jig_protocol::repo_path::RepoPath;

use super::entry::{Entries, Entry, EntryKind};
use super::metadata::{Metadata, Owner};
use crate::conversions::ConvertError;
use crate::run::GitError;

/// Why a tree could not be captured.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The tree's root is no longer the directory it was.
    #[error("{} is no longer the directory that was prepared", path.display())]
    RootReplaced {
        /// The root.
        path: PathBuf,
    },
    /// A directory could not be listed for want of resources.
    #[error("could not list {path} in {}", root.display())]
    Walk {
        /// The root.
        root: PathBuf,
        /// The directory.
        path: RepoPath,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The tree holds more than a capture can.
    #[error("{} holds more than {limit} entries", root.display())]
    TooManyEntries {
        /// The root.
        root: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// The metadata could not be read.
    #[error("could not read the metadata of {}", git_dir.display())]
    Metadata {
        /// The git directory.
        git_dir: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The private store could not be written.
    #[error("could not keep content in {}", path.display())]
    Store {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A pinned blob could not be brought into its checkout form.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// References could not be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The work was stopped by a panic or a shutdown.
    #[error("the capture was interrupted")]
    Interrupted,
}

/// A tree and its metadata as they were. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Capture(pub(crate) Arc<CaptureData>);

#[derive(Debug)]
pub(crate) struct CaptureData {
    pub(crate) entries: Entries,
    pub(crate) metadata: Metadata,
}

impl Capture {
    /// Everything but the root, a directory right before what lies in it.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.0.entries.0
    }

    /// What lies at `path`.
    #[must_use]
    pub fn get(&self, path: &RepoPath) -> Option<&Entry> {
        self.0.entries.get(path.as_bytes())
    }

    /// The size of the regular file at `path`; `None` when there is none.
    #[must_use]
    pub fn file_size(&self, path: &RepoPath) -> Option<u64> {
        self.get(path)
            .filter(|entry| entry.kind == EntryKind::File)
            .map(Entry::size)
    }

    /// What `HEAD` of the attempt's repository held: an object's name, or
    /// `ref: refs/heads/…`.
    #[must_use]
    pub fn head(&self) -> Option<String> {
        self.0.metadata.of(Owner::Attempt)?.head_text()
    }

    /// The value of a reference of the attempt's repository.
    #[must_use]
    pub fn reference(&self, name: &str) -> Option<String> {
        self.0.metadata.of(Owner::Attempt)?.reference_text(name)
    }

    pub(crate) fn metadata(&self) -> &Metadata {
        &self.0.metadata
    }
}
