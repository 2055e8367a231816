//! What the model does when it is asked once.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::sync::Arc;

use serde_json::Value;

use super::gate::Gate;
use super::request::Request;

/// Tokens of one answer, in the fields of the vendor that serves it and with
/// that vendor's meaning. Anthropic's `input` does not hold what came from or
/// went into the cache; `OpenAI`'s does, and its `output` holds `reasoning`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// `input_tokens` of both.
    pub input: u64,
    /// `output_tokens` of both.
    pub output: u64,
    /// `cache_read_input_tokens`; `input_tokens_details.cached_tokens`.
    pub cached: u64,
    /// `cache_creation_input_tokens`, all of it for five minutes; Responses
    /// has no such field.
    pub cache_creation: u64,
    /// `output_tokens_details.reasoning_tokens`; Messages has no such field.
    pub reasoning: u64,
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            cached: self.cached + other.cached,
            cache_creation: self.cache_creation + other.cache_creation,
            reasoning: self.reasoning + other.reasoning,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Self::add)
    }
}

/// Why an answer ends that ends otherwise than by being whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The answer reached the limit of tokens: `max_tokens`;
    /// `response.incomplete` with `max_output_tokens`.
    MaxTokens,
    /// The model declined: `refusal`; `response.incomplete` with
    /// `content_filter`.
    Refusal,
    /// The conversation is larger than the model's window:
    /// `model_context_window_exceeded`; `response.failed` with
    /// `context_length_exceeded`.
    ContextWindow,
}

/// One part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    /// Sent in these pieces.
    Text(Vec<String>),
    Thinking(String),
    Tool {
        name: String,
        input: Value,
    },
    /// A call whose input is free text.
    CustomTool {
        name: String,
        input: String,
    },
}

/// An error in place of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HttpError {
    pub(super) status: u16,
    pub(super) message: Option<String>,
    /// `error.type`
    pub(super) kind: Option<String>,
    /// `error.code`
    pub(super) code: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    /// In place of the vendor's own error body.
    pub(super) body: Option<String>,
}

pub(super) type Computed = Arc<dyn Fn(&Request) -> Step + Send + Sync>;

#[derive(Clone)]
pub(super) enum Kind {
    Answer(Vec<Block>),
    Error(HttpError),
    /// The stream begins and then says that it failed.
    Failed {
        code: String,
        message: String,
    },
    FromRequest(Computed),
}

/// What may come between the headers and the rest of an answer.
#[derive(Debug, Clone)]
pub(super) enum Hold {
    Forever,
    Until(Gate),
}

/// One scripted answer of the model.
#[derive(Clone)]
pub struct Step {
    pub(super) kind: Kind,
    pub(super) usage: Usage,
    pub(super) stop: Option<Stop>,
    pub(super) after: Option<Gate>,
    pub(super) hold: Option<Hold>,
    /// The connection breaks after this many events.
    pub(super) cut: Option<Cut>,
    pub(super) repeated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Middle,
    After(usize),
}

impl Step {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            usage: Usage {
                input: 1000,
                output: 50,
                ..Usage::default()
            },
            stop: None,
            after: None,
            hold: None,
            cut: None,
            repeated: false,
        }
    }

    /// The model says this. Without a tool call its turn is over.
    ///
    /// Unless [`Step::usage`] says otherwise, every answer costs 1000 tokens
    /// of input and 50 of output.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Kind::Answer(Vec::new())).and_text(text)
    }

    /// The model says this, in these pieces.
    #[must_use]
    pub fn deltas<T: Into<String>>(deltas: impl IntoIterator<Item = T>) -> Self {
        Self::new(Kind::Answer(Vec::new())).and_deltas(deltas)
    }

    /// The model thinks this; add what it says or does.
    #[must_use]
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::new(Kind::Answer(Vec::new())).and_thinking(text)
    }

    /// The model calls a tool with a JSON object.
    #[must_use]
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::new(Kind::Answer(Vec::new())).and_tool(name, input)
    }

    /// The model calls a tool that takes free text, such as Codex's
    /// `apply_patch`. Responses only.
    #[must_use]
    pub fn custom_tool(name: impl Into<String>, input: impl Into<String>) -> Self {
        Self::new(Kind::Answer(Vec::new())).and_custom_tool(name, input)
    }

    /// An answer without any content.
    #[must_use]
    pub fn empty() -> Self {
        Self::new(Kind::Answer(Vec::new()))
    }

    /// An HTTP error with the vendor's own body. Type, code and message are
    /// those the vendor sends with that status, unless set.
    #[must_use]
    pub fn error(status: u16) -> Self {
        Self::new(Kind::Error(HttpError {
            status,
            message: None,
            kind: None,
            code: None,
            headers: Vec::new(),
            body: None,
        }))
    }

    /// A stream that begins with status 200 and then says that it failed:
    /// Responses' `response.failed` with this code, Messages' `error` with
    /// this type.
    #[must_use]
    pub fn failed(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Kind::Failed {
            code: code.into(),
            message: message.into(),
        })
    }

    /// Headers and the first event, then nothing until the server is dropped.
    #[must_use]
    pub fn hang() -> Self {
        let mut step = Self::empty();
        step.hold = Some(Hold::Forever);
        step
    }

    /// A step that is made from the request that takes it. Only the figures
    /// of the step that the closure returns count.
    #[must_use]
    pub fn from_request(make: impl Fn(&Request) -> Self + Send + Sync + 'static) -> Self {
        Self::new(Kind::FromRequest(Arc::new(make)))
    }

    /// Then says this.
    #[must_use]
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.and(Block::Text(vec![text.into()]))
    }

    /// Then says this, in these pieces.
    #[must_use]
    pub fn and_deltas<T: Into<String>>(self, deltas: impl IntoIterator<Item = T>) -> Self {
        self.and(Block::Text(deltas.into_iter().map(Into::into).collect()))
    }

    /// Then thinks this.
    #[must_use]
    pub fn and_thinking(self, text: impl Into<String>) -> Self {
        self.and(Block::Thinking(text.into()))
    }

    /// Then calls this tool, in the same turn.
    #[must_use]
    pub fn and_tool(self, name: impl Into<String>, input: Value) -> Self {
        let name = name.into();
        self.and(Block::Tool { name, input })
    }

    /// Then calls this tool with free text, in the same turn.
    #[must_use]
    pub fn and_custom_tool(self, name: impl Into<String>, input: impl Into<String>) -> Self {
        let (name, input) = (name.into(), input.into());
        self.and(Block::CustomTool { name, input })
    }

    #[track_caller]
    fn and(mut self, block: Block) -> Self {
        match &mut self.kind {
            Kind::Answer(blocks) => blocks.push(block),
            other => panic!("{other:?} has no content"),
        }
        self
    }

    /// What it costs.
    #[must_use]
    pub const fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Why the answer ends, when it is not simply over.
    #[must_use]
    pub const fn stop(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Nothing is answered, not even headers, before `gate` is open.
    #[must_use]
    pub fn after(mut self, gate: &Gate) -> Self {
        self.after = Some(gate.clone());
        self
    }

    /// Headers and the first event come at once, the rest when `gate` is open.
    #[must_use]
    pub fn held(mut self, gate: &Gate) -> Self {
        self.hold = Some(Hold::Until(gate.clone()));
        self
    }

    /// The connection breaks in the middle of the stream.
    #[must_use]
    pub const fn cut(mut self) -> Self {
        self.cut = Some(Cut::Middle);
        self
    }

    /// The connection breaks after this many events of the stream.
    #[must_use]
    pub const fn cut_after(mut self, events: usize) -> Self {
        self.cut = Some(Cut::After(events));
        self
    }

    /// The step stays: every later request of its queue takes it as well.
    #[must_use]
    pub const fn repeated(mut self) -> Self {
        self.repeated = true;
        self
    }

    /// The error's message.
    #[must_use]
    pub fn message(self, message: impl Into<String>) -> Self {
        self.with_error(|error| error.message = Some(message.into()))
    }

    /// The error's `type`.
    #[must_use]
    pub fn kind(self, kind: impl Into<String>) -> Self {
        self.with_error(|error| error.kind = Some(kind.into()))
    }

    /// The error's `code`; Messages has none.
    #[must_use]
    pub fn code(self, code: impl Into<String>) -> Self {
        self.with_error(|error| error.code = Some(code.into()))
    }

    /// A header of the error, such as `retry-after`.
    #[must_use]
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with_error(|error| error.headers.push((name.into(), value.into())))
    }

    /// These bytes in place of the vendor's error body: what a proxy in
    /// between would answer.
    #[must_use]
    pub fn raw_body(self, body: impl Into<String>) -> Self {
        self.with_error(|error| error.body = Some(body.into()))
    }

    #[track_caller]
    fn with_error(mut self, change: impl FnOnce(&mut HttpError)) -> Self {
        match &mut self.kind {
            Kind::Error(error) => change(error),
            other => panic!("{other:?} is not an HTTP error"),
        }
        self
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(blocks) => f.debug_tuple("Answer").field(blocks).finish(),
            Self::Error(error) => f.debug_tuple("Error").field(error).finish(),
            Self::Failed { code, message } => write!(f, "Failed({code}, {message})"),
            Self::FromRequest(_) => f.write_str("FromRequest(..)"),
        }
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
