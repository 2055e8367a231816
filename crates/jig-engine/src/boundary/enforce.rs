//! Acting on what was decided: metadata put back, breached paths undone,
//! commits compared with the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jig_git::changes::{Changes, MetadataChange, MetadataKind, Owner, Selection};
use jig_git::{IndexImage, ObjectId};
use jig_protocol::event::Breach;
use jig_protocol::repo_path::RepoPath;

use super::entries::{Before, Boundary};
use super::judge::{Difference, Judge, JudgeKind, Judgement, Kind, judge};
use super::metadata::{self, Decision};
use super::verdict::{BoundaryError, Verdict};

impl Boundary {
    /// Decides about changed metadata first, and puts back what does not stay.
    pub(super) async fn judge_metadata(
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
    pub(super) async fn put_back(
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
    pub(super) async fn went_forward(&self, change: &MetadataChange) -> bool {
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

    pub(super) async fn undo_breached(
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

    /// A blob in the index, at a path that may not be written, is meant for
    /// somebody else's commit. No commit picks it up, since the index is written
    /// anew before a command, but it is a breach like any other write. What is
    /// staged where the role may write can be an earlier state of its own work.
    pub(super) async fn judge_index(
        &mut self,
        before: &IndexImage,
        rules: &Judge<'_>,
        verdict: &mut Verdict,
    ) -> Result<(), BoundaryError> {
        let head = self.head().await?;
        let planted = self
            .repo
            .planted(&self.guard, &self.latest, head, before)
            .await?;
        let staged: Vec<Difference> = planted
            .into_iter()
            .map(|path| self.committed(path))
            .collect();
        // Whoever wrote a file and added it has that breach already.
        let known: BTreeSet<RepoPath> = verdict.breaches.iter().map(|b| b.path.clone()).collect();
        let breached = judge(&staged, &[], rules).breached.into_iter();
        let planted = breached.filter(|path| !known.contains(path));
        verdict.breaches.extend(planted.map(|path| Breach {
            path,
            outcome: "planted in the index, which nothing is committed from".to_owned(),
        }));
        Ok(())
    }

    /// What was committed must be what was judged: every path that the new
    /// commits changed holds what the tree holds, and no commit on the way there
    /// changed what may not be written. Work that was in the tree when the entry
    /// began was judged when it was done, and may be committed by anyone.
    pub(super) async fn judge_commits(
        &mut self,
        before: &Before,
        judgement: &Judgement,
        rules: &Judge<'_>,
        verdict: &mut Verdict,
    ) -> Result<(), BoundaryError> {
        let Some(head) = self.head().await? else {
            return Ok(());
        };
        let undone: BTreeSet<&RepoPath> = judgement.breached.iter().collect();
        let check = self
            .repo
            .check_commit(&self.guard, &self.latest, head)
            .await?;
        let changed = self.changed_by(before.head, head).await?;
        for path in check.differing {
            if changed.contains(&path) && !undone.contains(&path) {
                verdict.breaches.push(Breach {
                    path,
                    outcome: "commit_differs_from_tree".to_owned(),
                });
            }
        }
        let commits = self.repo.commits_since(before.head, head).await?;
        let mut never = BTreeMap::new();
        for (commit, parent) in commits {
            never.extend(self.undeliverable(parent, commit).await?);
            let differences: Vec<Difference> = self
                .changed_by(parent, commit)
                .await?
                .into_iter()
                .map(|path| self.committed(path))
                .collect();
            let found = judge(&differences, &[], rules).breached;
            if found.is_empty() {
                continue;
            }
            let check = self
                .repo
                .check_commit(&self.guard, &before.capture, commit)
                .await?;
            let unjudged: BTreeSet<RepoPath> = check.differing.into_iter().collect();
            verdict.breaches.extend(
                found
                    .into_iter()
                    .filter(|path| unjudged.contains(path) && !undone.contains(path))
                    .map(|path| Breach {
                        path,
                        outcome: format!("in commit {commit}, which is taken back"),
                    }),
            );
        }
        let never = never.into_iter().map(|(path, what)| Breach {
            path,
            outcome: what.to_owned(),
        });
        verdict.breaches.extend(never);
        Ok(())
    }

    /// What a commit adds to another that no result may hold, since nobody
    /// judges it: build outputs, and what the base ignores.
    pub(crate) async fn undeliverable(
        &self,
        from: Option<ObjectId>,
        to: ObjectId,
    ) -> Result<BTreeMap<RepoPath, &'static str>, BoundaryError> {
        let from = from.unwrap_or_else(|| ObjectId::empty_tree(to.kind()));
        let mut found = BTreeMap::new();
        for entry in self.repo.diff(from, to).await? {
            if entry.after.is_none() {
                continue;
            }
            let added = self.committed(entry.path);
            if self.is_output(&added) {
                found.insert(added.path, "output_committed");
            } else if added.ignored {
                found.insert(added.path, "ignored_committed");
            }
        }
        Ok(found)
    }

    async fn changed_by(
        &self,
        from: Option<ObjectId>,
        to: ObjectId,
    ) -> Result<BTreeSet<RepoPath>, BoundaryError> {
        // Before the first commit there is the empty tree.
        let from = from.unwrap_or_else(|| ObjectId::empty_tree(to.kind()));
        let changed = self.repo.diff(from, to).await?;
        Ok(changed.into_iter().map(|entry| entry.path).collect())
    }

    /// A path that a commit changed, as judging sees it.
    fn committed(&self, path: RepoPath) -> Difference {
        Difference {
            before: None,
            after: Some(Kind::File),
            tracked_in_base: self.guard.is_tracked_in_base(&path),
            ignored: self.guard.is_ignored(&path, false),
            hazard: false,
            transient: false,
            path,
        }
    }
}

/// A change in the operator's repository. Who made it cannot be told where no
/// sandbox keeps agents out of it.
pub(super) fn left_as_it_is(change: &MetadataChange) -> Breach {
    let outcome = if change.kind.leaves_git_safe() {
        "moved in the repository itself while the attempt ran, by a commit, a fetch or a switch \
         of branches; if that was you, run again and leave the repository alone meanwhile"
    } else {
        "changed in the repository itself and left as it is: look at it before you use git there"
    };
    breach(&change.name, outcome)
}

pub(super) fn breach(name: &Path, outcome: &str) -> Breach {
    Breach {
        path: path_of(name),
        outcome: outcome.to_owned(),
    }
}

pub(super) fn path_of(name: &Path) -> RepoPath {
    RepoPath::from_bytes(name.as_os_str().as_bytes())
}

pub(super) fn show(name: &Path) -> String {
    path_of(name).to_string()
}
