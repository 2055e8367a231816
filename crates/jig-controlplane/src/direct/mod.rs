//! One definition against one repository, without a server.
//!
//! [`run`] takes a run from admission to its recorded end in the data
//! directory's store: reclaim what dead runs left, hold a liveness marker, admit,
//! claim the own job by its id, execute, record. Nothing it must record is lost
//! to an interrupt: the caller passes a cancellation on, it never drops the
//! future.

mod request;

pub use request::{DirectOutcome, DirectRequest, Reclaimed};
