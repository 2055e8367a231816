//! The words of jig: ids, states and their transitions, definitions, envelopes,
//! events, requests, limits.
//!
//! This crate does no I/O, has no clock and no random source, and builds for
//! `wasm32-unknown-unknown`; everything above it speaks in its types. It must
//! never learn of a database, a network, a process or a repository on disk.
//!
//! What is written to disk or sent over a wire (events, the result document,
//! the JSON of diagnostics, the API) is stable within a major version: fields
//! are added, never changed. Rust items follow the crate's version.
//!
//! Start reading at [`definition`], then [`lifecycle`], [`event`] and
//! [`outcome`].

#![warn(missing_docs)]

pub mod definition;
pub mod envelope;
pub mod event;
pub mod ids;
pub mod lifecycle;
pub mod limits;
pub mod outcome;
pub mod predicate;
pub mod repo_path;
pub mod text;
pub mod time;
pub mod token;
