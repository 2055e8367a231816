//! The store against faults: a death at every statement, values that cannot be
//! read, a disk that is full, a writer that never gets its turn.

pub(crate) mod faults;
mod faulty;
mod kill;
mod queries;
#[expect(dead_code, reason = "the tests outside use all of it")]
#[path = "../../../tests/support/mod.rs"]
mod support;
