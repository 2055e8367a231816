//! The truth of jig: definitions, runs, jobs, attempts, leases, events, and the
//! ledger of kept work trees, in one SQLite database per data directory.
//!
//! This crate never starts a process, never touches a repository and has never
//! heard of an agent: what executes an attempt is an [`AttemptExecutor`] that
//! somebody hands in. It never asks the system for the time or for random bytes.
//!
//! Start reading at [`direct`], which takes one run from admission to its end;
//! then [`service`], one operation per file, each a transaction in which only
//! `jig_protocol::lifecycle` decides; then [`store`], the only place with SQL.

#![warn(missing_docs)]

#[cfg(not(unix))]
compile_error!("jig runs on Linux and macOS");

// The tests inside share their support with those outside.
#[cfg(test)]
extern crate self as jig_controlplane;

pub mod direct;
pub mod executor;
pub mod random;
pub mod resolver;
pub mod service;
pub mod store;

pub use executor::AttemptExecutor;
pub use random::RandomSource;
pub use resolver::RefResolver;
pub use store::Store;
