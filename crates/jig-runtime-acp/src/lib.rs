//! Speaks the Agent Client Protocol with any agent over stdio, in runtime
//! terms: newline-delimited JSON-RPC 2.0, one process per send.
//!
//! This crate must never know a particular agent, another adapter, a chain or a
//! database, and it reads no file but the operator's seed files.
//!
//! Start reading at [`agents`] (which agents there are).

#![warn(missing_docs)]

pub mod agents;
