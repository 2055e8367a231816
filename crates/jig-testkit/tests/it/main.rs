//! The loopback model as a plain HTTP client and as the genuine agents see it.

#![expect(
    clippy::unwrap_used,
    reason = "what fails in a fixture of a test fails the test"
)]

mod http;
mod model;
mod real;
mod wire;
