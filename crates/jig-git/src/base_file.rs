//! One file of a commit, found by walking down its trees: for what must be
//! known before anything is checked out.

use gix::ObjectId;
use gix::objs::tree::EntryKind;
use gix::objs::{Kind, TreeRefIter};
use jig_protocol::repo_path::RepoPath;

use crate::objects::{ObjectError, Objects};
use crate::repository::{Base, Repository};

/// What a commit has at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseFile {
    /// A regular file, executable or not.
    File(Vec<u8>),
    /// A regular file that is larger than was asked for.
    TooLarge {
        /// Its size in bytes.
        size: u64,
    },
    /// Nothing.
    Missing,
    /// A symbolic link.
    Link,
    /// A directory.
    Directory,
    /// A submodule.
    Submodule,
}

impl Repository {
    /// What `base` has at `path`: the blob as it is stored, without conversions.
    ///
    /// # Errors
    /// When an object on the way is missing or damaged.
    pub fn read_base_file(
        &self,
        base: Base,
        path: &RepoPath,
        max: usize,
    ) -> Result<BaseFile, ObjectError> {
        let objects = self.objects();
        let mut at = (base.tree(), EntryKind::Tree);
        if at.0 == ObjectId::empty_tree(objects.hash()) {
            return Ok(BaseFile::Missing);
        }
        for name in path.components() {
            if at.1 != EntryKind::Tree {
                return Ok(BaseFile::Missing);
            }
            match find(objects, &at.0, name)? {
                Some(entry) => at = entry,
                None => return Ok(BaseFile::Missing),
            }
        }
        Ok(match at.1 {
            EntryKind::Blob | EntryKind::BlobExecutable => {
                let bytes = objects.read(&at.0, Kind::Blob)?;
                if bytes.len() > max {
                    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    BaseFile::TooLarge { size }
                } else {
                    BaseFile::File(bytes)
                }
            }
            EntryKind::Link => BaseFile::Link,
            EntryKind::Tree => BaseFile::Directory,
            EntryKind::Commit => BaseFile::Submodule,
        })
    }
}

fn find(
    objects: &Objects,
    tree: &ObjectId,
    name: &[u8],
) -> Result<Option<(ObjectId, EntryKind)>, ObjectError> {
    let bytes = objects.read(tree, Kind::Tree)?;
    for entry in TreeRefIter::from_bytes(&bytes, objects.hash()) {
        let entry = entry.map_err(|error| objects.damaged(tree, error.to_string()))?;
        if entry.filename == name {
            return Ok(Some((entry.oid.to_owned(), entry.mode.kind())));
        }
    }
    Ok(None)
}
