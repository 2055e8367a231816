//! What a killed supervisor leaves behind: its children become this process's.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, getpid, waitpid};

use super::registry::{Live, live};
use crate::supervisor::{Family, Stopped, stop_family};
use crate::table::{self, Entry};

/// Ends every process that came here from a killed supervisor. Blocks the
/// thread.
pub(super) fn stop_adopted(grace: Duration) -> io::Result<Stopped> {
    stop_family(&mut Adopted, grace)
}

/// Longest wait between two looks; exits of strangers' children make no sound
/// that could be waited for without taking it from somebody else.
const LOOK: Duration = Duration::from_millis(20);

/// The children of this process that it did not start.
///
/// A supervisor leads a session of its own, and a process can only ever leave
/// its session for a new one. So a child that is in another session than this
/// process, and is no supervisor, was once below a supervisor; and one that is
/// in this process's session never was.
struct Adopted;

/// One look at the table.
struct Look {
    roots: Vec<Entry>,
    snapshot: Vec<Entry>,
}

impl Look {
    /// `held`: meanwhile no supervisor is started or reaped.
    fn take(held: &Live) -> io::Result<Self> {
        let snapshot = table::snapshot()?;
        // Asked of the table as well: in a namespace of processes the leader
        // of this session may be outside, and is then told as 0 in both.
        let me = table::entry(getpid())?
            .ok_or_else(|| io::Error::other("this process is not in the table of processes"))?;
        let is_stray = |entry: &&Entry| {
            entry.parent == me.pid.as_raw_pid()
                && entry.session != me.session
                && entry.pid.as_raw_pid() > 1
                && !held.contains(entry.pid.as_raw_pid())
        };
        let roots = snapshot.iter().filter(is_stray).copied().collect();
        Ok(Self { roots, snapshot })
    }
}

impl Family for Adopted {
    fn members(&mut self) -> io::Result<Vec<Entry>> {
        let look = Look::take(&live())?;
        let mut members = look.roots.clone();
        for root in look.roots {
            members.extend(table::descendants(root.pid, &look.snapshot));
        }
        Ok(members)
    }

    fn is_gone(&mut self) -> io::Result<bool> {
        let held = live();
        for root in Look::take(&held)?.roots {
            reap(root.pid)?;
        }
        // The children of those that were reaped have come here by now.
        Ok(Look::take(&held)?.roots.is_empty())
    }

    fn wait(&mut self, bound: Duration) -> io::Result<Option<Duration>> {
        std::thread::sleep(bound.min(LOOK));
        Ok(None)
    }
}

/// Takes the exit status of a child, if it ended.
fn reap(pid: Pid) -> io::Result<()> {
    match waitpid(Some(pid), WaitOptions::NOHANG) {
        Ok(_) | Err(rustix::io::Errno::CHILD | rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
