//! The states of attempt, job, run and lease, and the one place where they
//! change: pure functions from a state and an event to the next state.
