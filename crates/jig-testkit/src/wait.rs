//! Waiting for a thing rather than for a time.

use std::time::{Duration, Instant};

/// The bound of every wait: far beyond what a loaded machine needs, so that
/// reaching it means the thing will never come.
pub const BOUND: Duration = Duration::from_secs(60);

const LOOK: Duration = Duration::from_millis(5);

/// Blocks until `condition` holds.
///
/// # Panics
///
/// When it does not within [`BOUND`]; `what` says what was waited for.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < BOUND, "waited in vain for: {what}");
        std::thread::sleep(LOOK);
    }
}

/// As [`wait_until`], without blocking the runtime's thread.
///
/// # Panics
///
/// When the condition does not hold within [`BOUND`].
pub async fn wait_until_async(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < BOUND, "waited in vain for: {what}");
        tokio::time::sleep(LOOK).await;
    }
}
