//! A clock that stands still until it is moved.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jig_protocol::time::{Clock, Monotonic, Sleep, Timestamp};

use crate::wait::wait_until_async;

/// A clock that is moved by hand. Clones share the time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    epoch: Timestamp,
    passed: Duration,
    next_sleeper: u64,
    sleepers: Vec<Sleeper>,
}

#[derive(Debug)]
struct Sleeper {
    id: u64,
    deadline: Monotonic,
    waker: Waker,
}

impl ManualClock {
    /// A clock that stands at 2026-01-01T00:00:00Z.
    #[must_use]
    pub fn new() -> Self {
        Self::at(Timestamp::from_millis(1_767_225_600_000))
    }

    /// A clock that stands at `moment`.
    #[must_use]
    pub fn at(moment: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            epoch: moment,
            passed: Duration::ZERO,
            next_sleeper: 0,
            sleepers: Vec::new(),
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the clock and wakes whoever's moment came.
    pub fn advance(&self, by: Duration) {
        let due: Vec<Waker> = {
            let mut inner = self.inner();
            inner.passed = inner.passed.saturating_add(by);
            let now = Monotonic::from_start(inner.passed);
            inner
                .sleepers
                .extract_if(.., |sleeper| sleeper.deadline <= now)
                .map(|sleeper| sleeper.waker)
                .collect()
        };
        due.into_iter().for_each(Waker::wake);
    }

    /// How many waits are asleep on this clock.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.inner().sleepers.len()
    }

    /// Waits (in real time) until at least `count` waits are asleep: only then
    /// does moving the clock reach them.
    pub async fn wait_for_sleepers(&self, count: usize) {
        wait_until_async("sleepers on the clock", || self.sleepers() >= count).await;
    }

    /// Waits (in real time) until a wait that ends within `within` from now is
    /// asleep.
    pub async fn wait_for_sleeper_within(&self, within: Duration) {
        wait_until_async("a sleeper within the time", || {
            let inner = self.inner();
            let limit = Monotonic::from_start(inner.passed.saturating_add(within));
            inner
                .sleepers
                .iter()
                .any(|sleeper| sleeper.deadline <= limit)
        })
        .await;
    }

    /// Waits (in real time) until no wait that ends within `within` from now
    /// is asleep.
    pub async fn wait_for_no_sleeper_within(&self, within: Duration) {
        wait_until_async("no sleeper within the time", || {
            let inner = self.inner();
            let limit = Monotonic::from_start(inner.passed.saturating_add(within));
            !inner
                .sleepers
                .iter()
                .any(|sleeper| sleeper.deadline <= limit)
        })
        .await;
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let inner = self.inner();
        inner.epoch.saturating_add(inner.passed)
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(self.inner().passed)
    }

    fn sleep_until(&self, deadline: Monotonic) -> Sleep {
        Box::pin(ManualSleep {
            clock: self.clone(),
            deadline,
            id: None,
        })
    }
}

struct ManualSleep {
    clock: ManualClock,
    deadline: Monotonic,
    id: Option<u64>,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut inner = clock.inner();
        if Monotonic::from_start(inner.passed) >= self.deadline {
            return Poll::Ready(());
        }
        let id = *self.id.get_or_insert_with(|| {
            inner.next_sleeper += 1;
            inner.next_sleeper
        });
        let waker = context.waker().clone();
        match inner.sleepers.iter_mut().find(|sleeper| sleeper.id == id) {
            Some(sleeper) => sleeper.waker = waker,
            None => inner.sleepers.push(Sleeper {
                id,
                deadline: self.deadline,
                waker,
            }),
        }
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.clock
                .inner()
                .sleepers
                .retain(|sleeper| sleeper.id != id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_its_moment_comes_and_not_before() {
        let clock = ManualClock::new();
        let start = clock.now();
        let deadline = clock.monotonic().saturating_add(Duration::from_secs(10));
        let sleeping = tokio::spawn(clock.sleep_until(deadline));
        clock.wait_for_sleepers(1).await;
        clock.advance(Duration::from_secs(9));
        assert_eq!(clock.sleepers(), 1, "woken too early");
        clock.wait_for_sleeper_within(Duration::from_secs(1)).await;
        clock.advance(Duration::from_secs(1));
        sleeping.await.unwrap();
        assert_eq!(clock.sleepers(), 0);
        assert_eq!(clock.now().saturating_since(start), Duration::from_secs(10));
    }

    #[tokio::test]
    async fn a_dropped_wait_is_no_sleeper() {
        let clock = ManualClock::new();
        let deadline = clock.monotonic().saturating_add(Duration::from_secs(10));
        let sleeping = tokio::spawn(clock.sleep_until(deadline));
        clock.wait_for_sleepers(1).await;
        sleeping.abort();
        assert!(sleeping.await.unwrap_err().is_cancelled());
        assert_eq!(clock.sleepers(), 0);
    }
}
