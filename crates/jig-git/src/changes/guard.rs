//! The guard of one tree: the one way to capture, compare and restore it.

use std::collections::{BTreeSet, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use jig_protocol::definition::PathPattern;
use jig_protocol::limits;
use jig_protocol::repo_path::RepoPath;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat, stat};

use super::capture::{Capture, CaptureData, CaptureError};
use super::compare::Changes;
use super::entry::{Content, Entries, Entry, EntryKind, FileTime};
use super::fingerprint::{PinnedHashes, hash_all, open_file, take_over};
use super::metadata::{Metadata, Owner, PutBackError, RepoMetadata, Scope};
use super::restore::{RestoreError, RestoreReport, Selection};
use super::store::{Budget, ContentStore, read_as};
use super::walk::{MAX_ENTRIES, WalkError, walk};
use crate::attempt_repo::{AttemptRepo, AttemptRepoError};
use crate::blobs::Known;
use crate::commit::CommitError;
use crate::conversions::Conversions;
use crate::parallel;
use crate::pinned_tree::{PinnedKind, PinnedTree};
use crate::run::Invocation;
use crate::tree::Leaf;

/// What a guard has to know besides the attempt's repository.
#[derive(Debug, Clone)]
pub struct GuardOptions {
    /// Directories that commands may fill: never part of a commit.
    pub build_outputs: Vec<PathPattern>,
    /// How many bytes of content may be kept for exact restore.
    pub content_bytes: u64,
    /// How many files may be kept.
    pub content_files: usize,
}

impl Default for GuardOptions {
    fn default() -> Self {
        Self {
            build_outputs: Vec::new(),
            content_bytes: limits::CONTENT_BUDGET_BYTES as u64,
            content_files: limits::CONTENT_BUDGET_FILES as usize,
        }
    }
}

/// Captures, compares and restores one work tree. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TreeGuard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    repo: AttemptRepo,
    options: GuardOptions,
    root: OwnedFd,
    scopes: Vec<Scope>,
    store: ContentStore,
    hashes: PinnedHashes,
    conversions: Conversions,
    known: Known,
}

/// File systems stamp files with the kernel's tick; a file changed within this
/// of a capture could change again without new times.
const TICK_NANOS: i64 = 40_000_000;

impl TreeGuard {
    pub(crate) fn new(repo: &AttemptRepo, options: GuardOptions) -> Result<Self, AttemptRepoError> {
        let io = |path: PathBuf, source| AttemptRepoError::Io { path, source };
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = openat(CWD, repo.tree(), flags, Mode::empty())
            .map_err(|errno| io(repo.tree().to_owned(), errno.into()))?;
        let budget = Budget {
            bytes: options.content_bytes,
            files: options.content_files,
        };
        let directory = repo.directory().join("content");
        let store =
            ContentStore::open(&directory, budget).map_err(|source| io(directory, source))?;
        let helper = repo.directory().join("convert");
        let conversions = Conversions::new(
            repo.pinned().clone(),
            repo.eol_settings(),
            repo.git().clone(),
            helper,
        );
        let inner = Inner {
            scopes: Scope::around(repo),
            repo: repo.clone(),
            options,
            root,
            store,
            hashes: PinnedHashes::default(),
            conversions,
            known: Known::default(),
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Captures the tree and the metadata around it; `previous` is the latest
    /// earlier capture, if any, and makes unchanged files cheap. Content that
    /// differs from the base is kept for a restore.
    ///
    /// # Errors
    /// When the tree cannot be listed or content cannot be kept.
    pub async fn capture(&self, previous: Option<&Capture>) -> Result<Capture, CaptureError> {
        let (guard, previous) = (self.clone(), previous.cloned());
        let work = move || guard.0.capture(previous.as_ref());
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or(Err(CaptureError::Interrupted))
    }

    /// What differs between two captures of this tree.
    #[must_use]
    pub fn compare(&self, before: &Capture, after: &Capture) -> Changes {
        super::compare::compare(before, after, self.pinned().submodules())
    }

    /// Makes the selected paths what they were in `to`, then captures again and
    /// reports what is on disk. `now` is the latest capture. Metadata is left
    /// alone (see [`TreeGuard::put_back_metadata`]).
    ///
    /// # Errors
    /// When the tree cannot be captured. A path that could not be restored is no
    /// error but part of the report.
    pub async fn restore(
        &self,
        to: &Capture,
        now: &Capture,
        what: Selection<'_>,
    ) -> Result<RestoreReport, RestoreError> {
        let (guard, to, now) = (self.clone(), to.clone(), now.clone());
        let what = what.to_owned_paths();
        let work = move || super::restore::restore(&guard, &to, &now, what.as_ref());
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or(Err(RestoreError::Capture(CaptureError::Interrupted)))
    }

    /// Puts one owner's metadata back byte for byte, jig's own references and
    /// what is named in `stays` (see [`MetadataChange::name`]) aside.
    ///
    /// [`MetadataChange::name`]: super::MetadataChange::name
    ///
    /// Captures from before must not be compared with later ones afterwards
    /// without a new capture.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub async fn put_back_metadata(
        &self,
        to: &Capture,
        now: &Capture,
        owner: Owner,
        stays: &BTreeSet<PathBuf>,
    ) -> Result<(), PutBackError> {
        let (to, now, stays) = (to.clone(), now.clone(), stays.clone());
        let work = move || match (to.metadata().of(owner), now.metadata().of(owner)) {
            (Some(to), Some(now)) => super::put_back::put_back(to, now, &stays),
            _ => Ok(()),
        };
        let path = self.0.repo.git_dir().to_owned();
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or_else(|error| {
                Err(PutBackError {
                    path,
                    source: std::io::Error::other(error),
                })
            })
    }

    /// Forgets kept content that `capture` does not need.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub async fn forget_content_except(&self, capture: &Capture) -> Result<(), CaptureError> {
        let (guard, capture) = (self.clone(), capture.clone());
        let work = move || guard.0.forget_content_except(&capture);
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or(Err(CaptureError::Interrupted))
    }

    /// Paths of a capture whose content is known only by its hash: restoring
    /// one of them, once changed, is not possible.
    #[must_use]
    pub fn fingerprint_only(&self, capture: &Capture) -> Vec<RepoPath> {
        let missing = |entry: &&Entry| matches!(entry.content, Content::Hash(hash) if !self.0.store.holds(&hash));
        capture
            .entries()
            .iter()
            .filter(missing)
            .map(|entry| entry.path.clone())
            .collect()
    }

    /// Whether the ignore files of the base commit ignore `path`. What the base
    /// tracks is never ignored.
    #[must_use]
    pub fn is_ignored(&self, path: &RepoPath, is_directory: bool) -> bool {
        !self.pinned().tracks(path) && self.pinned().is_ignored(path, is_directory)
    }

    /// Whether the base commit has a file at `path`, or anything below it.
    #[must_use]
    pub fn is_tracked_in_base(&self, path: &RepoPath) -> bool {
        self.pinned().tracks(path)
    }

    /// Whether `path` is a build output: granted, and not tracked in the base.
    #[must_use]
    pub fn is_build_output(&self, path: &RepoPath) -> bool {
        self.0
            .options
            .build_outputs
            .iter()
            .any(|pattern| pattern.matches(path))
            && !self.pinned().tracks(path)
    }

    /// The repository whose tree is guarded.
    #[must_use]
    pub fn repo(&self) -> &AttemptRepo {
        &self.0.repo
    }

    pub(crate) fn pinned(&self) -> &Arc<PinnedTree> {
        self.0.repo.pinned()
    }

    pub(crate) fn root(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.root.as_fd()
    }

    pub(crate) fn store(&self) -> &ContentStore {
        &self.0.store
    }

    pub(crate) fn conversions(&self) -> &Conversions {
        &self.0.conversions
    }

    /// What git has for captured content, as far as it was found out.
    pub(crate) fn known(&self) -> &Known {
        &self.0.known
    }

    /// What git has for an entry, if that is known without reading it.
    pub(crate) fn known_leaf(&self, entry: &Entry) -> Option<Leaf> {
        let pin = self.pinned().get(&entry.path);
        let id = match (entry.kind, entry.content) {
            (EntryKind::File, Content::Pinned) => pin?.id,
            (EntryKind::File, Content::Hash(hash)) => self.known().blob(&entry.path, &hash)?,
            _ => return None,
        };
        let executable = match pin {
            Some(pin) if !self.0.repo.file_mode() => pin.kind == PinnedKind::Executable,
            _ => entry.is_executable(),
        };
        Some((
            if executable {
                PinnedKind::Executable
            } else {
                PinnedKind::File
            },
            id,
        ))
    }

    /// The content that `entry` had when it was captured: from the store, else
    /// from the tree if it still is the same.
    pub(crate) fn captured_content(
        &self,
        entry: &Entry,
        hash: &[u8; 32],
    ) -> Result<Option<Vec<u8>>, CommitError> {
        let io = |source| CommitError::Io {
            path: self.0.store.directory().to_owned(),
            source,
        };
        // It is held in memory; a sparse file of any size costs its writer nothing.
        if entry.stat.size > limits::CONTENT_BUDGET_BYTES as u64 {
            return Err(CommitError::TooLarge {
                path: entry.path.clone(),
                bytes: entry.stat.size,
            });
        }
        let size = entry.stat.size;
        if let Some(bytes) = self.0.store.read_kept(hash, size).map_err(io)? {
            return Ok(Some(bytes));
        }
        match open_file(self.root(), entry) {
            Some((file, _)) => read_as(file, hash, size).map_err(io),
            None => Ok(None),
        }
    }

    /// [`TreeGuard::capture`] for a thread that may block.
    pub(crate) fn capture_blocking(
        &self,
        previous: Option<&Capture>,
    ) -> Result<Capture, CaptureError> {
        self.0.capture(previous)
    }
}

impl Inner {
    fn capture(&self, previous: Option<&Capture>) -> Result<Capture, CaptureError> {
        let racy_since = self
            .racy_since()
            .map_err(|source| self.store_error(source))?;
        let metadata = self.metadata(previous, racy_since)?;
        self.check_root()?;
        let threads = parallel::threads();
        let mut entries =
            walk(self.root.as_fd(), threads, racy_since).map_err(|error| self.walk_error(error))?;
        let known = previous.map(|capture| &capture.0.entries);
        let fresh = previous.is_none() && self.repo.take_fresh();
        let unknown = take_over(&mut entries, known, self.repo.pinned(), fresh);
        hash_all(
            self.root.as_fd(),
            &mut entries,
            &unknown,
            self.repo.pinned(),
            &self.hashes,
            &self.conversions,
            threads,
        )?;
        self.keep(&entries)
            .map_err(|source| self.store_error(source))?;
        let entries = Entries(Arc::new(entries));
        Ok(Capture(Arc::new(CaptureData { entries, metadata })))
    }

    /// From when on a file's change is too close to now.
    fn racy_since(&self) -> std::io::Result<FileTime> {
        let now = self.store.clock()?;
        let same_device = fstat(&self.root)?.st_dev == stat(self.store.directory())?.st_dev;
        // Another file system may have coarser times, or another clock.
        let margin = if same_device && now.nanos % 1_000_000_000 != 0 {
            TICK_NANOS
        } else {
            2_000_000_000
        };
        let nanos =
            i128::from(now.seconds) * 1_000_000_000 + i128::from(now.nanos) - i128::from(margin);
        let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).unwrap_or(0);
        Ok(FileTime {
            seconds,
            nanos: u32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or(0),
        })
    }

    fn metadata(
        &self,
        previous: Option<&Capture>,
        racy_since: FileTime,
    ) -> Result<Metadata, CaptureError> {
        let mut repositories = Vec::with_capacity(self.scopes.len());
        for scope in &self.scopes {
            let earlier = previous.and_then(|capture| capture.metadata().of(scope.owner));
            let mut found = RepoMetadata::read(scope, earlier, racy_since).map_err(|source| {
                CaptureError::Metadata {
                    git_dir: scope.git_dir.clone(),
                    source,
                }
            })?;
            if found.refs.is_none() && earlier.is_none_or(|earlier| earlier.leaves_git_safe(&found))
            {
                found.refs = Some(self.references_by_git(scope)?);
            }
            repositories.push(found);
        }
        Ok(Metadata { repositories })
    }

    /// References of a repository that keeps them in tables, once its
    /// configuration is known to be what it was.
    fn references_by_git(
        &self,
        scope: &Scope,
    ) -> Result<std::collections::BTreeMap<String, crate::refs::RefValue>, CaptureError> {
        let format = "--format=%(objectname) %(refname)";
        let run = Invocation::new(["for-each-ref", format]).git_dir(&scope.git_dir);
        let listed = tokio::runtime::Handle::current().block_on(self.repo.git().run(run))?;
        let mut refs: std::collections::BTreeMap<_, _> = crate::refs::parse_packed(&listed)
            .into_iter()
            .map(|(name, id)| (name, crate::refs::RefValue::Object(id)))
            .collect();
        let run =
            Invocation::new(["rev-parse", "--symbolic-full-name", "HEAD"]).git_dir(&scope.git_dir);
        let head = tokio::runtime::Handle::current().block_on(self.repo.git().run_any(run))?;
        let name = String::from_utf8_lossy(head.stdout.trim_ascii()).into_owned();
        refs.insert("HEAD".into(), crate::refs::RefValue::Symbolic(name));
        Ok(refs)
    }

    fn check_root(&self) -> Result<(), CaptureError> {
        let held = fstat(&self.root).map(|stat| (stat.st_dev, stat.st_ino));
        let there = rustix::fs::lstat(self.repo.tree()).map(|stat| (stat.st_dev, stat.st_ino));
        if held.is_ok() && held == there {
            Ok(())
        } else {
            Err(CaptureError::RootReplaced {
                path: self.repo.tree().to_owned(),
            })
        }
    }

    /// Keeps content that the base cannot give back: first what could become
    /// part of a commit, then ignored files and build outputs, which leave room
    /// for what comes later.
    fn keep(&self, entries: &[Entry]) -> std::io::Result<()> {
        let mut wanted: Vec<(bool, &Entry, [u8; 32])> = Vec::new();
        for entry in entries {
            if let Content::Hash(hash) = entry.content
                && entry.kind == EntryKind::File
                && !self.store.holds(&hash)
            {
                let pinned = self.repo.pinned();
                let last = !pinned.tracks(&entry.path)
                    && (self
                        .options
                        .build_outputs
                        .iter()
                        .any(|pattern| pattern.matches(&entry.path))
                        || pinned.is_ignored(&entry.path, false));
                wanted.push((last, entry, hash));
            }
        }
        wanted.sort_by_key(|(last, _, _)| *last);
        let (first, last) = wanted.split_at(wanted.partition_point(|(last, _, _)| !*last));
        let budget = self.store.budget();
        for (wanted, within) in [(first, budget), (last, budget.for_uncommitted())] {
            parallel::for_each(
                wanted,
                || (),
                |(), (_, entry, hash)| match open_file(self.root.as_fd(), entry) {
                    Some((mut file, stat)) => {
                        let kept = self.store.keep(&mut file, *hash, stat.size, within);
                        kept.map(drop)
                    }
                    None => Ok(()),
                },
            )?;
        }
        Ok(())
    }

    fn forget_content_except(&self, capture: &Capture) -> Result<(), CaptureError> {
        if self.store.is_empty() {
            return Ok(());
        }
        let wanted: HashSet<[u8; 32]> = capture
            .entries()
            .iter()
            .filter_map(|entry| match entry.content {
                Content::Hash(hash) => Some(hash),
                Content::None | Content::Pinned => None,
            })
            .collect();
        self.store
            .retain(&|hash| wanted.contains(hash))
            .map_err(|source| self.store_error(source))
    }

    fn store_error(&self, source: std::io::Error) -> CaptureError {
        CaptureError::Store {
            path: self.store.directory().to_owned(),
            source,
        }
    }

    fn walk_error(&self, error: WalkError) -> CaptureError {
        let root = self.repo.tree().to_owned();
        match error {
            WalkError::Io { path, source } => CaptureError::Walk { root, path, source },
            WalkError::TooManyEntries => CaptureError::TooManyEntries {
                root,
                limit: MAX_ENTRIES,
            },
        }
    }
}
