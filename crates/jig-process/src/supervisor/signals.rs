//! The supervisor's signals, as something that can be waited on.

#[cfg(target_os = "linux")]
pub(super) use linux::Signals;
#[cfg(target_os = "macos")]
pub(super) use macos::Signals;

/// Signals that mean: stop the command and end.
#[cfg(target_os = "linux")]
const STOPPING: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

#[cfg(target_os = "linux")]
mod linux {
    #![expect(unsafe_code, reason = "rustix has no signalfd")]

    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

    use super::STOPPING;

    /// Signals that arrive on a descriptor instead of interrupting.
    pub(in super::super) struct Signals(OwnedFd);

    impl Signals {
        /// Blocks the signals that matter and opens the descriptor.
        pub(in super::super) fn open() -> io::Result<Self> {
            // SAFETY: an all-zero `sigset_t` is a valid place for `sigemptyset`
            // to fill; the calls only read and write that local value, and
            // `signalfd` returns a new descriptor that nobody else owns.
            unsafe {
                let mut set: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&raw mut set);
                libc::sigaddset(&raw mut set, libc::SIGCHLD);
                for signal in STOPPING {
                    libc::sigaddset(&raw mut set, signal);
                }
                if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) != 0 {
                    return Err(io::Error::last_os_error());
                }
                let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
                match libc::signalfd(-1, &raw const set, flags) {
                    -1 => Err(io::Error::last_os_error()),
                    descriptor => Ok(Self(OwnedFd::from_raw_fd(descriptor))),
                }
            }
        }

        pub(in super::super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            Some(self.0.as_fd())
        }

        /// Takes all signals that came. Returns whether one asks to stop.
        pub(in super::super) fn take(&self) -> io::Result<bool> {
            const RECORD: usize = size_of::<libc::signalfd_siginfo>();
            let mut stop = false;
            let mut record = [0_u8; RECORD];
            loop {
                match rustix::io::read(&self.0, &mut record) {
                    Ok(_) => {
                        // The number is the record's first field.
                        let [a, b, c, d, ..] = record;
                        let number = u32::from_ne_bytes([a, b, c, d]);
                        stop |= STOPPING.iter().any(|s| u32::try_from(*s) == Ok(number));
                    }
                    Err(rustix::io::Errno::AGAIN) => return Ok(stop),
                    Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
}

#[cfg(target_os = "macos")]
mod macos {
    use std::io;
    use std::os::fd::BorrowedFd;

    /// No signals are taken: exits are looked for at every tick of the poll,
    /// and a signal that ends the supervisor ends it.
    pub(in super::super) struct Signals;

    impl Signals {
        #[expect(clippy::unnecessary_wraps, reason = "fails on Linux")]
        pub(in super::super) fn open() -> io::Result<Self> {
            Ok(Self)
        }

        #[expect(clippy::unused_self, reason = "used on Linux")]
        pub(in super::super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        #[expect(
            clippy::unused_self,
            clippy::unnecessary_wraps,
            reason = "used, and fails, on Linux"
        )]
        pub(in super::super) fn take(&self) -> io::Result<bool> {
            Ok(false)
        }
    }
}
