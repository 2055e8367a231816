//! Stopping what an earlier jig left running.

use std::io;
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
