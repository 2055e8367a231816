//! From captures to commits: what is committed is what was judged.

use std::path::PathBuf;

use gix::ObjectId;
use gix::objs::Kind;
use jig_protocol::limits;
use jig_protocol::repo_path::RepoPath;
use jig_protocol::time::Timestamp;

use crate::attempt_repo::{AttemptRepo, AttemptRepoError};
use crate::blobs::{Blobs, write_blobs};
use crate::changes::{Capture, Entry, EntryKind, TreeGuard, is_dot_git};
use crate::conversions::ConvertError;
use crate::objects::ObjectError;
use crate::pinned_tree::PinnedKind;
use crate::run::{GitError, Invocation};
use crate::tree::{TreeBuilder, TreeChange, compare_trees};

/// Why a commit could not be made or checked.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The content of a captured file is neither kept nor on disk any more.
    #[error("the captured content of {path} is gone")]
    ContentGone {
        /// The file.
        path: RepoPath,
    },
    /// A file is larger than anything that is committed.
    #[error("{path} has {bytes} bytes; at most {most} are committed", most = limits::CONTENT_BUDGET_BYTES)]
    TooLarge {
        /// The file.
        path: RepoPath,
        /// Its size.
        bytes: u64,
    },
    /// A file could not be read or written.
    #[error("could not use {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Content could not be converted to a blob.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// An object could not be read or written.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The repository cannot be used.
    #[error(transparent)]
    Repository(#[from] AttemptRepoError),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Somebody committed more often than anybody does.
    #[error("there are more than {most} new commits")]
    TooManyCommits {
        /// How many are looked at.
        most: usize,
    },
    /// The work was stopped by a panic or a shutdown.
    #[error("the commit was interrupted")]
    Interrupted,
}

/// How a commit stands to a captured tree.
#[derive(Debug, Clone, Default)]
pub struct HeadCheck {
    /// Paths at which the commit differs from the base *and* from the captured
    /// tree: content that nobody judged.
    pub differing: Vec<RepoPath>,
    /// Paths at which the captured tree (ignored files and build outputs aside)
    /// differs from the commit.
    pub uncommitted: Vec<RepoPath>,
}

/// One path at which two commits or trees differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffEntry {
    /// The path.
    pub path: RepoPath,
    /// What the first has there.
    pub before: Option<(PinnedKind, ObjectId)>,
    /// What the second has there.
    pub after: Option<(PinnedKind, ObjectId)>,
}

impl AttemptRepo {
    /// Makes a commit of the captured tree on top of `HEAD`, on no branch: what
    /// a command may compare the base with. Ignored files and build outputs are
    /// not part of it.
    ///
    /// # Errors
    /// When content is gone or an object cannot be written.
    pub async fn snapshot_commit(
        &self,
        guard: &TreeGuard,
        capture: &Capture,
        message: &str,
        at: Timestamp,
    ) -> Result<ObjectId, CommitError> {
        let parent = self.head_commit().await?;
        let message = message.to_owned();
        self.blocking(guard, capture, move |repo, guard, capture| {
            let tree = write_tree(&guard, &capture, parent)?;
            Ok(write_commit(&repo, tree, parent, &message, at)?)
        })
        .await
    }

    /// Makes a commit of the captured tree under
    /// `refs/jig/checkpoints/<phase>-<n>`; no branch moves.
    ///
    /// # Errors
    /// As [`AttemptRepo::snapshot_commit`], or when the reference cannot be made.
    pub async fn checkpoint(
        &self,
        guard: &TreeGuard,
        capture: &Capture,
        phase: &str,
        n: u32,
        at: Timestamp,
    ) -> Result<ObjectId, CommitError> {
        let message = format!("jig: after {phase} ({n})");
        let commit = self.snapshot_commit(guard, capture, &message, at).await?;
        let name = format!("refs/jig/checkpoints/{phase}-{n}");
        let run = self.reference_run(["update-ref", "--no-deref", &name, &commit.to_string()]);
        self.git().run(run).await?;
        Ok(commit)
    }

    /// Commits what is captured and not committed yet, and gives the commit that
    /// is the attempt's result; `None` when nothing differs from the base.
    ///
    /// The attempt's branch moves to a new commit when one was needed.
    ///
    /// # Errors
    /// When content is gone, or an object or the branch cannot be written.
    pub async fn commit_result(
        &self,
        guard: &TreeGuard,
        capture: &Capture,
        message: &str,
        at: Timestamp,
    ) -> Result<Option<ObjectId>, CommitError> {
        let head = self.head_commit().await?;
        let text = message.to_owned();
        let base = self.base();
        let (tree, commit) = self
            .blocking(guard, capture, move |repo, guard, capture| {
                let tree = write_tree(&guard, &capture, head)?;
                let there = match head {
                    Some(head) => repo.objects().commit_tree(&head)?,
                    None => base.tree(),
                };
                if tree == there {
                    return Ok((tree, None));
                }
                Ok((tree, Some(write_commit(&repo, tree, head, &text, at)?)))
            })
            .await?;
        if let Some(commit) = commit {
            let zero = ObjectId::null(commit.kind()).to_string();
            let old = head.map_or(zero, |head| head.to_string());
            let name = self.branch().unwrap_or("HEAD").to_owned();
            let run = self.reference_run(["update-ref", &name, &commit.to_string(), &old]);
            self.git().run(run).await?;
        }
        let unchanged = tree == base.tree() && head == base.commit();
        Ok(if unchanged { None } else { commit.or(head) })
    }

    /// Compares a commit with the captured tree: what it has beyond the base
    /// must be what was judged.
    ///
    /// # Errors
    /// When an object cannot be read; also one that does not hash to its name.
    pub async fn check_commit(
        &self,
        guard: &TreeGuard,
        capture: &Capture,
        commit: ObjectId,
    ) -> Result<HeadCheck, CommitError> {
        self.blocking(guard, capture, move |repo, guard, capture| {
            let committed = repo.objects().commit_tree(&commit)?;
            let base = (guard.pinned().objects(), repo.base().tree());
            let mut check = HeadCheck::default();
            let mut blobs = Blobs::new(&guard);
            for change in compare_trees(base, (repo.objects(), committed))? {
                let captured = match capture.get(&change.path) {
                    Some(entry) => blobs.leaf(entry)?,
                    None => None,
                };
                if captured != change.right {
                    check.differing.push(change.path);
                }
            }
            let tree = write_tree(&guard, &capture, Some(commit))?;
            let open = compare_trees((repo.objects(), committed), (repo.objects(), tree))?;
            check.uncommitted = open.into_iter().map(|change| change.path).collect();
            Ok(check)
        })
        .await
    }

    /// The paths at which two commits (or trees) of this repository differ.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub async fn diff(&self, from: ObjectId, to: ObjectId) -> Result<Vec<DiffEntry>, CommitError> {
        let repo = self.clone();
        let work = move || {
            let objects = repo.objects();
            let tree = |id: ObjectId| {
                objects
                    .commit_tree(&id)
                    .or_else(|_| objects.read(&id, Kind::Tree).map(|_| id))
            };
            let found = compare_trees((objects, tree(from)?), (objects, tree(to)?))?;
            let entry = |TreeChange { path, left, right }| DiffEntry {
                path,
                before: left,
                after: right,
            };
            Ok(found.into_iter().map(entry).collect())
        };
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or(Err(CommitError::Interrupted))
    }

    /// Whether `to` has `from` among its ancestors, or is it. Unborn is before
    /// everything.
    ///
    /// # Errors
    /// When a commit cannot be read.
    pub async fn is_fast_forward(
        &self,
        from: Option<ObjectId>,
        to: ObjectId,
    ) -> Result<bool, CommitError> {
        let Some(from) = from else { return Ok(true) };
        let repo = self.clone();
        let work = move || {
            let mut seen = std::collections::HashSet::from([to]);
            let mut pending = std::collections::VecDeque::from([to]);
            while let Some(id) = pending.pop_front() {
                if id == from {
                    return Ok(true);
                }
                if seen.len() > MOST_COMMITS {
                    return Ok(false);
                }
                // A shallow history ends somewhere.
                let parents = match repo.objects().commit_parents(&id) {
                    Ok(parents) => parents,
                    Err(ObjectError::Missing { .. }) => continue,
                    Err(error) => return Err(error.into()),
                };
                pending.extend(parents.into_iter().filter(|parent| seen.insert(*parent)));
            }
            Ok(false)
        };
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or(Err(CommitError::Interrupted))
    }

    /// Writes the index anew from `HEAD`: nothing staged, no flags, and stat
    /// data where the captured file is what `HEAD` has.
    ///
    /// # Errors
    /// When `HEAD`'s tree cannot be read or the index cannot be written.
    pub async fn write_index(
        &self,
        guard: &TreeGuard,
        capture: &Capture,
    ) -> Result<(), CommitError> {
        let head = self.head_commit().await?;
        self.blocking(guard, capture, move |repo, guard, capture| {
            crate::index_file::write(&repo, &guard, &capture, head)
        })
        .await
    }

    /// A run of git that only moves references of this repository.
    pub(crate) fn reference_run<A: AsRef<std::ffi::OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> Invocation {
        let mut full: Vec<std::ffi::OsString> =
            vec!["-c".into(), "core.logAllRefUpdates=false".into()];
        full.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        Invocation::new(full).git_dir(self.git_dir())
    }

    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        guard: &TreeGuard,
        capture: &Capture,
        work: impl FnOnce(Self, TreeGuard, Capture) -> Result<T, CommitError> + Send + 'static,
    ) -> Result<T, CommitError> {
        let (repo, guard, capture) = (self.clone(), guard.clone(), capture.clone());
        tokio::task::spawn_blocking(move || work(repo, guard, capture))
            .await
            .unwrap_or(Err(CommitError::Interrupted))
    }
}

/// A longer search for an ancestor is given up.
const MOST_COMMITS: usize = 200_000;

/// The tree of a capture: everything but ignored files and build outputs, for
/// which `head` keeps what it has.
pub(crate) fn write_tree(
    guard: &TreeGuard,
    capture: &Capture,
    head: Option<ObjectId>,
) -> Result<ObjectId, CommitError> {
    let repo = guard.repo();
    if let Some(known) = guard.known().tree(capture, head) {
        return Ok(known);
    }
    let mut builder = TreeBuilder::default();
    let committed: Vec<&Entry> = capture
        .entries()
        .iter()
        .filter(|entry| !is_left_out(guard, entry))
        .collect();
    write_blobs(guard, &committed)?;
    let mut blobs = Blobs::new(guard);
    for entry in committed {
        if let Some(leaf) = blobs.leaf(entry)? {
            builder.insert(&entry.path, leaf);
        }
    }
    if let Some(head) = head.filter(|head| Some(*head) != repo.base().commit()) {
        let base = (guard.pinned().objects(), repo.base().tree());
        let committed = repo.objects().commit_tree(&head)?;
        for change in compare_trees(base, (repo.objects(), committed))? {
            let left_out =
                guard.is_ignored(&change.path, false) || guard.is_build_output(&change.path);
            if let Some(leaf) = change.right.filter(|_| left_out) {
                builder.insert(&change.path, leaf);
            }
        }
    }
    let tree = builder.write(guard.pinned().objects(), repo.objects())?;
    guard.known().remember_tree(capture, head, tree);
    Ok(tree)
}

/// Whether a captured entry is never committed by jig.
fn is_left_out(guard: &TreeGuard, entry: &Entry) -> bool {
    if entry.kind == EntryKind::Directory {
        return false;
    }
    let tracked = guard.is_tracked_in_base(&entry.path);
    entry.path.components().any(is_dot_git)
        || in_submodule(guard, &entry.path)
        || (!tracked
            && (guard.is_ignored(&entry.path, false) || guard.is_build_output(&entry.path)))
}

fn in_submodule(guard: &TreeGuard, path: &RepoPath) -> bool {
    let submodules = guard.pinned().submodules();
    let mut at = path.parent();
    while let Some(directory) = at.filter(|_| !submodules.is_empty()) {
        if submodules.contains(&directory) {
            return true;
        }
        at = directory.parent();
    }
    false
}

/// Writes a commit by jig, with the moment as its time.
fn write_commit(
    repo: &AttemptRepo,
    tree: ObjectId,
    parent: Option<ObjectId>,
    message: &str,
    at: Timestamp,
) -> Result<ObjectId, ObjectError> {
    let seconds = at.as_millis().div_euclid(1_000).max(0);
    let who = format!("jig <jig@localhost> {seconds} +0000");
    let parent = parent
        .map(|parent| format!("parent {parent}\n"))
        .unwrap_or_default();
    let message = message.replace('\0', "");
    let message = message.trim_end();
    let text = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{message}\n");
    repo.objects().write(Kind::Commit, text.as_bytes())
}
