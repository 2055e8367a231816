//! The store and the direct run from outside: real databases, real processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../support/mod.rs"]
mod support;

mod direct;
mod opening;
mod reclaim;
mod services;
