//! What every agent adapter shares: the [`AgentRuntime`] trait, the `Dialect`
//! trait, one supervision loop, line framing, usage ledger.
//!
//! This crate must never know a vendor, a chain or a database. An adapter is a
//! [`Dialect`] (arguments in, stream lines translated); everything about
//! processes and clocks happens here, once.
//!
//! Start reading at [`runtime`] (what the engine sees), then [`dialect`] (what
//! an adapter adds) and [`mod@supervise`] (what happens in between).

#![warn(missing_docs)]

pub mod dialect;
pub mod failure;
pub mod json;
pub mod line_stream;
pub mod login;
pub mod probe;
pub mod runtime;
pub mod session;
pub mod structured;
pub mod supervise;
pub mod usage;
pub mod version;

/// The words of processes that an adapter and its caller speak in.
pub use jig_process::{
    Confinement, Deadline, Environment, Host, LiveSupervisors, ProcessIdentity, Program,
    StopReason, StopSignal, SystemClock,
};

pub use dialect::{Dialect, Invocation};
pub use runtime::*;
pub use session::Session;
pub use supervise::supervise;
pub use usage::{Late, Ledger, MOST_USD, Usage};
pub use version::Version;
