//! One attempt at a time in an operator's checkout.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};

/// Held while an attempt works in place; ends with the value, or the process.
///
/// Two attempts in one tree would each take the other's changes for their own,
/// judge them and undo them. What is locked is the checkout's git directory
/// itself, since nothing may be written there, and since runs with different
/// data directories must meet.
#[derive(Debug)]
pub(crate) struct CheckoutLock {
    _directory: File,
}

impl CheckoutLock {
    /// Locks the checkout that has this git directory; `None` when somebody
    /// else works in it.
    ///
    /// # Errors
    /// When the directory cannot be opened or locked.
    pub(crate) fn take(git_dir: &Path) -> io::Result<Option<Self>> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = File::options()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(git_dir)?;
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self {
                _directory: directory,
            })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}
