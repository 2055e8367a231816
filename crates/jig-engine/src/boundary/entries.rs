//! The boundary of one attempt: captures around each entry, and what follows
//! from them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jig_git::changes::{
    Capture, CaptureError, Change, Changes, EntryKind as Found, GuardOptions, MetadataChange,
    MetadataKind, Owner, PutBackError, RestoreError, Selection, TreeGuard,
};
use jig_git::{AttemptRepo, AttemptRepoError, CommitError, ObjectId};
use jig_protocol::definition::{Definition, DirGrant};
use jig_protocol::event::Breach;
use jig_protocol::repo_path::RepoPath;
use jig_protocol::time::Clock;

use super::judge::{Difference, Judge, JudgeKind, Judgement, Kind, is_output, judge};
use super::metadata::{self, Decision};
use crate::gates::{EntryChanges, Gone};
use crate::host::PreparedAttempt;

/// What is about to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// An agent.
    Agent,
    /// A command; git's index is written anew before it.
    Code,
}

/// The tree and its metadata when an entry began. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Before {
    capture: Capture,
    head: Option<ObjectId>,
}

/// What an entry did, and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Permitted changes that a commit can hold.
    pub touched: Vec<RepoPath>,
    /// Changes inside build output grants.
    pub outputs: Vec<RepoPath>,
    /// Permitted changes of ignored paths.
    pub ignored: Vec<RepoPath>,
    /// Written and written back.
    pub transient: Vec<RepoPath>,
    /// Git metadata that was changed without harm, and put back.
    pub metadata_restored: Vec<String>,
    /// Everything that was not permitted, with what is on disk now.
    pub breaches: Vec<Breach>,
    /// Whether the branch went forward.
    pub head_moved: bool,
}

/// What undoing a dead entry came to. The tree is exactly what it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// Paths that were undone.
    pub restored: Vec<RepoPath>,
    /// Metadata that could steer git was changed: a breach, also by the dead.
    pub breaches: Vec<Breach>,
}

/// Why the boundary could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum BoundaryError {
    /// The tree could not be captured.
    #[error("the work tree could not be captured")]
    Capture(#[from] CaptureError),
    /// The tree could not be restored.
    #[error("the work tree could not be restored")]
    Restore(#[from] RestoreError),
    /// Undoing a dead entry left something changed.
    #[error("{} of the dead entry's paths could not be undone, the first is {path}: {why}", .count)]
    NotRestored {
        /// How many paths.
        count: usize,
        /// The first of them.
        path: RepoPath,
        /// What is there, and why.
        why: String,
    },
    /// Metadata could not be put back.
    #[error(transparent)]
    PutBack(#[from] PutBackError),
    /// A commit could not be made or checked.
    #[error("a commit of the work tree could not be made or checked")]
    Commit(#[from] CommitError),
    /// The attempt's repository cannot be used.
    #[error(transparent)]
    Repository(#[from] AttemptRepoError),
    /// An agent changed metadata that steers git, so git is not run any more.
    #[error("git's metadata was tampered with; git is not run with it")]
    Tampered,
}

/// The boundary of one attempt, owned by its chain.
#[derive(Debug)]
pub struct Boundary {
    repo: AttemptRepo,
    guard: TreeGuard,
    clock: Arc<dyn Clock>,
    build_outputs: Vec<DirGrant>,
    start: Capture,
    latest: Capture,
    /// Whether nothing has run since `latest` was taken.
    settled: bool,
    /// The commit of `latest`, once somebody asked.
    snapshot: Option<ObjectId>,
    tampered: bool,
}

impl Boundary {
    /// Captures the tree as it was prepared.
    ///
    /// # Errors
    /// When it cannot be captured.
    pub async fn open(
        prepared: &PreparedAttempt,
        definition: &Definition,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, BoundaryError> {
        let repo = &prepared.repo;
        let build_outputs = definition.build_outputs.clone();
        let options = GuardOptions {
            // The grammar of grants is part of that of patterns.
            build_outputs: build_outputs
                .iter()
                .filter_map(|grant| grant.as_str().parse().ok())
                .collect(),
            ..GuardOptions::default()
        };
        let guard = repo.guard(options)?;
        let start = guard.capture(None).await?;
        Ok(Self {
            repo: repo.clone(),
            guard,
            clock,
            build_outputs,
            latest: start.clone(),
            start,
            settled: true,
            snapshot: None,
            tampered: false,
        })
    }

    /// Begins an entry. From now on the tree counts as the entry's.
    ///
    /// # Errors
    /// When the tree cannot be captured, or the index cannot be written.
    pub async fn before_entry(&mut self, kind: EntryKind) -> Result<Before, BoundaryError> {
        if !self.settled {
            self.capture().await?;
        }
        if kind == EntryKind::Code {
            self.refuse_tampered()?;
            self.repo.write_index(&self.guard, &self.latest).await?;
        }
        let before = Before {
            capture: self.latest.clone(),
            head: self.head().await?,
        };
        self.settled = false;
        Ok(before)
    }

    /// `JIG_HEAD_SHA`: a commit of the tree as the entry began, on no branch.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn head_sha(&mut self) -> Result<String, BoundaryError> {
        self.refuse_tampered()?;
        if let Some(commit) = self.snapshot {
            return Ok(commit.to_string());
        }
        let (message, now) = ("jig: the work tree as it is", self.clock.now());
        let commit = self
            .repo
            .snapshot_commit(&self.guard, &self.latest, message, now)
            .await?;
        self.snapshot = Some(commit);
        Ok(commit.to_string())
    }

    /// Ends an entry: judges everything it changed and undoes what it was not
    /// permitted. Nothing that it started may be running.
    ///
    /// # Errors
    /// When the changes cannot be judged; nothing may then be delivered.
    pub async fn after_entry(
        &mut self,
        before: &Before,
        rules: Judge<'_>,
    ) -> Result<Verdict, BoundaryError> {
        self.capture().await?;
        let changes = self.guard.compare(&before.capture, &self.latest);
        let mut verdict = Verdict::default();
        self.judge_metadata(before, &changes, &rules, &mut verdict)
            .await?;
        let judgement = judge(
            &self.differences(&changes),
            &changes.implied_directories,
            &rules,
        );
        self.undo_breached(before, &judgement, &mut verdict).await?;
        if verdict.head_moved && !self.tampered {
            self.judge_commits(before, &judgement, &mut verdict).await?;
        }
        // What was committed along with a breach does not stay either.
        if verdict.head_moved && !verdict.breaches.is_empty() {
            self.put_back(before, &BTreeSet::new()).await?;
            verdict.head_moved = false;
        }
        verdict.touched = judgement.touched;
        verdict.outputs = judgement.outputs;
        verdict.ignored = judgement.ignored;
        verdict.transient = judgement.transient;
        Ok(verdict)
    }

    /// Undoes a dead entry exactly, whatever it was permitted to do. Nothing
    /// that it started may be running.
    ///
    /// # Errors
    /// When something stays that it changed.
    pub async fn restore(&mut self, before: &Before) -> Result<Undone, BoundaryError> {
        self.capture().await?;
        let changes = self.guard.compare(&before.capture, &self.latest);
        let mut undone = Undone::default();
        for change in &changes.metadata {
            let steers_git = !change.kind.leaves_git_safe();
            if change.owner == Owner::Lender {
                undone.breaches.push(left_as_it_is(change));
            } else if steers_git {
                undone
                    .breaches
                    .push(breach(&change.name, "restored metadata"));
            }
        }
        if changes.metadata.iter().any(|c| c.owner == Owner::Attempt) {
            self.put_back(before, &BTreeSet::new()).await?;
        }
        self.tampered |= !undone.breaches.is_empty();
        let report = self
            .guard
            .restore(&before.capture, &self.latest, Selection::All)
            .await?;
        self.settle(report.capture.clone());
        if let Some(first) = report.remaining.first() {
            return Err(BoundaryError::NotRestored {
                count: report.remaining.len(),
                path: first.path.clone(),
                why: first.why.clone(),
            });
        }
        undone.restored = report.restored;
        Ok(undone)
    }

    /// Keeps the tree as a commit under
    /// `refs/jig/checkpoints/<phase>-<n>`; `None` in place, where jig adds
    /// nothing to the operator's repository.
    ///
    /// # Errors
    /// When the commit or the reference cannot be made.
    pub async fn checkpoint(
        &mut self,
        phase: &str,
        number: u32,
    ) -> Result<Option<String>, BoundaryError> {
        if self.repo.is_in_place() {
            return Ok(None);
        }
        self.refuse_tampered()?;
        let now = self.clock.now();
        let commit = self
            .repo
            .checkpoint(&self.guard, &self.latest, phase, number, now)
            .await?;
        self.snapshot = None;
        Ok(Some(commit.to_string()))
    }

    /// Before acceptance: paths at which what is committed is not what was
    /// judged. Also looks whether anything was changed since the last entry,
    /// when nothing of jig's was running.
    ///
    /// # Errors
    /// When the tree or the commit cannot be read.
    pub async fn final_check(&mut self) -> Result<Vec<RepoPath>, BoundaryError> {
        self.refuse_tampered()?;
        let judged = self.latest.clone();
        self.capture().await?;
        let changes = self.guard.compare(&judged, &self.latest);
        let mut found: Vec<RepoPath> = changes
            .metadata
            .iter()
            .filter(|change| change.owner == Owner::Attempt)
            .map(|change| path_of(&change.name))
            .collect();
        found.extend(
            self.differences(&changes)
                .into_iter()
                .filter(|difference| !difference.ignored && !self.is_output(difference))
                .map(|difference| difference.path),
        );
        Ok(found)
    }

    /// What the entry changed so far, as a commit would show it; judges
    /// nothing.
    ///
    /// # Errors
    /// When the tree cannot be captured.
    pub async fn changed_since_entry(
        &mut self,
        before: &Before,
    ) -> Result<EntryChanges, BoundaryError> {
        self.capture().await?;
        self.settled = false;
        Ok(EntryChanges {
            paths: self.committable(&before.capture, &self.latest),
        })
    }

    /// What the attempt changed so far, as a commit would show it.
    #[must_use]
    pub fn changed_paths_total(&self) -> BTreeSet<RepoPath> {
        self.committable(&self.start, &self.latest)
            .into_keys()
            .collect()
    }

    /// Whether anything in the tree that is no build output is not what it was
    /// at the start, or the branch moved: whether removing it loses work.
    #[must_use]
    pub fn differs_from_start(&self) -> bool {
        let changes = self.guard.compare(&self.start, &self.latest);
        !changes.metadata.is_empty()
            || self
                .differences(&changes)
                .iter()
                .any(|difference| !difference.transient && !self.is_output(difference))
    }

    /// Whether an agent changed metadata that steers git. Then nothing is
    /// delivered and git is not run.
    #[must_use]
    pub const fn is_tampered(&self) -> bool {
        self.tampered
    }

    pub(crate) const fn guard(&self) -> &TreeGuard {
        &self.guard
    }

    pub(crate) const fn latest(&self) -> &Capture {
        &self.latest
    }

    pub(crate) const fn repo(&self) -> &AttemptRepo {
        &self.repo
    }
}

// What the road above is made of.
impl Boundary {
    async fn capture(&mut self) -> Result<(), BoundaryError> {
        let capture = self.guard.capture(Some(&self.latest)).await?;
        self.settle(capture);
        Ok(())
    }

    fn settle(&mut self, capture: Capture) {
        self.latest = capture;
        self.settled = true;
        self.snapshot = None;
    }

    fn refuse_tampered(&self) -> Result<(), BoundaryError> {
        if self.tampered {
            Err(BoundaryError::Tampered)
        } else {
            Ok(())
        }
    }

    /// The commit that the latest capture's `HEAD` stands for.
    async fn head(&self) -> Result<Option<ObjectId>, BoundaryError> {
        if self.tampered {
            return Ok(None);
        }
        Ok(self.repo.head_commit().await?)
    }

    /// Decides about changed metadata first, and puts back what does not stay.
    async fn judge_metadata(
        &mut self,
        before: &Before,
        changes: &Changes,
        rules: &Judge<'_>,
        verdict: &mut Verdict,
    ) -> Result<(), BoundaryError> {
        if changes.metadata.is_empty() {
            return Ok(());
        }
        let mut stays = BTreeSet::new();
        let mut undo = Vec::new();
        for change in &changes.metadata {
            let forward = self.went_forward(change).await;
            match metadata::decide(change, self.repo.branch(), forward, rules) {
                Decision::Permitted => {
                    stays.insert(change.name.clone());
                    verdict.head_moved = true;
                }
                Decision::BreachOutside => {
                    self.tampered = true;
                    verdict.breaches.push(left_as_it_is(change));
                }
                Decision::PutBack => undo.push((change, false)),
                Decision::Breach => undo.push((change, true)),
            }
        }
        // Whoever broke the rules does not keep a commit either.
        if undo.iter().any(|(_, is_breach)| *is_breach) {
            stays.clear();
            verdict.head_moved = false;
        }
        if undo.is_empty() {
            return Ok(());
        }
        self.tampered |= rules.kind == JudgeKind::Agent
            && undo
                .iter()
                .any(|(change, is_breach)| *is_breach && !change.kind.leaves_git_safe());
        let put_back = self.put_back(before, &stays).await;
        let left = match &put_back {
            Ok(()) => self.guard.compare(&before.capture, &self.latest).metadata,
            Err(_) => changes.metadata.clone(),
        };
        for (change, is_breach) in undo {
            let is_back = !left.iter().any(|other| other.name == change.name);
            let outcome = match (&put_back, is_back) {
                (_, true) => "restored metadata".to_owned(),
                (Err(error), false) => format!("still changed: {error}"),
                (Ok(()), false) => "still changed".to_owned(),
            };
            if is_breach || !is_back {
                self.tampered |= !is_back;
                verdict.breaches.push(breach(&change.name, &outcome));
            } else {
                verdict.metadata_restored.push(show(&change.name));
            }
        }
        Ok(())
    }

    /// Puts the attempt's metadata back, `stays` aside, and captures again.
    async fn put_back(
        &mut self,
        before: &Before,
        stays: &BTreeSet<PathBuf>,
    ) -> Result<(), BoundaryError> {
        self.guard
            .put_back_metadata(&before.capture, &self.latest, Owner::Attempt, stays)
            .await?;
        self.capture().await
    }

    /// Whether a change moves a branch, or a detached `HEAD`, to a descendant.
    /// Objects are read as they are; git is not run.
    async fn went_forward(&self, change: &MetadataChange) -> bool {
        if !matches!(change.kind, MetadataKind::Head | MetadataKind::Reference) {
            return false;
        }
        let id = |text: &Option<String>| -> Option<ObjectId> {
            ObjectId::from_hex(text.as_deref()?.trim().as_bytes()).ok()
        };
        let (from, to) = (id(&change.before), id(&change.after));
        // What was there and is no commit's name leads nowhere.
        if change.before.is_some() && from.is_none() {
            return false;
        }
        match to {
            Some(to) => self.repo.is_fast_forward(from, to).await.unwrap_or(false),
            None => false,
        }
    }

    async fn undo_breached(
        &mut self,
        before: &Before,
        judgement: &Judgement,
        verdict: &mut Verdict,
    ) -> Result<(), BoundaryError> {
        if judgement.breached.is_empty() {
            return Ok(());
        }
        let selected: BTreeSet<RepoPath> = judgement
            .breached
            .iter()
            .chain(&judgement.frames)
            .cloned()
            .collect();
        let report = self
            .guard
            .restore(&before.capture, &self.latest, Selection::Only(&selected))
            .await?;
        self.settle(report.capture.clone());
        let remaining: BTreeMap<&RepoPath, &str> = report
            .remaining
            .iter()
            .map(|remains| (&remains.path, remains.why.as_str()))
            .collect();
        for path in &judgement.breached {
            let outcome = match (remaining.get(path), before.capture.get(path)) {
                (Some(why), _) => (*why).to_owned(),
                (None, None) => "deleted".to_owned(),
                (None, Some(_)) => "restored".to_owned(),
            };
            verdict.breaches.push(Breach {
                path: path.clone(),
                outcome,
            });
        }
        Ok(())
    }

    /// What was committed must be what was judged: every path that the new
    /// commits changed holds what the tree holds.
    async fn judge_commits(
        &mut self,
        before: &Before,
        judgement: &Judgement,
        verdict: &mut Verdict,
    ) -> Result<(), BoundaryError> {
        let Some(head) = self.head().await? else {
            return Ok(());
        };
        let check = self
            .repo
            .check_commit(&self.guard, &self.latest, head)
            .await?;
        let from = before.head.unwrap_or_else(|| self.repo.base().tree());
        let changed: BTreeSet<RepoPath> = self
            .repo
            .diff(from, head)
            .await?
            .into_iter()
            .map(|entry| entry.path)
            .collect();
        let undone: BTreeSet<&RepoPath> = judgement.breached.iter().collect();
        for path in check.differing {
            if changed.contains(&path) && !undone.contains(&path) {
                verdict.breaches.push(Breach {
                    path,
                    outcome: "commit_differs_from_tree".to_owned(),
                });
            }
        }
        Ok(())
    }

    fn differences(&self, changes: &Changes) -> Vec<Difference> {
        let mut differences: Vec<Difference> = changes
            .paths
            .iter()
            .map(|change| self.difference(change))
            .collect();
        differences.extend(changes.transient.iter().map(|path| Difference {
            path: path.clone(),
            before: Some(Kind::File),
            after: Some(Kind::File),
            tracked_in_base: self.guard.is_tracked_in_base(path),
            ignored: self.guard.is_ignored(path, false),
            hazard: false,
            transient: true,
        }));
        differences
    }

    fn difference(&self, change: &Change) -> Difference {
        let kind = |found: Found| match found {
            Found::File => Kind::File,
            Found::Link => Kind::Link,
            Found::Directory => Kind::Directory,
            Found::Fifo | Found::Socket | Found::Device | Found::Unreadable => Kind::Other,
        };
        let (before, after) = (
            change.before.as_ref().map(|entry| kind(entry.kind)),
            change.after.as_ref().map(|entry| kind(entry.kind)),
        );
        let is_directory = after.or(before) == Some(Kind::Directory);
        Difference {
            tracked_in_base: self.guard.is_tracked_in_base(&change.path),
            ignored: self.guard.is_ignored(&change.path, is_directory),
            path: change.path.clone(),
            before,
            after,
            hazard: change.hazard.is_some(),
            transient: false,
        }
    }

    fn is_output(&self, difference: &Difference) -> bool {
        !difference.tracked_in_base && is_output(difference, &self.build_outputs)
    }

    /// Changed files and links that a commit can hold.
    fn committable(&self, from: &Capture, to: &Capture) -> BTreeMap<RepoPath, Gone> {
        let changes = self.guard.compare(from, to);
        let holds = |kind: Option<Kind>| matches!(kind, Some(Kind::File | Kind::Link));
        self.differences(&changes)
            .into_iter()
            .filter(|difference| {
                (holds(difference.before) || holds(difference.after))
                    && !difference.transient
                    && !difference.ignored
                    && !self.is_output(difference)
            })
            .map(|difference| {
                let gone = if holds(difference.after) {
                    Gone::No
                } else {
                    Gone::Yes
                };
                (difference.path, gone)
            })
            .collect()
    }
}

fn left_as_it_is(change: &MetadataChange) -> Breach {
    breach(
        &change.name,
        "changed in the repository itself and left as it is: look at it before you use git there",
    )
}

fn breach(name: &Path, outcome: &str) -> Breach {
    Breach {
        path: path_of(name),
        outcome: outcome.to_owned(),
    }
}

fn path_of(name: &Path) -> RepoPath {
    RepoPath::from_bytes(name.as_os_str().as_bytes())
}

fn show(name: &Path) -> String {
    path_of(name).to_string()
}
