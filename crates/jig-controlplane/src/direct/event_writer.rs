//! The background task that stores an attempt's events while it runs.
//!
//! It may be slow and it may fail: what it did not store is read from the trace
//! file, by itself later or together with the attempt's end.

use jig_protocol::event::Event;
use jig_protocol::ids::AttemptId;
use jig_protocol::token::TokenDigest;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::grouping::{Due, Group, Grouping};
use super::trace_tail::{TraceError, TraceTail};
use crate::service::{TransitionError, record_events};
use crate::store::Store;

/// Stores events as they come.
#[derive(Debug)]
pub(super) struct EventWriter {
    pub(super) store: Store,
    pub(super) attempt: AttemptId,
    pub(super) token: TokenDigest,
    pub(super) events: UnboundedReceiver<Event>,
    /// Fires once the executor has returned.
    pub(super) stop: CancellationToken,
}

#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Transition(#[from] TransitionError),
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl EventWriter {
    /// Runs until `stop`; what was handed in but not stored by then.
    pub(super) async fn run(mut self) -> Vec<Event> {
        let mut grouping = Grouping::default();
        loop {
            let clock = self.store.clock().clone();
            let due = match grouping.due() {
                Due::Now => {
                    self.commit(&mut grouping).await;
                    continue;
                }
                Due::At(then) => Some(then),
                Due::Later => None,
            };
            let timer = async {
                match due {
                    Some(then) => clock.sleep_until(then).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                event = self.events.recv() => match event {
                    Some(event) => grouping.push(event, clock.monotonic()),
                    None => {
                        self.stop.cancelled().await;
                        break;
                    }
                },
                () = timer => self.commit(&mut grouping).await,
            }
        }
        self.events.close();
        while let Some(event) = self.events.recv().await {
            grouping.push(event, self.store.clock().monotonic());
        }
        grouping.into_rest()
    }

    async fn commit(&self, grouping: &mut Grouping) {
        let written = match grouping.take() {
            Group::Events(events) => {
                let recorded = record_events(&self.store, self.attempt, &self.token, &events).await;
                recorded.map(|_| ()).map_err(WriteError::from)
            }
            Group::FromTrace => self.catch_up().await,
        };
        if let Err(error) = written {
            tracing::warn!(attempt = %self.attempt, %error, "events are stored later");
            grouping.failed(self.store.clock().monotonic());
        }
    }

    async fn catch_up(&self) -> Result<(), WriteError> {
        let mut tail = TraceTail::open(&self.store, self.attempt).await?;
        loop {
            let (batch, more) = tail.next_batch().map_err(TraceError::from)?;
            record_events(&self.store, self.attempt, &self.token, &batch).await?;
            if !more {
                return Ok(());
            }
        }
    }
}
