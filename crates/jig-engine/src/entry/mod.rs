//! One entry of a phase: from its first event to its one terminal record.
//!
//! Whatever happens in between, `Attempt::close` ends it: it judges the entry's
//! changes if anything of it ran (`verdict`), and leaves its records
//! (`record`).

mod close;
mod record;
mod verdict;

pub(crate) use close::{Close, Closed, OpenEntry, kind_of, own_failure};
