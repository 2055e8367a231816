//! Waiting on descriptors for a bounded time.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};

/// Where exits cannot be waited for through a descriptor, they are looked for
/// this often.
#[cfg(target_os = "macos")]
const TICK: Duration = Duration::from_millis(10);

/// Waits until one of `watched` is ready, or `bound` is over. Which of them
/// are ready is in their `revents`. May return early.
pub(crate) fn poll_for(watched: &mut [PollFd<'_>], bound: Duration) -> io::Result<()> {
    #[cfg(target_os = "macos")]
    let bound = bound.min(TICK);
    let timeout = Timespec {
        tv_sec: i64::try_from(bound.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(bound.subsec_nanos()),
    };
    match poll(watched, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
