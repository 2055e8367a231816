//! The boundary of one attempt: captures around each entry, and what follows
//! from them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use jig_git::changes::{Capture, CaptureError, GuardOptions, Owner, Selection, TreeGuard};
use jig_git::{AttemptRepo, IndexImage, ObjectId};
use jig_protocol::definition::{Definition, DirGrant};
use jig_protocol::event::Breach;
use jig_protocol::repo_path::RepoPath;
use jig_protocol::time::Clock;

use super::enforce::{breach, left_as_it_is, path_of};
use super::judge::{Judge, judge};
use super::verdict::{BoundaryError, Undone, Verdict};
use crate::gates::EntryChanges;
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
    pub(super) capture: Capture,
    pub(super) head: Option<ObjectId>,
    snapshot: Snapshot,
    /// Of an agent's entry.
    staged: Option<IndexImage>,
}

/// The commit of one capture, once somebody asked.
type Snapshot = Arc<OnceLock<ObjectId>>;

/// The boundary of one attempt, owned by its chain.
#[derive(Debug)]
pub struct Boundary {
    pub(super) repo: AttemptRepo,
    pub(super) guard: TreeGuard,
    clock: Arc<dyn Clock>,
    pub(super) build_outputs: Vec<DirGrant>,
    start: Capture,
    pub(super) latest: Capture,
    /// Whether nothing has run since `latest` was taken.
    settled: bool,
    /// That of `latest`.
    snapshot: Snapshot,
    pub(super) tampered: bool,
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
        if prepared.is_in_place() {
            // Whatever becomes of the run, nobody else has these.
            let copies = prepared.dirs.operator_files();
            guard.copy_kept(&start, copies).await?;
        }
        Ok(Self {
            repo: repo.clone(),
            guard,
            clock,
            build_outputs,
            latest: start.clone(),
            start,
            settled: true,
            snapshot: Snapshot::default(),
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
        // Nothing earlier is ever restored or committed any more.
        self.guard.forget_content_except(&self.latest).await?;
        let before = Before {
            capture: self.latest.clone(),
            head: self.head().await?,
            snapshot: Arc::clone(&self.snapshot),
            staged: match kind {
                EntryKind::Agent => Some(self.repo.index_image().await),
                EntryKind::Code => None,
            },
        };
        self.settled = false;
        Ok(before)
    }

    /// `JIG_HEAD_SHA`: a commit of the tree as the entry began, on no branch.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn head_sha(&mut self, before: &Before) -> Result<String, BoundaryError> {
        self.refuse_tampered()?;
        if let Some(commit) = before.snapshot.get() {
            return Ok(commit.to_string());
        }
        let (message, now) = ("jig: the work tree as it is", self.clock.now());
        let commit = self
            .repo
            .snapshot_commit(&self.guard, &before.capture, message, now)
            .await?;
        Ok(before.snapshot.get_or_init(|| commit).to_string())
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
        if let Some(lost) = self.capture_or_lose().await? {
            return Ok(Verdict {
                breaches: vec![lost],
                ..Verdict::default()
            });
        }
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
        if let Some(staged) = before.staged.as_ref().filter(|_| !self.tampered) {
            self.judge_index(staged, &rules, &mut verdict).await?;
        }
        if verdict.head_moved && !self.tampered {
            self.judge_commits(before, &judgement, &rules, &mut verdict)
                .await?;
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
        if let Some(lost) = self.capture_or_lose().await? {
            return Ok(Undone {
                breaches: vec![lost],
                ..Undone::default()
            });
        }
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
        Ok(Some(commit.to_string()))
    }

    /// Before acceptance: what was changed since the last entry, when nothing of
    /// the attempt was running. Whether the commit that is delivered is what was
    /// judged is looked at when it is delivered.
    ///
    /// # Errors
    /// When the tree cannot be captured.
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

    /// Whether removing the tree may lose work: something in it that is no build
    /// output is not what it was at the start, the branch moved, git's metadata
    /// was tampered with, or the tree cannot be looked at.
    pub async fn may_hold_work(&mut self) -> bool {
        // An entry began and was never looked at: its capture failed.
        if !self.settled && self.capture().await.is_err() {
            return true;
        }
        self.tampered || self.differs_from_start()
    }

    fn differs_from_start(&self) -> bool {
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
    pub(super) async fn capture(&mut self) -> Result<(), BoundaryError> {
        let capture = self.guard.capture(Some(&self.latest)).await?;
        self.settle(capture);
        Ok(())
    }

    /// Captures what an entry left. A tree that it replaced, or filled beyond
    /// what can be looked at, is its breach: nobody may do that, a command as
    /// little as an agent, and nothing can be undone in it.
    async fn capture_or_lose(&mut self) -> Result<Option<Breach>, BoundaryError> {
        match self.capture().await {
            Err(BoundaryError::Capture(
                error @ (CaptureError::RootReplaced { .. } | CaptureError::TooManyEntries { .. }),
            )) => {
                self.tampered = true;
                let outcome = format!("{error}; left as it is");
                Ok(Some(breach(Path::new("."), &outcome)))
            }
            captured => captured.map(|()| None),
        }
    }

    pub(super) fn settle(&mut self, capture: Capture) {
        self.latest = capture;
        self.settled = true;
        self.snapshot = Snapshot::default();
    }

    fn refuse_tampered(&self) -> Result<(), BoundaryError> {
        if self.tampered {
            Err(BoundaryError::Tampered)
        } else {
            Ok(())
        }
    }

    /// The commit that the latest capture's `HEAD` stands for.
    pub(super) async fn head(&self) -> Result<Option<ObjectId>, BoundaryError> {
        if self.tampered {
            return Ok(None);
        }
        Ok(self.repo.head_commit().await?)
    }
}
