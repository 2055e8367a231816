//! The one clock that asks the system.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jig_protocol::time::{Clock, Monotonic, Sleep, Timestamp};

/// The system's clocks, and tokio's timer for waits.
///
/// [`Clock::sleep_until`] must be called and awaited inside a tokio runtime
/// with its timer enabled. All values share one monotonic start, so readings
/// of different instances compare.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    /// The system's clock.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |m| -m),
        };
        Timestamp::from_micros(micros)
    }

    fn monotonic(&self) -> Monotonic {
        let start = start();
        Monotonic::from_start(start.elapsed())
    }

    fn sleep_until(&self, deadline: Monotonic) -> Sleep {
        let wait = deadline.saturating_since(self.monotonic());
        Box::pin(tokio::time::sleep(wait))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_sleep_ends_no_earlier_than_its_deadline() {
        let clock = SystemClock::new();
        let deadline = clock.monotonic().saturating_add(Duration::from_millis(20));
        clock.sleep_until(deadline).await;
        assert!(clock.monotonic() >= deadline);
        // A deadline in the past is ready at once.
        clock
            .sleep_until(Monotonic::from_start(Duration::ZERO))
            .await;
    }
}
