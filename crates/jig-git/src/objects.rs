//! Reading and writing git objects without asking a repository's configuration.
//!
//! Everything read is hashed and compared with its name: an object database
//! that an agent could write to may hold an object under a wrong name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::hash::Kind as HashKind;
use gix::objs::{Find, Kind, Write};
use gix::{ObjectId, odb};

/// Why an object could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The directory is no object database.
    #[error("could not open the object database {}", directory.display())]
    Open {
        /// The `objects` directory.
        directory: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The object is not there (a partial or broken repository).
    #[error("object {id} is missing from {}", directory.display())]
    Missing {
        /// The object.
        id: ObjectId,
        /// The `objects` directory.
        directory: PathBuf,
    },
    /// The object cannot be decoded, is of another kind, or does not hash to its
    /// name.
    #[error("object {id} in {} is damaged: {why}", directory.display())]
    Damaged {
        /// The object.
        id: ObjectId,
        /// The `objects` directory.
        directory: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The object could not be written.
    #[error("could not write an object into {}: {why}", directory.display())]
    Write {
        /// The `objects` directory.
        directory: PathBuf,
        /// What went wrong.
        why: String,
    },
}

/// An object database with everything it borrows.
#[derive(Clone)]
pub(crate) struct Objects {
    store: Arc<odb::Store>,
    directory: PathBuf,
    hash: HashKind,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Objects {
    /// Opens the database at `directory`, a git directory's `objects`.
    pub(crate) fn open(directory: &Path, hash: HashKind) -> Result<Self, ObjectError> {
        let options = odb::store::init::Options {
            // A multi-pack index is one more file that could be made to lie.
            use_multi_pack_index: false,
            current_dir: Some(directory.to_owned()),
            ..Default::default()
        };
        let store = odb::Store::at_opts(directory.to_owned(), hash, &mut None.into_iter(), options)
            .map_err(|source| ObjectError::Open {
                directory: directory.to_owned(),
                source,
            })?;
        Ok(Self {
            store: Arc::new(store),
            directory: directory.to_owned(),
            hash,
        })
    }

    pub(crate) const fn hash(&self) -> HashKind {
        self.hash
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A handle for one thread's work.
    pub(crate) fn handle(&self) -> odb::HandleArc {
        self.store.to_cache_arc()
    }

    /// The object's content, checked against its name.
    pub(crate) fn read(&self, id: &ObjectId, kind: Kind) -> Result<Vec<u8>, ObjectError> {
        if *id == ObjectId::empty_tree(self.hash) && kind == Kind::Tree {
            return Ok(Vec::new());
        }
        let mut buffer = Vec::new();
        let data = self.find(&self.handle(), id, kind, &mut buffer)?;
        Ok(data.to_vec())
    }

    /// Whether the object is there and is what it is named. For many objects:
    /// making a `handle` costs as much as reading a small one.
    pub(crate) fn check(
        &self,
        handle: &odb::HandleArc,
        id: &ObjectId,
        kind: Kind,
        buffer: &mut Vec<u8>,
    ) -> Result<(), ObjectError> {
        self.find(handle, id, kind, buffer).map(drop)
    }

    fn find<'a>(
        &self,
        handle: &odb::HandleArc,
        id: &ObjectId,
        kind: Kind,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], ObjectError> {
        let found = handle
            .try_find(id, buffer)
            .map_err(|error| self.damaged(id, error.to_string()))?;
        let Some(found) = found else {
            return Err(ObjectError::Missing {
                id: *id,
                directory: self.directory.clone(),
            });
        };
        if found.kind != kind {
            return Err(self.damaged(id, format!("it is a {}, not a {kind}", found.kind)));
        }
        let named = gix::objs::compute_hash(self.hash, kind, found.data)
            .map_err(|error| self.damaged(id, error.to_string()))?;
        if named != *id {
            return Err(self.damaged(id, format!("its content hashes to {named}")));
        }
        Ok(found.data)
    }

    /// The name that `data` has as an object.
    pub(crate) fn name_of(&self, kind: Kind, data: &[u8]) -> Result<ObjectId, ObjectError> {
        gix::objs::compute_hash(self.hash, kind, data).map_err(|error| ObjectError::Write {
            directory: self.directory.clone(),
            why: error.to_string(),
        })
    }

    /// Whether the object is there.
    pub(crate) fn contains(&self, id: &ObjectId) -> bool {
        *id == ObjectId::empty_tree(self.hash) || gix::objs::Exists::exists(&self.handle(), id)
    }

    /// Whether the object was there when packs were last looked for: what asks
    /// for many objects that are new would look for new packs each time.
    pub(crate) fn had(&self, handle: &odb::HandleArc, id: &ObjectId) -> bool {
        *id == ObjectId::empty_tree(self.hash) || handle.exists_without_refresh(id)
    }

    /// Follows tags to a commit; gives it and its tree.
    pub(crate) fn peel_to_commit(
        &self,
        id: &ObjectId,
    ) -> Result<(ObjectId, ObjectId), ObjectError> {
        let mut id = *id;
        loop {
            let mut buffer = Vec::new();
            let kind = self
                .handle()
                .try_find(&id, &mut buffer)
                .map_err(|error| self.damaged(&id, error.to_string()))?
                .map(|data| data.kind);
            match kind {
                None => {
                    return Err(ObjectError::Missing {
                        id,
                        directory: self.directory.clone(),
                    });
                }
                Some(Kind::Commit) => return Ok((id, self.commit_tree(&id)?)),
                Some(Kind::Tag) => {
                    let data = self.read(&id, Kind::Tag)?;
                    id = gix::objs::TagRefIter::from_bytes(&data, self.hash)
                        .target_id()
                        .map_err(|error| self.damaged(&id, error.to_string()))?;
                }
                Some(kind) => {
                    return Err(self.damaged(&id, format!("it is a {kind}, not a commit")));
                }
            }
        }
    }

    /// The tree of a commit.
    pub(crate) fn commit_tree(&self, id: &ObjectId) -> Result<ObjectId, ObjectError> {
        let data = self.read(id, Kind::Commit)?;
        gix::objs::CommitRefIter::from_bytes(&data, self.hash)
            .tree_id()
            .map_err(|error| self.damaged(id, error.to_string()))
    }

    /// The parents of a commit.
    pub(crate) fn commit_parents(&self, id: &ObjectId) -> Result<Vec<ObjectId>, ObjectError> {
        let data = self.read(id, Kind::Commit)?;
        Ok(gix::objs::CommitRefIter::from_bytes(&data, self.hash)
            .parent_ids()
            .collect())
    }

    /// Writes an object as a loose one and gives its name.
    ///
    /// A loose object that already lies there is replaced: it may be a planted
    /// one with other content.
    pub(crate) fn write(&self, kind: Kind, data: &[u8]) -> Result<ObjectId, ObjectError> {
        let id = self.name_of(kind, data)?;
        self.write_named(id, kind, data)
    }

    /// [`Objects::write`] of data whose name is known.
    pub(crate) fn write_named(
        &self,
        id: ObjectId,
        kind: Kind,
        data: &[u8],
    ) -> Result<ObjectId, ObjectError> {
        let failed = |why: String| ObjectError::Write {
            directory: self.directory.clone(),
            why,
        };
        let loose = odb::loose::Store::at(&self.directory, self.hash);
        let mut buffer = Vec::new();
        match loose.try_find(&id, &mut buffer) {
            Ok(None) => {}
            Ok(Some(there)) if there.kind == kind && there.data == data => return Ok(id),
            _ => {
                let path = loose.object_path(&id);
                if let Err(error) = std::fs::remove_file(&path)
                    && error.kind() != std::io::ErrorKind::NotFound
                {
                    return Err(failed(format!("{}: {error}", path.display())));
                }
            }
        }
        loose
            .write_buf_with_known_id(kind, data, id)
            .map_err(|error| failed(error.to_string()))
    }

    pub(crate) fn damaged(&self, id: &ObjectId, why: String) -> ObjectError {
        ObjectError::Damaged {
            id: *id,
            directory: self.directory.clone(),
            why,
        }
    }
}
