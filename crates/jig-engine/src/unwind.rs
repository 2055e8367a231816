//! How an attempt ends in order: panics stop at the attempt that they happened
//! in, and what is left to do after its end has one clock.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use jig_process::{Deadline, StopReason};
use jig_protocol::limits;
use jig_protocol::time::{Clock, Monotonic};

/// The clock of what is left to do once an attempt ends: one for all of it,
/// from the first end on, whatever ends it again on the way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unwinding {
    since: Option<Monotonic>,
}

impl Unwinding {
    /// The attempt ends. Only the first call counts.
    pub(crate) fn begin(&mut self, clock: &Arc<dyn Clock>) {
        self.since.get_or_insert_with(|| clock.monotonic());
    }

    /// The deadline of a step: what is left of the one clock, or a whole one
    /// while the attempt goes on.
    pub(crate) fn deadline(self, clock: &Arc<dyn Clock>) -> Deadline {
        let since = self.since.unwrap_or_else(|| clock.monotonic());
        let end = since.saturating_add(limits::UNWIND_TIMEOUT);
        Deadline::new(Arc::clone(clock)).and_at(end, StopReason::Unwinding)
    }
}

/// A future whose panic is its value.
pub(crate) struct Caught<'a, T>(Pin<Box<dyn Future<Output = T> + Send + 'a>>);

/// Runs `work` to its end, or to its panic, whose message is the error.
///
/// What `work` borrows may be half-changed after a panic: the caller treats it
/// as the state of something that broke, not of something that succeeded.
pub(crate) fn caught<'a, T>(work: impl Future<Output = T> + Send + 'a) -> Caught<'a, T> {
    Caught(Box::pin(work))
}

impl<T> Future for Caught<'_, T> {
    type Output = Result<T, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(message(panic.as_ref()))),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", said.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jig_testkit::ManualClock;

    use super::*;

    #[test]
    fn the_first_end_starts_the_one_clock() {
        let moved = ManualClock::new();
        let clock: Arc<dyn Clock> = Arc::new(moved.clone());
        let mut unwinding = Unwinding::default();
        moved.advance(limits::UNWIND_TIMEOUT);
        assert_eq!(unwinding.deadline(&clock).reached(), None);
        unwinding.begin(&clock);
        moved.advance(limits::UNWIND_TIMEOUT - Duration::from_secs(1));
        unwinding.begin(&clock);
        assert_eq!(unwinding.deadline(&clock).reached(), None);
        moved.advance(Duration::from_secs(1));
        let reached = unwinding.deadline(&clock).reached();
        assert_eq!(reached, Some(StopReason::Unwinding));
    }

    #[tokio::test]
    async fn a_panic_is_a_value() {
        assert_eq!(caught(async { 7 }).await, Ok(7));
        let loud = caught(async {
            tokio::task::yield_now().await;
            if std::hint::black_box(true) {
                panic!("it {}", "broke");
            }
        });
        assert_eq!(loud.await, Err("a panic: it broke".to_owned()));
    }
}
