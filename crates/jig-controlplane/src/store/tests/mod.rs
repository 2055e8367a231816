//! The store against real databases, real processes and real faults.

pub(crate) mod faults;
