//! The one loop that sees a send through, whatever the agent.
//!
//! It owns the process's end, both streams, stdin, every clock and the delivery
//! of events, and none of them is let go before the result exists:
//!
//! - the process ends → everything it left behind is stopped (by the supervisor
//!   process of `jig-process`) → the streams are drained for a bounded time →
//!   the dialect judges;
//! - a final result comes but the process stays → it has a grace, then it is
//!   stopped, and the result counts;
//! - what the dialect waits for does not come in time → everything is stopped,
//!   and the dialect, which knows what it waited for, judges;
//! - a clock or a signal fires → if the final result is there already, it
//!   counts; else everything is stopped, and what the streams still held is
//!   delivered. An answer that the agent completed while it was being stopped
//!   counts too.
//!
//! Silence means not a byte on stdout or stderr. It is no sign of a hang while a
//! tool call is open or while the consumer of the events is behind.
//!
//! `hearing` turns bytes into events and holds no clock and no process;
//! `attend` is the loop; `pipes` are the streams it waits on; `files` are the
//! private files of a send.

mod attend;
mod files;
mod hearing;
mod pipes;

pub use attend::supervise;
