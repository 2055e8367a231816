//! The supervisors that this process started and has not reaped.
//!
//! Children belong to a process as a whole, so their record does too.

use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

static LIVE: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

fn count() -> &'static watch::Sender<usize> {
    static COUNT: std::sync::OnceLock<watch::Sender<usize>> = std::sync::OnceLock::new();
    COUNT.get_or_init(|| watch::Sender::new(0))
}

/// The record, held: nothing is started or reaped meanwhile.
pub(super) struct Live(MutexGuard<'static, Option<HashSet<i32>>>);

pub(super) fn live() -> Live {
    Live(LIVE.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Live {
    /// Starts a supervisor: between its birth and its entry nobody may take it
    /// for a stray.
    pub(super) fn start<T>(
        &mut self,
        spawn: impl FnOnce() -> io::Result<(i32, T)>,
    ) -> io::Result<T> {
        let (pid, value) = spawn()?;
        let pids = self.0.get_or_insert_default();
        pids.insert(pid);
        count().send_replace(pids.len());
        Ok(value)
    }

    pub(super) fn contains(&self, pid: i32) -> bool {
        self.0.as_ref().is_some_and(|pids| pids.contains(&pid))
    }

    pub(super) fn remove(&mut self, pid: i32) {
        let pids = self.0.get_or_insert_default();
        pids.remove(&pid);
        count().send_replace(pids.len());
    }
}

/// Waits until every supervisor that this process started has ended with all
/// that was below it, at most `bound`. Returns whether that is so.
///
/// For whoever drops a running [`crate::Supervised`] (or a future that holds
/// one) and wants to be sure before it goes on or exits.
pub async fn all_stopped(bound: Duration) -> bool {
    let mut seen = count().subscribe();
    let none = async { seen.wait_for(|count| *count == 0).await.is_ok() };
    tokio::time::timeout(bound, none).await.unwrap_or(false)
}
