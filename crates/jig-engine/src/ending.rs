//! Why an attempt ends before its chain does.

use std::error::Error;

use jig_process::StopReason;
use jig_protocol::event::AgentOutcome;
use jig_protocol::outcome::{AttemptEnd, Cause};
use jig_protocol::text;

use crate::fault::Fault;

/// The end of an attempt, on its way up to whoever records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    /// How.
    pub(crate) end: AttemptEnd,
    /// Why, for machines.
    pub(crate) cause: Cause,
    /// Why, for people.
    pub(crate) error: String,
}

impl Ending {
    /// A phase failed.
    pub(crate) fn failed(cause: Cause, error: impl Into<String>) -> Self {
        Self {
            end: AttemptEnd::Failed,
            cause,
            error: error.into(),
        }
    }

    /// Something broke that is neither the agent's nor the work's fault.
    pub(crate) fn infrastructure(error: impl Into<String>) -> Self {
        Self {
            end: AttemptEnd::Infrastructure,
            cause: Cause::Infrastructure,
            error: error.into(),
        }
    }

    /// The same, with an error and everything behind it.
    pub(crate) fn broken(error: &(dyn Error + 'static)) -> Self {
        Self::infrastructure(text::with_causes(error))
    }

    /// What was asked for cannot be done as configured.
    pub(crate) fn configuration(error: impl Into<String>) -> Self {
        Self {
            end: AttemptEnd::Infrastructure,
            cause: Cause::Configuration,
            error: error.into(),
        }
    }

    /// Something was written that may not be written.
    pub(crate) fn breach(error: impl Into<String>) -> Self {
        Self {
            end: AttemptEnd::Breach,
            cause: Cause::Breach,
            error: error.into(),
        }
    }

    /// A clock or a person ended a wait. `during` says what was going on.
    pub(crate) fn stopped(reason: StopReason, during: &str) -> Self {
        let (end, cause) = match reason {
            StopReason::Cancelled => (AttemptEnd::Cancelled, Cause::Cancelled),
            StopReason::Ceiling => (AttemptEnd::Ceiling, Cause::Ceiling),
            StopReason::PhaseTimeout
            | StopReason::GroupStop
            | StopReason::Silence
            | StopReason::Unwinding => (AttemptEnd::Infrastructure, Cause::Infrastructure),
        };
        let what = match reason {
            StopReason::Cancelled => "the attempt was cancelled".to_owned(),
            StopReason::Ceiling => "the attempt's time ceiling was exceeded".to_owned(),
            other => format!("a wait was ended: {other}"),
        };
        Self {
            end,
            cause,
            error: format!("{what} {during}"),
        }
    }

    /// The word of the trace for an agent's entry that ended with it.
    pub(crate) fn agent_outcome(&self) -> AgentOutcome {
        match self.end {
            AttemptEnd::Breach => AgentOutcome::Aborted,
            AttemptEnd::Cancelled => AgentOutcome::Cancelled,
            AttemptEnd::Ceiling => AgentOutcome::Ceiling,
            AttemptEnd::SendBudget => AgentOutcome::SendBudget,
            AttemptEnd::SpendCeiling => AgentOutcome::SpendCeiling,
            AttemptEnd::Completed | AttemptEnd::Failed | AttemptEnd::Infrastructure => {
                AgentOutcome::Failed
            }
        }
    }

    /// This end, which outranks what went on before it; both are told.
    pub(crate) fn after(mut self, before: Option<&str>) -> Self {
        if let Some(before) = before {
            self.error = format!("{}; before that: {before}", self.error);
        }
        self
    }
}

impl From<Fault> for Ending {
    fn from(fault: Fault) -> Self {
        Self::infrastructure(fault.to_string())
    }
}
