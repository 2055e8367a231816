//! Moments and durations without a clock.
//!
//! This crate never asks what time it is: a [`Clock`] is passed in by whoever
//! may. The one that asks the system lives in `jig-process`, the one that tests
//! move lives in `jig-testkit`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment in UTC, in whole microseconds since the Unix epoch.
///
/// In JSON it is RFC 3339 with a `Z`, always with six digits of a second, so
/// that texts compare like moments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

/// A text that is not an RFC 3339 moment within the supported range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an RFC 3339 timestamp")]
pub struct InvalidTimestamp(pub String);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// A moment from microseconds since the epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// A moment from milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole milliseconds since the epoch, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// This moment moved later by `by`, stopping at the end of time.
    #[must_use]
    pub fn saturating_add(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// How long after `earlier` this moment is; zero when it is not after it.
    #[must_use]
    pub fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(moment) => write!(f, "{moment:.6}"),
            // Outside the calendar that RFC 3339 can write.
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Timestamp {
    type Error = InvalidTimestamp;

    fn try_from(text: String) -> Result<Self, InvalidTimestamp> {
        match text.parse::<jiff::Timestamp>() {
            Ok(moment) => Ok(Self(moment.as_microsecond())),
            Err(_) => Err(InvalidTimestamp(text)),
        }
    }
}

impl From<Timestamp> for String {
    fn from(moment: Timestamp) -> Self {
        moment.to_string()
    }
}

/// A reading of a monotonic clock: time since a moment only that clock knows.
///
/// Deadlines are kept in these, because wall clocks jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// A reading `since_start` after the clock's own start.
    #[must_use]
    pub const fn from_start(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// The reading as a duration since the clock's own start.
    #[must_use]
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// The reading `by` later.
    #[must_use]
    pub fn saturating_add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    #[must_use]
    pub fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// A wait that a [`Clock`] hands out.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where time comes from. Passed in, never global, so that tests can move it.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The wall-clock moment, for records that people read.
    fn now(&self) -> Timestamp;

    /// The monotonic reading, for deadlines.
    fn monotonic(&self) -> Monotonic;

    /// Ready once [`Clock::monotonic`] has reached `deadline`.
    fn sleep_until(&self, deadline: Monotonic) -> Sleep;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_form_has_six_digits_and_round_trips() {
        let moment = Timestamp::from_micros(1_764_541_315_000_001);
        let text = serde_json::to_string(&moment).unwrap();
        assert_eq!(text, "\"2025-11-30T22:21:55.000001Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), moment);
        assert_eq!(Timestamp::EPOCH.to_string(), "1970-01-01T00:00:00.000000Z");
    }

    #[test]
    fn differences_never_wrap() {
        let (early, late) = (Timestamp::from_millis(1), Timestamp::from_millis(3));
        assert_eq!(late.saturating_since(early), Duration::from_millis(2));
        assert_eq!(early.saturating_since(late), Duration::ZERO);
    }
}
