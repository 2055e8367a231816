//! The background task that keeps a direct run's lease and hears of wishes to
//! cancel it.

use jig_protocol::ids::AttemptId;
use jig_protocol::lifecycle::lease::RENEW_EVERY;
use jig_protocol::token::TokenDigest;
use tokio_util::sync::CancellationToken;

use crate::service::{TransitionError, renew_lease};
use crate::store::Store;

/// Renews one lease until told to stop.
#[derive(Debug)]
pub(super) struct Heartbeat {
    pub(super) store: Store,
    pub(super) attempt: AttemptId,
    pub(super) token: TokenDigest,
    /// Fired when the attempt must stop: on request, or because the lease is gone.
    pub(super) cancel: CancellationToken,
    /// Fires once the end is recorded.
    pub(super) stop: CancellationToken,
}

impl Heartbeat {
    pub(super) async fn run(self) {
        loop {
            let clock = self.store.clock();
            let next = clock.monotonic().saturating_add(RENEW_EVERY);
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = clock.sleep_until(next) => {}
            }
            match renew_lease(&self.store, self.attempt, &self.token).await {
                Ok(renewal) if renewal.cancellation_requested => self.cancel.cancel(),
                Ok(_) => {}
                Err(TransitionError::Refused(verdict)) => {
                    tracing::error!(attempt = %self.attempt, %verdict, "the lease is gone");
                    self.cancel.cancel();
                    return;
                }
                // The lease outlives a few missed renewals.
                Err(error) => tracing::warn!(attempt = %self.attempt, %error, "missed a renewal"),
            }
        }
    }
}
