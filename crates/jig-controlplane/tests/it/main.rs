//! The store and the direct run from outside: real databases, real processes.

#[path = "../support/mod.rs"]
mod support;

mod direct;
mod opening;
mod reclaim;
mod services;
