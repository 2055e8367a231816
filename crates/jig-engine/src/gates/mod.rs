//! Gates: what verifies a phase's claims. A gate is a list of checks; it passes
//! when there was at least one and every one held.
//!
//! Each gate is a function from what the phase claims (its envelope) and what
//! is really there (the work tree, the entry's change) to checks. [`run_gate`]
//! finds the function by the gate's name.

mod artifacts;
mod diff;
mod run;
mod tests_pass;
mod verdict;

pub use diff::{EntryChanges, Gone};
pub use run::{GateContext, GateRun, run_gate};
