//! What `jig gc` may remove: a plan made of a snapshot, then a short loop.

use std::path::{Path, PathBuf};

use jig_git::repository::Repository;
use jig_git::{Git, RemoveError, attempt_repo, remove_tree};
use jig_protocol::ids::{AttemptId, RunId};
use jig_protocol::limits::Retention;
use jig_protocol::text;
use jig_protocol::time::Timestamp;

use super::layout::AttemptDirs;
use super::manifest::Manifest;

/// What is on disk of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The attempt.
    pub attempt: AttemptId,
    /// Its directory.
    pub directory: PathBuf,
    /// When it was made.
    pub made_at: Timestamp,
    /// Why it must stay whatever its age; `None` when it need not.
    pub needed: Option<Needed>,
}

/// Why an attempt's directory must stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// Its run is still going on, or nobody can say.
    Running,
    /// A work tree was kept in it for a person, who must release it first.
    WorkTree,
    /// What it says of itself cannot be read.
    Unreadable,
}

impl Needed {
    /// The reason for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "its run is still going on",
            Self::WorkTree => "its work tree was kept; release it first",
            Self::Unreadable => "its manifest cannot be read",
        }
    }
}

/// What is to be removed, and what stays though retention would let it go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GcPlan {
    /// Attempts to remove, oldest first.
    pub remove: Vec<Kept>,
    /// Attempts past their time that must stay.
    pub stay: Vec<Kept>,
}

impl GcPlan {
    /// Decides; touches nothing.
    #[must_use]
    pub fn new(mut snapshot: Vec<Kept>, retention: Retention, now: Timestamp) -> Self {
        snapshot.sort_by_key(|kept| std::cmp::Reverse((kept.made_at, kept.attempt)));
        let mut plan = Self::default();
        for (newer, kept) in snapshot.into_iter().enumerate() {
            let expired = now.saturating_since(kept.made_at) > retention.age
                || newer >= retention.attempts as usize;
            match (expired, kept.needed) {
                (false, _) => {}
                (true, None) => plan.remove.push(kept),
                (true, Some(_)) => plan.stay.push(kept),
            }
        }
        plan.remove.reverse();
        plan.stay.reverse();
        plan
    }
}

/// Lists the attempts of a data directory. `is_running` answers for a run; an
/// attempt without a manifest is one that never began or ended its removal
/// halfway, and may go.
///
/// # Errors
/// When the directory cannot be listed. None there is an empty list.
pub fn snapshot(data_dir: &Path, is_running: &dyn Fn(RunId) -> bool) -> std::io::Result<Vec<Kept>> {
    let entries = match std::fs::read_dir(data_dir.join("attempts")) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        // Only what jig names like an attempt is an attempt's.
        let Some(attempt) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<AttemptId>().ok())
        else {
            continue;
        };
        let dirs = AttemptDirs::at(entry.path());
        found.push(Kept {
            attempt,
            made_at: made_at(attempt),
            needed: needed(&dirs, is_running),
            directory: dirs.root,
        });
    }
    Ok(found)
}

fn needed(dirs: &AttemptDirs, is_running: &dyn Fn(RunId) -> bool) -> Option<Needed> {
    match Manifest::read(&dirs.manifest()) {
        Err(_) => Some(Needed::Unreadable),
        Ok(Some(manifest)) if is_running(manifest.run_id) => Some(Needed::Running),
        Ok(_) if dirs.tree().symlink_metadata().is_ok() => Some(Needed::WorkTree),
        Ok(_) => None,
    }
}

/// The moment in a version 7 UUID: its first 48 bits are milliseconds.
fn made_at(attempt: AttemptId) -> Timestamp {
    let digits: String = attempt
        .to_string()
        .chars()
        .filter(|c| *c != '-')
        .take(12)
        .collect();
    Timestamp::from_millis(i64::from_str_radix(&digits, 16).unwrap_or(0))
}

/// What applying a plan did.
#[derive(Debug, Default)]
pub struct GcReport {
    /// Attempts that are gone.
    pub removed: Vec<AttemptId>,
    /// What could not be done, in words, by attempt.
    pub problems: Vec<(AttemptId, String)>,
}

/// Removes what the plan says. Each attempt's pin in its lender goes after its
/// repository, which borrowed from there.
pub async fn apply(plan: &GcPlan, git: &Git) -> GcReport {
    let mut report = GcReport::default();
    for kept in &plan.remove {
        match forget_attempt(&AttemptDirs::at(&kept.directory), kept.attempt, git).await {
            Ok(()) => report.removed.push(kept.attempt),
            Err(problem) => report.problems.push((kept.attempt, problem)),
        }
    }
    report
}

/// Removes an attempt's directory and its pin.
pub(super) async fn forget_attempt(
    dirs: &AttemptDirs,
    attempt: AttemptId,
    git: &Git,
) -> Result<(), String> {
    let lender = match Manifest::read(&dirs.manifest()) {
        Ok(manifest) => manifest.map(|manifest| manifest.lender),
        Err(error) => return Err(error.to_string()),
    };
    remove_off_thread(dirs.git())
        .await
        .map_err(|error| text::with_causes(&error))?;
    if let Some(lender) = lender {
        let path = crate::beneath::os_path(&lender);
        // A lender that is gone, or no repository any more, holds no pin.
        if let Ok(lender) = Repository::discover(git, path).await {
            attempt_repo::release_pin(git, &lender, attempt)
                .await
                .map_err(|error| text::with_causes(&error))?;
        }
    }
    remove_off_thread(dirs.root.clone())
        .await
        .map_err(|error| text::with_causes(&error))
}

/// Removes a tree without holding up other tasks.
pub(super) async fn remove_off_thread(path: PathBuf) -> Result<(), RemoveError> {
    let failed = path.clone();
    tokio::task::spawn_blocking(move || remove_tree(&path))
        .await
        .unwrap_or_else(|error| {
            Err(RemoveError {
                path: failed,
                source: std::io::Error::other(error),
            })
        })
}

/// Removes every download cache below the data directory. Only while no run
/// uses them.
///
/// # Errors
/// Names the first path that stays.
pub async fn remove_caches(data_dir: &Path) -> Result<(), RemoveError> {
    remove_off_thread(data_dir.join("caches")).await
}

/// Removes a kept work tree for good, as its person confirmed. No link is
/// followed; one that is gone already is fine.
///
/// # Errors
/// When something of it stays; calling again goes on.
pub async fn release_tree(tree: &Path) -> Result<(), RemoveError> {
    remove_off_thread(tree.to_owned()).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DAY: u64 = 24 * 60 * 60;

    fn kept(day: u64, needed: Option<Needed>) -> Kept {
        let at = Timestamp::EPOCH.saturating_add(Duration::from_secs(day * DAY));
        let attempt = AttemptId::from_parts(at, [7; 10]);
        Kept {
            attempt,
            directory: PathBuf::from(format!("/data/attempts/{attempt}")),
            made_at: made_at(attempt),
            needed,
        }
    }

    fn days(list: &[Kept]) -> Vec<u64> {
        list.iter()
            .map(|kept| kept.made_at.saturating_since(Timestamp::EPOCH).as_secs() / DAY)
            .collect()
    }

    #[test]
    fn age_and_number_both_bound_and_what_is_needed_stays() {
        let now = Timestamp::EPOCH.saturating_add(Duration::from_secs(100 * DAY));
        let retention = Retention {
            age: Duration::from_secs(30 * DAY),
            attempts: 3,
        };
        let snapshot = vec![
            kept(1, None),
            kept(99, None),
            kept(98, Some(Needed::Running)),
            kept(60, Some(Needed::WorkTree)),
            kept(97, None),
            kept(96, None),
            kept(95, Some(Needed::Running)),
        ];
        let plan = GcPlan::new(snapshot, retention, now);
        assert_eq!(days(&plan.remove), [1, 96]);
        assert_eq!(days(&plan.stay), [60, 95]);
    }

    #[test]
    fn only_attempts_are_listed_and_an_unreadable_one_stays() {
        let data = tempfile::tempdir().unwrap();
        assert!(snapshot(data.path(), &|_| false).unwrap().is_empty());
        let (broken, empty) = (kept(1, None).attempt, kept(2, None).attempt);
        for name in [broken.to_string(), empty.to_string(), "notes".into()] {
            std::fs::create_dir_all(data.path().join("attempts").join(name)).unwrap();
        }
        let manifest = data.path().join(format!("attempts/{broken}/manifest.json"));
        std::fs::write(manifest, "{").unwrap();
        let mut found = snapshot(data.path(), &|_| false).unwrap();
        found.sort_by_key(|kept| kept.attempt);
        let needed: Vec<_> = found
            .iter()
            .map(|kept| (kept.attempt, kept.needed))
            .collect();
        assert_eq!(needed, [(broken, Some(Needed::Unreadable)), (empty, None)]);
    }
}
