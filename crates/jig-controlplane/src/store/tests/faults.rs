//! Kills this process at the k-th statement, commit or end of a commit.

use std::sync::atomic::{AtomicU64, Ordering};

/// Steps left until the kill; 0 means never.
static LEFT: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicU64 = AtomicU64::new(0);

pub(crate) fn kill_at(step: u64) {
    LEFT.store(step, Ordering::SeqCst);
}

/// How many steps this process has taken.
pub(crate) fn taken() -> u64 {
    TAKEN.load(Ordering::SeqCst)
}

pub(crate) fn step() {
    TAKEN.fetch_add(1, Ordering::SeqCst);
    let left = LEFT.load(Ordering::SeqCst);
    if left > 0 && LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    }
}
