//! The loopback model as the genuine agents see it.

#![expect(
    clippy::unwrap_used,
    reason = "what fails in a fixture of a test fails the test"
)]

mod real;
