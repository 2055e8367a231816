//! Meeting points of roles that run at the same time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// Barriers by name. Once reached, a barrier stays reached.
#[derive(Debug, Default)]
pub(crate) struct Barriers(Mutex<BTreeMap<String, watch::Sender<bool>>>);

impl Barriers {
    /// Marks a barrier as reached.
    pub(crate) fn reach(&self, name: &str) {
        self.with(name, |barrier| {
            barrier.send_replace(true);
        });
    }

    /// Ready once the barrier is reached.
    pub(crate) async fn reached(&self, name: &str) {
        let mut seen = self.with(name, watch::Sender::subscribe);
        // The sender lives in `self`; it cannot go away while we wait.
        let _ = seen.wait_for(|reached| *reached).await;
    }

    fn with<T>(&self, name: &str, act: impl FnOnce(&watch::Sender<bool>) -> T) -> T {
        let mut barriers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(barriers
            .entry(name.to_owned())
            .or_insert_with(|| watch::Sender::new(false)))
    }
}
