//! The stop ladder: TERM and a grace, then freeze and KILL until none is left.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::identity::HeldProcess;
use crate::table::{Entry, command_line};

/// How long KILL is repeated before what is left is called a survivor (a
/// process the kernel holds, or one of another user).
const KILL_BOUND: Duration = Duration::from_secs(5);

/// Longest wait between two looks while KILL takes effect.
const KILL_LOOK: Duration = Duration::from_millis(100);

/// Passes over a family that grows while it is frozen.
const FREEZE_PASSES: usize = 16;

/// The most command lines that are reported.
const REPORTED: usize = 32;

/// Processes that belong together and are to be ended together.
pub(crate) trait Family {
    /// The members there are now.
    fn members(&mut self) -> io::Result<Vec<Entry>>;

    /// Whether there are none left, not even as zombies. Reaps what it may.
    fn is_gone(&mut self) -> io::Result<bool>;

    /// Waits until a member may have ended, at most `bound`. May return a
    /// request for a shorter grace.
    fn wait(&mut self, bound: Duration) -> io::Result<Option<Duration>>;
}

/// What stopping a family found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// Command lines of the processes that were alive at the start.
    pub(crate) found: Vec<String>,
    /// Command lines of the processes that could not be ended.
    pub(crate) survivors: Vec<String>,
}

/// Ends all members. A family that ends on TERM, or is gone already, costs no
/// waiting.
pub(crate) fn stop_family(family: &mut impl Family, grace: Duration) -> io::Result<Stopped> {
    let mut stopped = Stopped::default();
    if family.is_gone()? {
        return Ok(stopped);
    }
    // Read first: one that is ending has no command line any more.
    stopped.found = command_lines(&live_members(family)?);
    let mut asked = HashSet::new();
    ask_to_end(family, &mut asked)?;
    if wait_gone(family, &mut asked, grace)? {
        return Ok(stopped);
    }
    let kill_until = Instant::now() + KILL_BOUND;
    loop {
        freeze(family)?;
        for member in live_members(family)? {
            signal(&member, Signal::KILL);
        }
        if family.is_gone()? {
            return Ok(stopped);
        }
        family.wait(KILL_LOOK)?;
        if family.is_gone()? {
            return Ok(stopped);
        }
        if Instant::now() >= kill_until {
            let survivors = live_members(family)?;
            stopped.survivors = command_lines(&survivors);
            return Ok(stopped);
        }
    }
}

/// Waits until none is left, at most the grace, which may get shorter. Whoever
/// was made while the others were being asked is asked as well.
fn wait_gone(
    family: &mut impl Family,
    asked: &mut HashSet<Who>,
    grace: Duration,
) -> io::Result<bool> {
    let mut until = Instant::now() + grace;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return family.is_gone();
        }
        if let Some(shorter) = family.wait(left)? {
            until = until.min(Instant::now() + shorter);
        }
        if family.is_gone()? {
            return Ok(true);
        }
        ask_to_end(family, asked)?;
    }
}

/// A process, told apart from a later one with its number.
type Who = (i32, u64);

/// Asks the members to end that were not asked yet.
fn ask_to_end(family: &mut impl Family, asked: &mut HashSet<Who>) -> io::Result<()> {
    // A stopped process acts on TERM only when it is continued.
    signal_new(family, asked, &[Signal::TERM, Signal::CONT]).map(|_| ())
}

/// Stops the members from making new ones while they are being ended.
fn freeze(family: &mut impl Family) -> io::Result<()> {
    let mut frozen = HashSet::new();
    for _ in 0..FREEZE_PASSES {
        if signal_new(family, &mut frozen, &[Signal::STOP])?.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Sends the signals to the members that are not in `seen` yet; those.
fn signal_new(
    family: &mut impl Family,
    seen: &mut HashSet<Who>,
    signals: &[Signal],
) -> io::Result<Vec<Entry>> {
    let mut members = live_members(family)?;
    members.retain(|member| seen.insert((member.pid.as_raw_pid(), member.start_time)));
    for member in &members {
        for each in signals {
            signal(member, *each);
        }
    }
    Ok(members)
}

fn live_members(family: &mut impl Family) -> io::Result<Vec<Entry>> {
    let mut members = family.members()?;
    members.retain(|member| !member.is_dead());
    Ok(members)
}

/// Signals a member after checking that it still is who it was. What cannot be
/// signalled shows as a survivor in the end.
fn signal(member: &Entry, signal: Signal) {
    if member.pid.as_raw_pid() <= 1 {
        return;
    }
    if let Ok(Some(held)) = HeldProcess::open(member.pid, member.start_time) {
        let _ = held.signal(signal);
    }
}

fn command_lines(members: &[Entry]) -> Vec<String> {
    members
        .iter()
        .take(REPORTED)
        .map(|member| command_line(member.pid))
        .collect()
}
