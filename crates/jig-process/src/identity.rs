//! Who a process is, so that nobody else is ever signalled in its place.
//!
//! A pid alone is reused. A [`ProcessIdentity`] adds the boot and the moment
//! the process started; it may be written down and checked by a later jig.

use std::fmt;
use std::io;
use std::num::NonZeroU32;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use crate::table;

/// A process, told apart from every other that had or will have its pid.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "RawIdentity")]
pub struct ProcessIdentity {
    /// The boot it runs in.
    boot_id: String,
    /// Its process id; never 0 or 1.
    pid: u32,
    /// When it started: clock ticks since boot on Linux, microseconds since
    /// the epoch on macOS.
    start_time: u64,
}

#[derive(Deserialize)]
struct RawIdentity {
    boot_id: String,
    pid: u32,
    start_time: u64,
}

impl TryFrom<RawIdentity> for ProcessIdentity {
    type Error = InvalidGroup;

    fn try_from(raw: RawIdentity) -> Result<Self, InvalidGroup> {
        GroupId::new(i64::from(raw.pid))?;
        Ok(Self {
            boot_id: raw.boot_id,
            pid: raw.pid,
            start_time: raw.start_time,
        })
    }
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} (started {})", self.pid, self.start_time)
    }
}

/// What is known about whether a process still exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Liveness {
    /// It exists and can still act.
    Alive,
    /// It has ended: there is no such process, another one has its pid, the
    /// machine was started anew, or only its exit status is left.
    Gone,
    /// The system would not say. To be treated as alive.
    Unknown(String),
}

impl ProcessIdentity {
    /// The identity of the live process `pid`; `None` when there is none.
    ///
    /// # Errors
    ///
    /// When the system will not say, or the pid is one that is never signalled.
    pub fn of(pid: u32) -> io::Result<Option<Self>> {
        let group = GroupId::new(i64::from(pid)).map_err(io::Error::other)?;
        let Some(entry) = table::entry(group.pid())? else {
            return Ok(None);
        };
        Ok(Some(Self {
            boot_id: table::boot_id()?,
            pid,
            start_time: entry.start_time,
        }))
    }

    /// The identity of this process.
    ///
    /// # Errors
    ///
    /// When the system will not say.
    pub fn current() -> io::Result<Self> {
        Self::of(std::process::id())?.ok_or_else(|| io::Error::other("this process is not listed"))
    }

    /// The process id. Use it to show, not to signal.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process still exists.
    #[must_use]
    pub fn liveness(&self) -> Liveness {
        match table::boot_id() {
            Ok(boot) if boot != self.boot_id => return Liveness::Gone,
            Ok(_) => {}
            Err(error) => return Liveness::Unknown(error.to_string()),
        }
        match table::entry(self.raw_pid()) {
            Ok(Some(entry)) if entry.start_time == self.start_time && !entry.is_dead() => {
                Liveness::Alive
            }
            Ok(_) => Liveness::Gone,
            Err(error) => Liveness::Unknown(error.to_string()),
        }
    }

    /// A handle that cannot come to mean another process; `None` when the
    /// process is gone.
    ///
    /// # Errors
    ///
    /// When the system will not say.
    pub(crate) fn hold(&self) -> io::Result<Option<HeldProcess>> {
        if table::boot_id()? != self.boot_id {
            return Ok(None);
        }
        HeldProcess::open(self.raw_pid(), self.start_time)
    }

    fn raw_pid(&self) -> Pid {
        GroupId(NonZeroU32::new(self.pid).unwrap_or(NonZeroU32::MAX)).pid()
    }
}

/// A process that was checked to be the one that was meant.
pub(crate) struct HeldProcess {
    pid: Pid,
    start_time: u64,
    #[cfg(target_os = "linux")]
    pidfd: std::os::fd::OwnedFd,
}

impl HeldProcess {
    /// Opens `pid` if it is the process that started at `start_time`.
    #[cfg(target_os = "linux")]
    pub(crate) fn open(pid: Pid, start_time: u64) -> io::Result<Option<Self>> {
        use rustix::process::{PidfdFlags, pidfd_open};
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            // EINVAL: the pid is a thread's, so the process is gone.
            Err(rustix::io::Errno::SRCH | rustix::io::Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Asked after opening: what we hold is what we look at.
        match table::entry(pid)? {
            Some(entry) if entry.start_time == start_time => Ok(Some(Self {
                pid,
                start_time,
                pidfd,
            })),
            _ => Ok(None),
        }
    }

    /// Opens `pid` if it is the process that started at `start_time`.
    #[cfg(target_os = "macos")]
    pub(crate) fn open(pid: Pid, start_time: u64) -> io::Result<Option<Self>> {
        Ok(table::entry(pid)?
            .filter(|entry| entry.start_time == start_time)
            .map(|_| Self { pid, start_time }))
    }

    /// Sends `signal`. Returns whether there was still a process to send to.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<bool> {
        #[cfg(target_os = "linux")]
        let sent = rustix::process::pidfd_send_signal(&self.pidfd, signal);
        #[cfg(target_os = "macos")]
        let sent = match table::entry(self.pid)? {
            Some(entry) if entry.start_time == self.start_time => {
                rustix::process::kill_process(self.pid, signal)
            }
            _ => Err(rustix::io::Errno::SRCH),
        };
        match sent {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether only its exit status, or nothing, is left.
    pub(crate) fn has_ended(&self) -> io::Result<bool> {
        Ok(table::entry(self.pid)?
            .is_none_or(|entry| entry.start_time != self.start_time || entry.is_dead()))
    }

    /// Waits until the process ended, at most `bound`. Returns whether it has.
    /// Blocks the thread.
    pub(crate) fn wait_ended(&self, bound: Duration) -> io::Result<bool> {
        let until = std::time::Instant::now() + bound;
        loop {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if self.has_ended()? {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
            self.poll_ended(left)?;
        }
    }

    #[cfg(target_os = "linux")]
    fn poll_ended(&self, bound: Duration) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        let timeout = rustix::event::Timespec {
            tv_sec: i64::try_from(bound.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(bound.subsec_nanos()),
        };
        match poll(
            &mut [PollFd::new(&self.pidfd, PollFlags::IN)],
            Some(&timeout),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(target_os = "macos")]
    fn poll_ended(&self, bound: Duration) -> io::Result<()> {
        std::thread::sleep(bound.min(Duration::from_millis(20)));
        Ok(())
    }
}

/// A process group, or a process, that may be signalled: never "every process"
/// (−1), "my own group" (0) or the system's first process (1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupId(NonZeroU32);

/// A number that is no process that may be signalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a process that may be signalled")]
pub struct InvalidGroup(pub i64);

impl GroupId {
    /// Checks a number.
    ///
    /// # Errors
    ///
    /// When it is below 2 or no process id at all.
    pub fn new(id: i64) -> Result<Self, InvalidGroup> {
        let refuse = InvalidGroup(id);
        // Linux and macOS both keep pids within an `i32`.
        let small = i32::try_from(id).map_err(|_| refuse)?;
        if small <= 1 {
            return Err(refuse);
        }
        let number = u32::try_from(small).map_err(|_| refuse)?;
        NonZeroU32::new(number).map(Self).ok_or(refuse)
    }

    pub(crate) fn pid(self) -> Pid {
        // Checked to fit when the value was made.
        let raw = i32::try_from(self.0.get()).unwrap_or(i32::MAX);
        Pid::from_raw(raw).unwrap_or(Pid::INIT)
    }

    /// Signals every member. The caller holds the group's leader unreaped, so
    /// the number cannot have come to mean another group.
    pub(crate) fn signal(self, signal: Signal) -> io::Result<bool> {
        match rustix::process::kill_process_group(self.pid(), signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_mean_everybody_are_no_groups() {
        for id in [i64::MIN, -2, -1, 0, 1, i64::from(i32::MAX) + 1] {
            assert_eq!(GroupId::new(id), Err(InvalidGroup(id)));
        }
        assert!(GroupId::new(2).is_ok());
    }

    #[test]
    fn an_identity_read_from_disk_cannot_name_everybody() {
        let json = r#"{"boot_id":"b","pid":1,"start_time":0}"#;
        assert!(serde_json::from_str::<ProcessIdentity>(json).is_err());
    }

    #[test]
    fn this_process_is_alive_and_its_namesakes_are_not() {
        let me = ProcessIdentity::current().unwrap();
        assert_eq!(me.liveness(), Liveness::Alive);
        let round: ProcessIdentity =
            serde_json::from_str(&serde_json::to_string(&me).unwrap()).unwrap();
        assert_eq!(round, me);

        let mut earlier = me.clone();
        earlier.start_time -= 1;
        assert_eq!(earlier.liveness(), Liveness::Gone);
        assert!(earlier.hold().unwrap().is_none());

        let mut other_boot = me;
        other_boot.boot_id.push('x');
        assert_eq!(other_boot.liveness(), Liveness::Gone);
        assert!(other_boot.hold().unwrap().is_none());
    }
}
