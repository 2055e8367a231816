//! The envelope: the JSON object an agent or a command answers with.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::predicate::Fields;

/// What an envelope says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvelopeStatus {
    /// `success`
    Success,
    /// `fail`
    Fail,
}

/// A validated envelope.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// The object exactly as it was written.
    pub raw: Box<RawValue>,
    /// Every field, the base ones included.
    pub fields: Fields,
    /// What it says of itself.
    pub status: EnvelopeStatus,
    /// What was done, in a sentence.
    pub summary: String,
    /// Claimed artifacts; `None` when the field is absent.
    pub artifacts: Option<Vec<String>>,
    /// For the next agent.
    pub notes_for_next_agent: String,
}

/// Why a text holds no envelope. The message is made to be read by the agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EnvelopeError(pub String);

impl Envelope {
    /// The four fields every envelope may have.
    pub const BASE_FIELDS: [&'static str; 4] =
        ["status", "summary", "artifacts", "notes_for_next_agent"];

    /// A field's value.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }
}
