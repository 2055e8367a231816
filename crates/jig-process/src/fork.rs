//! What happens in a new child between `fork` and `exec`.
//!
//! Everything here runs in a process that was forked from one that may have
//! many threads: only system calls, no allocation, no locks.

#![expect(
    unsafe_code,
    reason = "a closure between fork and exec, and the calls that rustix lacks"
)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Signal;

use crate::supervisor::Confinement;

/// How a child differs from its parent.
#[derive(Debug, Clone)]
pub(crate) struct ChildSetup {
    /// What it leads.
    pub(crate) leads: Leads,
    /// The signal it gets when the **thread** that started it ends (Linux).
    pub(crate) death_signal: Option<Signal>,
    /// A descriptor above 2 that it keeps.
    pub(crate) keep: Option<RawFd>,
    /// What it may do.
    pub(crate) confinement: Confinement,
}

/// What a new child is the leader of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leads {
    /// A process group.
    Group,
    /// A session, and so a process group; it has no controlling terminal.
    Session,
}

/// Makes `command` set its child up as `setup` says. Signal dispositions and
/// mask are the default ones, and no descriptor but 0, 1, 2 and the kept one
/// is passed on.
pub(crate) fn set_up(command: &mut Command, setup: ChildSetup) {
    let parent = rustix::process::getpid();
    let in_child = move || {
        reset_signals();
        seal_descriptors();
        if let Some(keep) = setup.keep {
            keep_descriptor(keep)?;
        }
        match setup.leads {
            Leads::Group => rustix::process::setpgid(None, None)?,
            Leads::Session => {
                rustix::process::setsid()?;
            }
        }
        #[cfg(target_os = "linux")]
        if setup.death_signal.is_some() {
            rustix::process::set_parent_process_death_signal(setup.death_signal)?;
            // The parent may have died before the line above.
            if rustix::process::getppid() != Some(parent) {
                return Err(io::Error::from(rustix::io::Errno::SRCH));
            }
        }
        #[cfg(target_os = "macos")]
        let _ = (parent, setup.death_signal);
        setup.confinement.apply()
    };
    // SAFETY: the closure makes system calls on values that were made before
    // the fork; it allocates nothing, takes no lock, and touches no descriptor
    // that something in the child believes to own, except to mark it.
    unsafe {
        command.pre_exec(in_child);
    }
}

/// Sets every signal to its default action and unblocks all: a parent that
/// ignores `SIGINT` or `SIGPIPE` must not teach it to its children.
fn reset_signals() {
    for number in 1..=64 {
        set_default(number);
    }
    // SAFETY: an all-zero `sigset_t` is a valid place for `sigemptyset` to fill,
    // and the old mask is not asked for.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// The C library's own call would refuse the signals it keeps for itself.
#[cfg(target_os = "linux")]
fn set_default(number: libc::c_int) {
    // Handler, flags, restorer and mask of the kernel's structure, with room:
    // all zero is the default action.
    let default = [0_u64; 8];
    // SAFETY: the kernel reads the structure, which is at least as large as it
    // expects; KILL and STOP are refused, which is as well.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            number,
            default.as_ptr(),
            std::ptr::null::<u64>(),
            size_of::<u64>(),
        );
    }
}

#[cfg(target_os = "macos")]
fn set_default(number: libc::c_int) {
    // SAFETY: SIG_DFL is a valid action; numbers that cannot be set are refused.
    unsafe {
        libc::signal(number, libc::SIG_DFL);
    }
}

/// Marks every descriptor above 2 to be closed at exec. Those that jig itself
/// was started with, for instance, need not be so marked.
fn seal_descriptors() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: close_range with CLOSE_RANGE_CLOEXEC only marks descriptors.
        let result = unsafe {
            libc::syscall(
                libc::SYS_close_range,
                3_u32,
                u32::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
        if result == 0 {
            return;
        }
    }
    for descriptor in 3..descriptor_bound() {
        // SAFETY: only marks the descriptor, and fails where there is none.
        unsafe {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// No descriptor is as large as this, within reason.
fn descriptor_bound() -> RawFd {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let soft = limit.current.unwrap_or(65_536).min(65_536);
    RawFd::try_from(soft).unwrap_or(RawFd::MAX)
}

fn keep_descriptor(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: clears the mark on a descriptor that the parent holds open.
    match unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Takes over the socket that the supervisor was started with, and closes
/// every other descriptor above 2. To be called before anything is opened.
pub(crate) fn adopt_control(descriptor: RawFd) -> io::Result<UnixStream> {
    if descriptor <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: nothing was opened yet in this process, so that no value in it
    // owns a descriptor above 2; `fcntl` and `close` of a number that is no
    // descriptor fail.
    unsafe {
        if libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) == -1 {
            return Err(io::Error::last_os_error());
        }
        close_between(3, descriptor - 1);
        close_between(descriptor + 1, RawFd::MAX);
        let control = OwnedFd::from_raw_fd(descriptor);
        let kind = rustix::fs::fstat(&control)?.st_mode;
        if rustix::fs::FileType::from_raw_mode(kind) != rustix::fs::FileType::Socket {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(UnixStream::from(control))
    }
}

/// # Safety
///
/// No value in the process owns a descriptor from `first` to `last`.
unsafe fn close_between(first: RawFd, last: RawFd) {
    if first > last {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        // SAFETY: as the caller promised.
        if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0 {
            return;
        }
    }
    for descriptor in first..=last.min(descriptor_bound()) {
        // SAFETY: as the caller promised.
        unsafe {
            libc::close(descriptor);
        }
    }
}
