//! What a scripted answer waits for.

use std::sync::Arc;

use tokio::sync::watch;

/// Closed until the test opens it, then open for good. Clones are the same
/// gate.
#[derive(Debug, Clone)]
pub struct Gate {
    open: Arc<watch::Sender<bool>>,
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self {
            open: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Lets everything through that waits here or will come.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Ends when the gate is open; never, when it never is.
    pub(super) async fn passed(self) {
        let mut open = self.open.subscribe();
        // The sender lives in `self`, so the wait cannot end without it.
        let _ = open.wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
