//! The lines between the adapter and the scripted agent's process.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::script::{Step, StepUsage};
use jig_protocol::outcome::FailureClass;

/// The first line on the agent's stdin.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The user prompt.
    pub(crate) prompt: String,
    /// The role's HOME, of any bytes.
    pub(crate) home: OsString,
    /// The session's id; answered with.
    pub(crate) session: String,
    /// What to do.
    pub(crate) step: Step,
}

/// A later line on the agent's stdin: the answer to [`Said::Wait`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Met {
    /// Whether the barrier was reached in time.
    pub(crate) met: bool,
}

/// A line on the agent's stdout.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Said {
    /// The session that answers.
    Session { id: String },
    /// A tool call, already over.
    Tool { name: String, input: Value },
    /// A whole message.
    Text { text: String },
    /// A part of a message.
    Delta { text: String },
    /// Something for the record.
    Log {
        log: String,
        text: String,
        detail: Option<Value>,
    },
    /// A barrier is reached.
    Reach { barrier: String },
    /// A barrier is waited for; goes on with [`Met`].
    Wait { barrier: String },
    /// The script does not fit what happened. Final.
    Fault { message: String },
    /// The final result.
    Result {
        text: String,
        usage: Option<StepUsage>,
        /// Set when the result reports an error.
        error: Option<FailureClass>,
        retry_after_ms: Option<u64>,
    },
}
