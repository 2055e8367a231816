//! One definition against one repository, without a server.
//!
//! [`run`] takes a run from admission to its recorded end in the data
//! directory's store: reclaim what dead runs left, hold a liveness marker, admit,
//! claim the own job by its id, execute, record. Nothing it must record is lost
//! to an interrupt: the caller passes a cancellation on, it never drops the
//! future.

mod event_writer;
mod grouping;
mod heartbeat;
mod marker;
mod reclaim;
mod request;
mod run;
mod trace_tail;

pub use marker::{any_may_be_running, may_be_running};
pub use reclaim::{ReclaimReport, Reclaimed, reclaim_dead_runs};
pub use request::{DirectOutcome, DirectRequest};
pub use run::{DirectError, run};

/// Who holds the attempts of direct runs. Their life is told by their markers,
/// not by their leases.
pub(crate) const HOLDER: &str = "direct";
