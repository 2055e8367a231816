//! Speaks the Agent Client Protocol with any agent over stdio, in runtime
//! terms: newline-delimited JSON-RPC 2.0, one process per send.
//!
//! This crate must never know a particular agent's command line, another
//! adapter, a chain or a database, and it reads no file but the operator's seed
//! files.
//!
//! The messages are read and written as plain JSON. The protocol's own crate
//! brings an executor's worth of dependencies for a client that serves an
//! editor, and its types refuse what they do not know; the few messages of a
//! send fit on a page, and agents are newer than any schema.
//!
//! Start reading at [`dialect`] (the exchange of one send); then `step`,
//! `settings`, `permission`, `tools`, `answer`, `usage` and `classify` (its
//! parts), `message` (the wire), [`runtime`] (the adapter) and [`agents`] (the
//! operator's file).

#![warn(missing_docs)]

pub mod agents;
mod answer;
mod classify;
pub mod dialect;
pub mod greeting;
mod message;
mod permission;
pub mod runtime;
mod seed;
mod settings;
mod step;
mod tools;
mod usage;

pub use agents::{Agent, Agents, AgentsError};
pub use dialect::{AcpDialect, Plan};
pub use greeting::Greeting;
pub use runtime::{AcpConfig, AcpRuntime};
