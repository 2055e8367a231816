//! The states of attempt, job, run and lease, and the one place where they
//! change: pure functions from a state and an event to the next state.
//!
//! Each machine is a module with a state, a closed set of events, the effects a
//! step asks for, and `step(state, event, now)`. Whoever keeps the state loads
//! it, steps, saves it guarded by the old state, applies the effects in the same
//! transaction, and commits. Nothing else may write a state.
//!
//! `docs/lifecycle.txt` shows every state against every event; a test derives it
//! from the functions, so a change of behaviour is a visible change of that file.

pub mod attempt;
pub mod job;
pub mod lease;
pub mod run;
mod step;

pub use attempt::{AttemptState, Outcome};
pub use job::JobState;
pub use lease::LeaseState;
pub use run::RunState;
pub use step::{IllegalTransition, Refusal, Step, UnknownWord};

#[cfg(test)]
mod table;
#[cfg(test)]
mod tests;
