//! Everything below this process.

use std::io;

use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, wait};

use crate::table::{self, Entry};

/// The processes the command started, seen from the supervisor.
///
/// A subreaper without children has no descendants: whoever loses its parent
/// becomes its child. So the kernel's "no children" is the proof of the end,
/// and the table is only asked whom to signal.
pub(super) struct Below {
    command: Option<Pid>,
    /// How the command's first process ended.
    pub(super) ended: Option<WaitStatus>,
}

impl Below {
    pub(super) const fn new() -> Self {
        Self {
            command: None,
            ended: None,
        }
    }

    pub(super) fn started(&mut self, command: Pid) {
        self.command = Some(command);
    }

    pub(super) fn members(&self) -> io::Result<Vec<Entry>> {
        let snapshot = table::snapshot()?;
        #[cfg(target_os = "linux")]
        return Ok(table::descendants(getpid(), &snapshot));
        #[cfg(target_os = "macos")]
        Ok(self.kin(&snapshot))
    }

    /// Without a subreaper: descendants, and who still is in the command's
    /// group or the supervisor's session.
    #[cfg(target_os = "macos")]
    fn kin(&self, snapshot: &[Entry]) -> Vec<Entry> {
        let me = getpid();
        let mut kin = table::descendants(me, snapshot);
        for entry in snapshot {
            let of_group = self.command.is_some_and(|c| c.as_raw_pid() == entry.group);
            let of_session = entry.session == me.as_raw_pid();
            if entry.pid != me && (of_group || of_session) && !kin.contains(entry) {
                kin.push(*entry);
            }
        }
        kin
    }

    /// Takes the exit status of every child that ended. Returns whether there
    /// is no child left.
    pub(super) fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if Some(pid) == self.command && self.ended.is_none() {
                        self.ended = Some(status);
                    }
                }
                Ok(None) => return Ok(false),
                Err(rustix::io::Errno::CHILD) => return self.is_alone(),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "looks around on macOS"
    )]
    fn is_alone(&self) -> io::Result<bool> {
        Ok(true)
    }

    #[cfg(target_os = "macos")]
    fn is_alone(&self) -> io::Result<bool> {
        Ok(self.members()?.iter().all(Entry::is_dead))
    }
}
