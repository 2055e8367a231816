//! The tree an attempt started from: its paths, blobs, ignore rules and
//! attributes. Read once, before any agent ran; nothing can change it.

use std::collections::BTreeSet;
use std::sync::Mutex;

use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::Mode;
use gix::objs::Kind;
use gix::worktree::stack::State;
use gix::worktree::stack::state::ignore::{ParseIgnore, Source};
use gix::worktree::stack::state::{Attributes, Ignore, attributes};
use jig_protocol::repo_path::RepoPath;

use crate::changes::tree_order;
use crate::objects::{ObjectError, Objects};

/// What the base has at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PinnedKind {
    /// A file.
    File,
    /// An executable file.
    Executable,
    /// A symbolic link.
    Link,
    /// A submodule.
    Submodule,
}

/// One path of the base.
#[derive(Debug, Clone)]
pub struct PinnedEntry {
    /// The path.
    pub path: RepoPath,
    /// The blob; the commit, for a submodule.
    pub id: ObjectId,
    /// What it is.
    pub kind: PinnedKind,
}

/// The base's tree.
pub struct PinnedTree {
    id: ObjectId,
    entries: Vec<PinnedEntry>,
    submodules: BTreeSet<RepoPath>,
    objects: Objects,
    ignores: Mutex<gix::worktree::Stack>,
    attributes: gix::worktree::Stack,
    has_attributes: bool,
}

impl std::fmt::Debug for PinnedTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PinnedTree")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl PinnedTree {
    /// Reads the tree `id` from `objects`, which no agent can write to.
    pub(crate) fn read(objects: &Objects, id: ObjectId) -> Result<Self, ObjectError> {
        let validate = gix::validate::path::component::Options {
            protect_windows: false,
            protect_hfs: false,
            protect_ntfs: true,
        };
        let damaged = |why: String| objects.damaged(&id, why);
        let state = if id == ObjectId::empty_tree(objects.hash()) {
            gix::index::State::new(objects.hash())
        } else {
            gix::index::State::from_tree(&id, objects.handle(), validate)
                .map_err(|error| damaged(error.to_string()))?
        };
        let mut entries = Vec::with_capacity(state.entries().len());
        for entry in state.entries() {
            let kind = match entry.mode {
                Mode::FILE => PinnedKind::File,
                Mode::FILE_EXECUTABLE => PinnedKind::Executable,
                Mode::SYMLINK => PinnedKind::Link,
                Mode::COMMIT => PinnedKind::Submodule,
                // Old tools wrote other permission bits.
                mode if mode.bits() & 0o170_000 == 0o100_000 => PinnedKind::File,
                mode => return Err(damaged(format!("unknown mode {mode:?}"))),
            };
            let path = RepoPath::from_bytes(entry.path(&state).to_vec());
            entries.push(PinnedEntry {
                path,
                id: entry.id,
                kind,
            });
        }
        entries.sort_unstable_by(|l, r| tree_order(l.path.as_bytes(), r.path.as_bytes()));
        for pair in entries.windows(2) {
            if let [left, right] = pair
                && (left.path == right.path
                    || crate::changes::is_below(&right.path, left.path.as_bytes()))
            {
                return Err(damaged(format!("{} is there twice", left.path)));
            }
        }
        let submodules = entries
            .iter()
            .filter(|entry| entry.kind == PinnedKind::Submodule)
            .map(|entry| entry.path.clone())
            .collect();
        let has_attributes = entries
            .iter()
            .any(|entry| entry.path.file_name() == b".gitattributes");
        Ok(Self {
            id,
            entries,
            submodules,
            objects: objects.clone(),
            ignores: Mutex::new(ignore_stack(&state)),
            attributes: attribute_stack(&state).map_err(|error| damaged(error.to_string()))?,
            has_attributes,
        })
    }

    /// The tree's name.
    #[must_use]
    pub const fn id(&self) -> ObjectId {
        self.id
    }

    /// Every path, a directory's content right after where it would stand.
    #[must_use]
    pub fn entries(&self) -> &[PinnedEntry] {
        &self.entries
    }

    /// What the base has at `path`.
    #[must_use]
    pub fn get(&self, path: &RepoPath) -> Option<&PinnedEntry> {
        self.index_of(path).and_then(|at| self.entries.get(at))
    }

    pub(crate) fn index_of(&self, path: &RepoPath) -> Option<usize> {
        self.entries
            .binary_search_by(|entry| tree_order(entry.path.as_bytes(), path.as_bytes()))
            .ok()
    }

    /// Whether the base has `path`, or anything below it.
    #[must_use]
    pub fn tracks(&self, path: &RepoPath) -> bool {
        let at = self
            .entries
            .partition_point(|entry| tree_order(entry.path.as_bytes(), path.as_bytes()).is_lt());
        self.entries.get(at).is_some_and(|entry| {
            entry.path == *path || crate::changes::is_below(&entry.path, path.as_bytes())
        })
    }

    /// The submodules' paths.
    #[must_use]
    pub const fn submodules(&self) -> &BTreeSet<RepoPath> {
        &self.submodules
    }

    /// Whether the ignore files of the base match `path` (whether it is tracked
    /// is another question).
    #[must_use]
    pub fn is_ignored(&self, path: &RepoPath, is_directory: bool) -> bool {
        let mode = if is_directory { Mode::DIR } else { Mode::FILE };
        let mut stack = self
            .ignores
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        stack
            .at_entry(
                path.as_bytes().as_bstr(),
                Some(mode),
                &self.objects.handle(),
            )
            .is_ok_and(|platform| platform.is_excluded())
    }

    /// The files whose attributes name git LFS.
    ///
    /// # Errors
    /// When an attributes file cannot be read.
    pub fn lfs_attribute_files(&self) -> Result<Vec<RepoPath>, ObjectError> {
        let mut found = Vec::new();
        for entry in &self.entries {
            if entry.path.file_name() == b".gitattributes"
                && entry.kind != PinnedKind::Link
                && self.blob(&entry.id)?.contains_str("filter=lfs")
            {
                found.push(entry.path.clone());
            }
        }
        Ok(found)
    }

    /// Blobs of the tree that are not there, at most `limit`.
    pub(crate) fn missing(&self, limit: usize) -> Vec<ObjectId> {
        self.entries
            .iter()
            .filter(|entry| {
                entry.kind != PinnedKind::Submodule && !self.objects.contains(&entry.id)
            })
            .map(|entry| entry.id)
            .take(limit)
            .collect()
    }

    pub(crate) fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, ObjectError> {
        self.objects.read(id, Kind::Blob)
    }

    pub(crate) const fn objects(&self) -> &Objects {
        &self.objects
    }

    pub(crate) const fn has_attributes(&self) -> bool {
        self.has_attributes
    }

    /// A private copy of the attribute rules; `None` when there are none.
    pub(crate) fn attributes(&self) -> Option<gix::worktree::Stack> {
        self.has_attributes.then(|| self.attributes.clone())
    }
}

const CASE: gix::glob::pattern::Case = gix::glob::pattern::Case::Sensitive;

fn ignore_stack(state: &gix::index::State) -> gix::worktree::Stack {
    let ignore = Ignore::new(
        gix::ignore::Search::default(),
        gix::ignore::Search::default(),
        None::<&BStr>,
        Source::IdMapping,
        ParseIgnore {
            support_precious: false,
        },
    );
    stack(state, State::IgnoreStack(ignore))
}

fn attribute_stack(state: &gix::index::State) -> std::io::Result<gix::worktree::Stack> {
    let mut collection = gix::attrs::search::MetadataCollection::default();
    let mut buffer = Vec::new();
    let none: [std::path::PathBuf; 0] = [];
    let globals = gix::attrs::Search::new_globals(none, &mut buffer, &mut collection)?;
    let attributes = Attributes::new(globals, None, attributes::Source::IdMapping, collection);
    Ok(stack(state, State::AttributesStack(attributes)))
}

fn stack(index: &gix::index::State, state: State) -> gix::worktree::Stack {
    let mappings = state.id_mappings_from_index(index, index.path_backing(), CASE);
    gix::worktree::Stack::new("", state, CASE, Vec::new(), mappings)
}
