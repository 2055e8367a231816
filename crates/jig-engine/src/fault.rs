//! Places where a test makes the engine fail.
//!
//! The engine passes a named step before each act that is visible outside of
//! it. A product hands in [`NoFaults`]; a test hands in a counter and makes the
//! `k`-th step fail, for every `k`, which proves that every one of them leaves
//! the attempt ended, its tree consistent and nothing running.

use std::fmt;

/// An act that is visible outside of the engine and is about to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// A runtime is asked who it is.
    Probe,
    /// The tree is captured for the first time.
    Open,
    /// The tree is captured before an entry.
    Capture,
    /// The operator's login is read for a role.
    Seed,
    /// A send is started.
    Send,
    /// A send has returned.
    Sent,
    /// A gate is run.
    Gate,
    /// The command of a code phase is started.
    Command,
    /// The command of a code phase has ended.
    CommandEnded,
    /// The end of an entry is judged.
    Enforce,
    /// A dead entry is undone.
    Restore,
    /// A phase that passed is kept as a commit.
    Checkpoint,
    /// What was committed is compared with what was judged.
    FinalCheck,
    /// What was accepted is delivered.
    Deliver,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A failure that a test asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a fault was injected before {0}")]
pub struct Fault(pub Step);

/// Decides whether a step fails. May also panic, to test that.
pub trait FaultPoint: Send + Sync {
    /// Called before the step.
    ///
    /// # Errors
    ///
    /// To make the step fail.
    fn reach(&self, step: Step) -> Result<(), Fault>;
}

/// No step fails.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFaults;

impl FaultPoint for NoFaults {
    fn reach(&self, _: Step) -> Result<(), Fault> {
        Ok(())
    }
}
