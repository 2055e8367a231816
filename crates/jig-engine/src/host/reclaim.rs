//! After a jig that died: stop what it left running, remove what must not
//! stay, keep the tree.
//!
//! [`ReclaimPlan::new`] decides from what is on disk; [`reclaim`] acts. Acting
//! twice is the same as acting once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jig_git::RemoveError;
use jig_process::{
    Liveness, ProcessIdentity, Reclaimed as Ended, processes_inside, stop_by_home, stop_by_identity,
};
use jig_protocol::limits;

use super::layout::AttemptDirs;
use super::manifest::{Manifest, ManifestError, ManifestFile, ManifestMode};
use super::notes;
use super::retention::remove_off_thread;
use super::saved_index::SavedIndex;
use crate::beneath::os_path;
use crate::redact::Redactor;

/// What is to be done about one attempt of a dead jig.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReclaimPlan {
    /// Supervisors to stop, by verified identity, before anything is touched.
    pub stop: Vec<ProcessIdentity>,
    /// Directories to remove: logins first.
    pub remove: Vec<PathBuf>,
    /// The tree, which stays, and why.
    pub keep: Option<KeptTree>,
}

/// A tree that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTree {
    /// Where.
    pub path: PathBuf,
    /// Why, for people.
    pub reason: String,
    /// Whether it is the operator's own checkout.
    pub in_place: bool,
}

impl ReclaimPlan {
    /// Decides from the manifest and whether the attempt has a tree; touches
    /// nothing.
    #[must_use]
    pub fn new(dirs: &AttemptDirs, manifest: Option<&Manifest>, has_tree: bool) -> Self {
        let in_place = manifest.is_some_and(|manifest| manifest.mode == ManifestMode::InPlace);
        let keep = match manifest {
            Some(manifest) if in_place => Some(KeptTree {
                path: os_path(&manifest.work_tree).to_owned(),
                reason: "the run died while it worked in this checkout; what was changed is \
                         still there"
                    .into(),
                in_place,
            }),
            _ => has_tree.then(|| KeptTree {
                path: dirs.tree(),
                reason: "the run died while it worked in this tree".into(),
                in_place,
            }),
        };
        Self {
            stop: manifest.map_or_else(Vec::new, |manifest| manifest.process_groups.clone()),
            remove: dirs.transient(),
            keep,
        }
    }
}

/// What reclaiming did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reclaimed {
    /// How many supervisors, and processes that had lost theirs, were still
    /// alive and were stopped.
    pub stopped: usize,
    /// Command lines of processes that work in the attempt's directory and that
    /// nothing ties to the attempt: they may be the operator's, and are left
    /// alone.
    pub visitors: Vec<String>,
    /// The tree that stays.
    pub tree: Option<KeptTree>,
}

/// Why an attempt could not be reclaimed; to be tried again.
#[derive(Debug, thiserror::Error)]
pub enum ReclaimError {
    /// What it says of itself cannot be read, so nobody knows what runs.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Something it left running could not be stopped; nothing was removed.
    #[error("{} could not be stopped: {why}", directory.display())]
    StillRunning {
        /// The attempt's directory.
        directory: PathBuf,
        /// Which process, and why.
        why: String,
    },
    /// A directory could not be removed.
    #[error(transparent)]
    Remove(#[from] RemoveError),
}

/// Reclaims the attempt in `directory`, which may be gone.
///
/// # Errors
/// When the manifest cannot be read, something still runs, or a directory
/// cannot be removed.
pub async fn reclaim(directory: &Path) -> Result<Reclaimed, ReclaimError> {
    let dirs = AttemptDirs::at(directory);
    let manifest = Manifest::read(&dirs.manifest())?;
    let has_tree = dirs.tree().symlink_metadata().is_ok();
    let plan = ReclaimPlan::new(&dirs, manifest.as_ref(), has_tree);
    let stopped = stop(&plan, directory).await? + stop_orphans(directory).await?;
    let dropped = keep_notes_without_secrets(&dirs, manifest.as_ref());
    for path in &plan.remove {
        remove_off_thread(path.clone()).await?;
    }
    if let Some(manifest) = &manifest
        && !manifest.process_groups.is_empty()
    {
        let mut without = manifest.clone();
        without.process_groups.clear();
        ManifestFile::create(dirs.manifest(), without)?;
    }
    let mut tree = plan.keep;
    let visitors = visitors(directory);
    if let (Some(tree), Some(first)) = (&mut tree, visitors.first()) {
        let many = visitors.len();
        tree.reason.push_str(&format!(
            "; {many} still at work in it, the first is {first}"
        ));
    }
    if let Some(tree) = &mut tree {
        if dropped > 0 {
            tree.reason.push_str(&format!(
                "; {dropped} handoff notes were removed, since nobody knows the secrets to take out of them"
            ));
        }
        if tree.in_place && dirs.operator_files().exists() {
            tree.reason.push_str(&format!(
                "; your uncommitted files as they were before the run are in {}",
                dirs.operator_files().display()
            ));
        }
        if let Some(copy) = staged_before(&dirs, manifest.as_ref()) {
            tree.reason.push_str(&format!(
                "; the index as it was before the run is kept as {}",
                copy.display()
            ));
        }
    }
    Ok(Reclaimed {
        stopped,
        visitors,
        tree,
    })
}

/// Copies the handoff notes to the logs. The values of secrets may be others by
/// now than when the run died: where there are any, the notes are not kept, and
/// how many that is is the answer.
fn keep_notes_without_secrets(dirs: &AttemptDirs, manifest: Option<&Manifest>) -> usize {
    let to = dirs.logs().join("handoff");
    let no_secrets = manifest.is_some_and(|manifest| {
        let names = manifest.sensitive_env.as_ref();
        names.is_some_and(BTreeSet::is_empty)
    });
    if !no_secrets {
        return notes::count(&dirs.handoff());
    }
    let kept = std::fs::create_dir_all(&to)
        .and_then(|()| notes::keep_notes(&dirs.handoff(), &to, &Redactor::default()));
    if !matches!(kept, Ok(1..)) {
        // Only an empty one goes: reclaiming twice finds no notes any more.
        let _ = std::fs::remove_dir(&to);
    }
    0
}

/// In place: where the operator's index is kept, when the one that is there is
/// another. Putting it back is for the operator to decide, who may have worked
/// in the checkout since.
fn staged_before(dirs: &AttemptDirs, manifest: Option<&Manifest>) -> Option<PathBuf> {
    let manifest = manifest.filter(|manifest| manifest.mode == ManifestMode::InPlace)?;
    let saved = SavedIndex::of(os_path(&manifest.lender), &dirs.root);
    saved.differs().then_some(saved.copy)
}

/// Stops the recorded supervisors; gives how many were still alive.
async fn stop(plan: &ReclaimPlan, directory: &Path) -> Result<usize, ReclaimError> {
    let still_running = |why: String| ReclaimError::StillRunning {
        directory: directory.to_owned(),
        why,
    };
    let mut stopped = 0;
    for supervisor in &plan.stop {
        let was_alive = supervisor.liveness() == Liveness::Alive;
        match stop_by_identity(supervisor.clone(), limits::STOP_GRACE).await {
            Ended::Gone => stopped += usize::from(was_alive),
            Ended::Survivors(commands) => {
                let first = commands.first().cloned().unwrap_or_default();
                return Err(still_running(format!("{first} below {supervisor}")));
            }
            Ended::Unknown(why) => return Err(still_running(format!("{supervisor}: {why}"))),
        }
    }
    Ok(stopped)
}

/// Stops what was started for this attempt and whose supervisor was killed too.
async fn stop_orphans(directory: &Path) -> Result<usize, ReclaimError> {
    if directory.symlink_metadata().is_err() {
        // A directory that is gone is nobody's home.
        return Ok(0);
    }
    let why = match stop_by_home(directory.to_owned(), limits::STOP_GRACE).await {
        (stopped, Ended::Gone) => return Ok(stopped),
        (_, Ended::Survivors(commands)) => commands.first().cloned().unwrap_or_default(),
        (_, Ended::Unknown(why)) => why,
    };
    Err(ReclaimError::StillRunning {
        directory: directory.to_owned(),
        why,
    })
}

fn visitors(directory: &Path) -> Vec<String> {
    // A directory that is gone, or a table that cannot be read, shows nobody.
    let found = processes_inside(directory).unwrap_or_default();
    found
        .into_iter()
        .map(|process| process.command_line)
        .collect()
}
