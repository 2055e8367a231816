//! The envelope: the JSON object an agent or a command answers with.
//!
//! Found in free text by looking for balanced top-level objects; the last one
//! that validates is the answer. Objects *inside* another one are never looked
//! at, however broken the outer one is: a quotation must not become the answer.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::limits::{ENVELOPE_BYTES, ENVELOPE_DEPTH};
use crate::predicate::Fields;

/// What an envelope says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvelopeStatus {
    /// `success`
    Success,
    /// `fail`
    Fail,
}

impl EnvelopeStatus {
    /// The word in the envelope.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Fail => "fail",
        }
    }
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

/// Unfinished braces of prose that are stepped over before giving up; bounds the
/// work to this many passes over the text.
const MOST_PASSES: usize = 16;

impl Envelope {
    /// The four fields every envelope may have.
    pub const BASE_FIELDS: [&'static str; 4] =
        ["status", "summary", "artifacts", "notes_for_next_agent"];

    /// A field's value.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    /// Finds the envelope in an agent's answer: the last balanced top-level JSON
    /// object that validates, whatever prose or fences stand around it.
    ///
    /// # Errors
    ///
    /// What is wrong with the last object of the text, or that there is none.
    /// An object that is cut off at the end is the last one: success is earned
    /// with a whole answer, not with an example given before it.
    pub fn extract(text: &str) -> Result<Self, EnvelopeError> {
        if text.len() > ENVELOPE_BYTES {
            return Err(EnvelopeError(format!(
                "the answer has {} bytes; at most {ENVELOPE_BYTES} are read",
                text.len()
            )));
        }
        let mut best = None;
        let mut last = Err(EnvelopeError("no JSON object was found".to_owned()));
        let mut from = 0;
        let mut unfinished = 0;
        while let Some(start) = find_open(text, from) {
            match object_end(text, start) {
                Some(end) => {
                    let span = text.get(start..end).unwrap_or_default();
                    match Self::from_json(span) {
                        Ok(envelope) => best = Some(envelope),
                        Err(error) => last = Err(error),
                    }
                    from = end;
                }
                None => {
                    unfinished += 1;
                    last = Err(EnvelopeError(
                        "the last JSON object is not closed; the answer may have been cut off"
                            .to_owned(),
                    ));
                    // What follows an unfinished object belongs to it.
                    if looks_like_object(text, start) || unfinished > MOST_PASSES {
                        // It was to be the answer: what came before it was not.
                        best = None;
                        break;
                    }
                    from = start + 1;
                }
            }
        }
        best.map_or(last, Ok)
    }

    /// Validates one JSON object as an envelope.
    ///
    /// # Errors
    ///
    /// What is wrong with it, naming the field.
    pub fn from_json(text: &str) -> Result<Self, EnvelopeError> {
        if depth(text) > ENVELOPE_DEPTH as usize {
            return Err(EnvelopeError(format!(
                "the JSON object is nested more than {ENVELOPE_DEPTH} deep"
            )));
        }
        let invalid = |error: serde_json::Error| EnvelopeError(format!("invalid JSON: {error}"));
        let fields: Fields = serde_json::from_str(text).map_err(invalid)?;
        let Named(twice) = serde_json::from_str(text).map_err(invalid)?;
        if let Some(name) = twice {
            return Err(EnvelopeError(format!(
                "the field {:?} is there twice; give each field once",
                crate::text::head(&name, 100)
            )));
        }
        let raw: Box<RawValue> = serde_json::from_str(text).map_err(invalid)?;
        Ok(Self {
            status: status(&fields)?,
            summary: optional_text(&fields, "summary")?,
            artifacts: artifacts(&fields)?,
            notes_for_next_agent: optional_text(&fields, "notes_for_next_agent")?,
            raw,
            fields,
        })
    }

    /// The envelope of a code phase, made of what its adapter and its report say.
    ///
    /// `status` and `summary` replace fields of that name; a base field of the
    /// wrong type stays in `fields` and is left out of the typed view.
    #[must_use]
    pub fn from_fields(status: EnvelopeStatus, summary: &str, mut fields: Fields) -> Self {
        fields.insert("status".to_owned(), status.as_str().into());
        fields.insert("summary".to_owned(), summary.into());
        #[expect(
            clippy::expect_used,
            reason = "a map of JSON values with text keys is always representable"
        )]
        let raw = serde_json::value::to_raw_value(&fields).expect("JSON values serialize");
        Self {
            raw,
            status,
            summary: summary.to_owned(),
            artifacts: artifacts(&fields).unwrap_or_default(),
            notes_for_next_agent: optional_text(&fields, "notes_for_next_agent")
                .unwrap_or_default(),
            fields,
        }
    }
}

/// The first name that an object has twice, if any. Which of the two values was
/// meant is not for a reader to choose.
struct Named(Option<String>);

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = Named;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named, A::Error> {
                let mut seen = HashSet::new();
                let mut twice = None;
                while let Some(name) = map.next_key::<String>()? {
                    map.next_value::<IgnoredAny>()?;
                    if let Some(again) = seen.replace(name) {
                        twice.get_or_insert(again);
                    }
                }
                Ok(Named(twice))
            }
        }

        deserializer.deserialize_map(Names)
    }
}

fn find_open(text: &str, from: usize) -> Option<usize> {
    text.get(from..)?.find('{').map(|at| from + at)
}

/// The end of the object that opens at `start`; `None` when it stays open.
fn object_end(text: &str, start: usize) -> Option<usize> {
    let mut open = 0_usize;
    for (at, event) in structure(text.as_bytes(), start) {
        match event {
            b'{' => open += 1,
            b'}' => {
                open -= 1;
                if open == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Brackets and braces outside of strings, from `start` on.
fn structure(bytes: &[u8], start: usize) -> impl Iterator<Item = (usize, u8)> {
    let mut quoted = false;
    let mut escaped = false;
    bytes
        .iter()
        .copied()
        .enumerate()
        .skip(start)
        .filter(move |(_, byte)| {
            if escaped {
                escaped = false;
                return false;
            }
            match byte {
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'{' | b'}' | b'[' | b']' => return !quoted,
                _ => {}
            }
            false
        })
}

/// The deepest nesting of lists and objects.
fn depth(text: &str) -> usize {
    let mut open = 0_usize;
    let mut most = 0;
    for (_, byte) in structure(text.as_bytes(), 0) {
        if matches!(byte, b'{' | b'[') {
            open += 1;
            most = most.max(open);
        } else {
            open = open.saturating_sub(1);
        }
    }
    most
}

/// Whether a brace opens an object (of JSON, or of something meant to be it)
/// rather than standing in prose.
fn looks_like_object(text: &str, start: usize) -> bool {
    let inner = text.get(start + 1..).unwrap_or_default().trim_start();
    if inner.is_empty() || inner.starts_with(['"', '\'', '}']) {
        return true;
    }
    let word = inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    word.len() < inner.len() && word.trim_start().starts_with(':')
}

/// The JSON type of a value, as an agent would name it.
#[must_use]
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn status(fields: &Fields) -> Result<EnvelopeStatus, EnvelopeError> {
    match fields.get("status") {
        None => Err(EnvelopeError(
            "the field `status` is missing; it must be \"success\" or \"fail\"".to_owned(),
        )),
        Some(Value::String(word)) if word == "success" => Ok(EnvelopeStatus::Success),
        Some(Value::String(word)) if word == "fail" => Ok(EnvelopeStatus::Fail),
        Some(Value::String(word)) => Err(EnvelopeError(format!(
            "the field `status` must be \"success\" or \"fail\", not {:?}",
            crate::text::head(word, 100)
        ))),
        Some(other) => Err(EnvelopeError(format!(
            "the field `status` must be a string, not {}",
            type_name(other)
        ))),
    }
}

fn optional_text(fields: &Fields, name: &str) -> Result<String, EnvelopeError> {
    match fields.get(name) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(EnvelopeError(format!(
            "the field `{name}` must be a string, not {}",
            type_name(other)
        ))),
    }
}

fn artifacts(fields: &Fields) -> Result<Option<Vec<String>>, EnvelopeError> {
    let items = match fields.get("artifacts") {
        None => return Ok(None),
        Some(Value::Array(items)) => items,
        Some(other) => {
            return Err(EnvelopeError(format!(
                "the field `artifacts` must be a list of strings, not {}",
                type_name(other)
            )));
        }
    };
    let mut artifacts = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let Value::String(path) = item else {
            return Err(EnvelopeError(format!(
                "the field `artifacts` must be a list of strings; entry {} is {}",
                index + 1,
                type_name(item)
            )));
        };
        artifacts.push(path.clone());
    }
    Ok(Some(artifacts))
}
