//! Stopping what an earlier jig left running.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;

use crate::identity::{GroupId, HeldProcess, ProcessIdentity};
use crate::supervisor::{Family, Stopped, stop_family};
use crate::table::{self, Entry};

/// What a supervisor may take beyond the grace before it is taken for stuck.
const STUCK_AFTER: Duration = Duration::from_secs(15);

/// Between two looks at a tree whose exits make no sound here.
const LOOK: Duration = Duration::from_millis(20);

/// What became of a supervisor that was recorded by an earlier jig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reclaimed {
    /// It has ended, and so has everything below it.
    Gone,
    /// These command lines could not be ended: nothing they may write to is
    /// safe to touch.
    Survivors(Vec<String>),
    /// The system would not say, with its answer. To be treated as alive.
    Unknown(String),
}

/// Stops a supervisor that another jig started, with everything below it:
/// asks it to end, and when it does not, ends its tree from outside. A process
/// that merely has the same pid is never signalled.
pub async fn stop_by_identity(supervisor: ProcessIdentity, grace: Duration) -> Reclaimed {
    let stopping = tokio::task::spawn_blocking(move || stop(&supervisor, grace));
    match stopping.await.map_err(io::Error::other).and_then(|r| r) {
        Ok(reclaimed) => reclaimed,
        Err(error) => Reclaimed::Unknown(error.to_string()),
    }
}

fn stop(supervisor: &ProcessIdentity, grace: Duration) -> io::Result<Reclaimed> {
    stop_within(supervisor, grace, grace + STUCK_AFTER)
}

fn stop_within(
    supervisor: &ProcessIdentity,
    grace: Duration,
    patience: Duration,
) -> io::Result<Reclaimed> {
    let Some(held) = supervisor.hold()? else {
        return Ok(Reclaimed::Gone);
    };
    // It ends only when everything below it has.
    held.signal(Signal::TERM)?;
    if held.wait_ended(patience)? {
        return Ok(Reclaimed::Gone);
    }
    stop_stuck(supervisor, &held, grace)
}

fn stop_stuck(
    supervisor: &ProcessIdentity,
    held: &HeldProcess,
    grace: Duration,
) -> io::Result<Reclaimed> {
    // Stopped, it cannot be ended by its own tree or start anything, and what
    // loses its parent still comes to it.
    held.signal(Signal::STOP)?;
    let root = GroupId::new(i64::from(supervisor.pid())).map_err(io::Error::other)?;
    let Stopped { survivors, .. } = stop_family(&mut Below { root }, grace)?;
    if !survivors.is_empty() {
        // It goes on trying, and keeps them together.
        held.signal(Signal::CONT)?;
        return Ok(Reclaimed::Survivors(survivors));
    }
    held.signal(Signal::KILL)?;
    if held.wait_ended(STUCK_AFTER)? {
        Ok(Reclaimed::Gone)
    } else {
        Ok(Reclaimed::Survivors(vec![supervisor.to_string()]))
    }
}

/// Everything below a process that is not ours.
struct Below {
    root: GroupId,
}

impl Family for Below {
    fn members(&mut self) -> io::Result<Vec<Entry>> {
        Ok(table::descendants(self.root.pid(), &table::snapshot()?))
    }

    fn is_gone(&mut self) -> io::Result<bool> {
        // Its zombies are not ours to reap, and do nothing.
        Ok(self.members()?.iter().all(Entry::is_dead))
    }

    fn wait(&mut self, bound: Duration) -> io::Result<Option<Duration>> {
        std::thread::sleep(bound.min(LOOK));
        Ok(None)
    }
}

/// Stops every process that was started with a `HOME` at or below `directory`,
/// and everything below those: what is left when a supervisor was killed
/// together with the jig that had started it. Says how many were found alive.
///
/// Where a process works says nothing (it may be the operator's shell), with
/// which home it was started does: only jig starts anything with such a home.
/// Found on Linux only.
pub async fn stop_by_home(directory: PathBuf, grace: Duration) -> (usize, Reclaimed) {
    let stopping = tokio::task::spawn_blocking(move || {
        let directory = directory.canonicalize()?;
        stop_family(&mut AtHome { directory }, grace)
    });
    match stopping.await.map_err(io::Error::other).and_then(|r| r) {
        Ok(Stopped { found, survivors }) if survivors.is_empty() => (found.len(), Reclaimed::Gone),
        Ok(Stopped { found, survivors }) => (found.len(), Reclaimed::Survivors(survivors)),
        Err(error) => (0, Reclaimed::Unknown(error.to_string())),
    }
}

/// Everything that was started with a home in a directory.
struct AtHome {
    /// Canonical.
    directory: PathBuf,
}

impl AtHome {
    fn is_at_home(&self, entry: &Entry) -> bool {
        let Some(home) = table::start_variable(entry.pid, "HOME").map(PathBuf::from) else {
            return false;
        };
        // The directory may have been reached through a link. Only what can be
        // a name of it is looked at; other homes may be slow to reach.
        let name = self.directory.file_name();
        home.starts_with(&self.directory)
            || (home.iter().any(|part| Some(part) == name)
                && home
                    .canonicalize()
                    .is_ok_and(|home| home.starts_with(&self.directory)))
    }
}

impl Family for AtHome {
    fn members(&mut self) -> io::Result<Vec<Entry>> {
        let snapshot = table::snapshot()?;
        // Not oneself, when jig is run by what an attempt has started.
        let above = ancestors(rustix::process::getpid().as_raw_pid(), &snapshot);
        let mut members: Vec<Entry> = Vec::new();
        for root in snapshot.iter().filter(|entry| {
            !above.contains(&entry.pid.as_raw_pid()) && !entry.is_dead() && self.is_at_home(entry)
        }) {
            members.push(*root);
            members.extend(table::descendants(root.pid, &snapshot));
        }
        members.sort_by_key(|entry| entry.pid.as_raw_pid());
        members.dedup_by_key(|entry| entry.pid.as_raw_pid());
        members.retain(|entry| !above.contains(&entry.pid.as_raw_pid()));
        Ok(members)
    }

    fn is_gone(&mut self) -> io::Result<bool> {
        Ok(self.members()?.iter().all(Entry::is_dead))
    }

    fn wait(&mut self, bound: Duration) -> io::Result<Option<Duration>> {
        std::thread::sleep(bound.min(LOOK));
        Ok(None)
    }
}

/// A process and everything above it.
fn ancestors(process: i32, table: &[Entry]) -> HashSet<i32> {
    let mut above = HashSet::new();
    let mut next = Some(process);
    while let Some(pid) = next {
        if !above.insert(pid) {
            break;
        }
        let entry = table.iter().find(|entry| entry.pid.as_raw_pid() == pid);
        next = entry.map(|entry| entry.parent);
    }
    above
}
