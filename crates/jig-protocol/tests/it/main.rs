//! Tests of the vocabulary through its public interface.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod bounds;
mod definition_files;
mod envelopes;
mod fuzzed;
mod generated;
mod hostile;
mod predicates;
mod schema;
#[cfg(unix)]
mod stock;
