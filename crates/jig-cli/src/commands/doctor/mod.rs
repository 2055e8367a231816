//! `jig doctor`: what this machine offers, and what to do about what it lacks.
//!
//! Start reading at `look`; `agents` asks the agents' programs.

mod agents;
mod look;

pub(crate) use look::run;
