//! How often races are run.

/// Whether the long, nightly form of the tests was asked for (`JIG_LONG`).
#[must_use]
pub fn long() -> bool {
    std::env::var_os("JIG_LONG").is_some_and(|value| !value.is_empty() && value != "0")
}

/// How often a test of a race repeats: 3 times, or 20 in the long form.
#[must_use]
pub fn repeat() -> usize {
    if long() { 20 } else { 3 }
}
