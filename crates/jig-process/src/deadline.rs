//! The one object that ends every wait: clocks and stop requests together.
//!
//! A [`Deadline`] is a list of moments and signals, each with the reason it
//! stands for. It only ever gets narrower: a phase adds its own clock to the
//! attempt's deadline and hands the result to everything it waits for.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use jig_protocol::time::{Clock, Monotonic};
use tokio::sync::watch;

/// Why a wait was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// The phase's own clock.
    PhaseTimeout,
    /// The attempt's clock.
    Ceiling,
    /// Somebody asked for the attempt to end.
    Cancelled,
    /// A sibling in the same group decided the group's fate.
    GroupStop,
    /// Not a byte for too long.
    Silence,
    /// The clock of stopping and recording after an end.
    Unwinding,
}

impl StopReason {
    /// Whether a clock, rather than a person or a sibling, is behind it.
    #[must_use]
    pub const fn is_clock(self) -> bool {
        matches!(
            self,
            Self::PhaseTimeout | Self::Ceiling | Self::Silence | Self::Unwinding
        )
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PhaseTimeout => "the phase's time is up",
            Self::Ceiling => "the attempt's time is up",
            Self::Cancelled => "cancelled",
            Self::GroupStop => "the group was stopped",
            Self::Silence => "no output for too long",
            Self::Unwinding => "the time for unwinding is up",
        })
    }
}

/// A request to stop that is raised once and seen by every clone.
///
/// The first reason wins; later ones are ignored.
#[derive(Clone)]
pub struct StopSignal(Arc<watch::Sender<Option<StopReason>>>);

impl StopSignal {
    /// A signal that nobody has raised.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// Raises the signal. Returns whether this call was the first.
    pub fn raise(&self, reason: StopReason) -> bool {
        self.0.send_if_modified(|slot| {
            let first = slot.is_none();
            if first {
                *slot = Some(reason);
            }
            first
        })
    }

    /// The reason it was raised with, when it was.
    #[must_use]
    pub fn raised(&self) -> Option<StopReason> {
        *self.0.borrow()
    }

    /// Ready once the signal is raised.
    pub async fn wait(&self) -> StopReason {
        let mut seen = self.0.subscribe();
        loop {
            if let Some(reason) = *seen.borrow_and_update() {
                return reason;
            }
            // The sender lives in `self`, so this cannot fail while we wait.
            if seen.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Default for StopSignal {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for StopSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StopSignal").field(&self.raised()).finish()
    }
}

/// Everything that may end a wait.
#[derive(Debug, Clone)]
pub struct Deadline {
    clock: Arc<dyn Clock>,
    /// Sorted by moment; of equal moments the one added first is first.
    moments: Vec<(Monotonic, StopReason)>,
    signals: Vec<StopSignal>,
}

impl Deadline {
    /// A deadline that never comes, until something is added.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            moments: Vec::new(),
            signals: Vec::new(),
        }
    }

    /// This deadline, ended at `moment` as well.
    #[must_use]
    pub fn and_at(&self, moment: Monotonic, reason: StopReason) -> Self {
        let mut narrower = self.clone();
        let place = narrower
            .moments
            .partition_point(|(other, _)| *other <= moment);
        narrower.moments.insert(place, (moment, reason));
        narrower
    }

    /// This deadline, ended `after` from now as well.
    #[must_use]
    pub fn and_within(&self, after: Duration, reason: StopReason) -> Self {
        self.and_at(self.clock.monotonic().saturating_add(after), reason)
    }

    /// This deadline, ended by `signal` as well.
    #[must_use]
    pub fn and_signal(&self, signal: &StopSignal) -> Self {
        let mut narrower = self.clone();
        narrower.signals.push(signal.clone());
        narrower
    }

    /// The clock its moments are read from.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The reason to stop now, when there is one. Signals outrank clocks, in
    /// the order they were added; of clocks the earliest counts.
    #[must_use]
    pub fn reached(&self) -> Option<StopReason> {
        if let Some(reason) = self.signals.iter().find_map(StopSignal::raised) {
            return Some(reason);
        }
        let (moment, reason) = self.moments.first()?;
        (self.clock.monotonic() >= *moment).then_some(*reason)
    }

    /// Time until the earliest clock; `None` when there is no clock.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        let (moment, _) = self.moments.first()?;
        Some(moment.saturating_since(self.clock.monotonic()))
    }

    /// Ready once there is a reason to stop. May be dropped and asked again.
    pub async fn wait(&self) -> StopReason {
        let mut signals: Vec<_> = self.signals.iter().map(|s| Box::pin(s.wait())).collect();
        let mut sleep = self
            .moments
            .first()
            .map(|(moment, reason)| (self.clock.sleep_until(*moment), *reason));
        std::future::poll_fn(|context| {
            for signal in &mut signals {
                if let Poll::Ready(reason) = signal.as_mut().poll(context) {
                    return Poll::Ready(reason);
                }
            }
            match &mut sleep {
                Some((sleep, reason)) => sleep.as_mut().poll(context).map(|()| *reason),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// The value of `work`, or the reason it was abandoned (and dropped).
    /// When both are ready together the value wins.
    ///
    /// # Errors
    ///
    /// The reason to stop, when it came before the value.
    pub async fn bound<F: Future>(&self, work: F) -> Result<F::Output, StopReason> {
        tokio::select! {
            biased;
            value = work => Ok(value),
            reason = self.wait() => Err(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemClock;

    fn never() -> Deadline {
        Deadline::new(Arc::new(SystemClock::new()))
    }

    #[tokio::test]
    async fn the_earliest_clock_counts_and_signals_outrank_clocks() {
        let past = Monotonic::from_start(Duration::ZERO);
        let signal = StopSignal::new();
        let deadline = never()
            .and_within(Duration::from_secs(3600), StopReason::Ceiling)
            .and_at(past, StopReason::PhaseTimeout)
            .and_signal(&signal);
        assert_eq!(deadline.reached(), Some(StopReason::PhaseTimeout));
        assert_eq!(deadline.wait().await, StopReason::PhaseTimeout);
        assert!(signal.raise(StopReason::Cancelled));
        assert!(
            !signal.raise(StopReason::GroupStop),
            "the first reason wins"
        );
        assert_eq!(deadline.reached(), Some(StopReason::Cancelled));
        assert_eq!(deadline.wait().await, StopReason::Cancelled);
    }

    #[tokio::test]
    async fn narrowing_leaves_the_wider_deadline_alone() {
        let wide = never();
        let narrow = wide.and_within(Duration::ZERO, StopReason::PhaseTimeout);
        assert_eq!(wide.reached(), None);
        assert_eq!(wide.remaining(), None);
        assert_eq!(narrow.reached(), Some(StopReason::PhaseTimeout));
        assert_eq!(narrow.remaining(), Some(Duration::ZERO));
    }

    #[tokio::test]
    async fn a_ready_value_wins_over_a_ready_deadline() {
        let over = never().and_within(Duration::ZERO, StopReason::PhaseTimeout);
        assert_eq!(over.bound(std::future::ready(7)).await, Ok(7));
        assert_eq!(
            over.bound(std::future::pending::<()>()).await,
            Err(StopReason::PhaseTimeout)
        );
    }

    #[tokio::test]
    async fn a_signal_raised_during_the_wait_ends_it() {
        let signal = StopSignal::new();
        let deadline = never().and_signal(&signal);
        let waiting = tokio::spawn(async move { deadline.wait().await });
        tokio::task::yield_now().await;
        signal.raise(StopReason::GroupStop);
        assert_eq!(waiting.await.unwrap(), StopReason::GroupStop);
    }
}
