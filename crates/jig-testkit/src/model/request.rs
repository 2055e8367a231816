//! What an agent asked, as the log keeps it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::step::Usage;

/// Whose interface a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vendor {
    /// `POST …/messages`
    Anthropic,
    /// `POST …/responses`
    OpenAi,
}

impl Vendor {
    /// Also the name of its queue of steps.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }
}

/// The step that answered a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepTaken {
    /// The queue's name: a vendor's, or as given to `Script::queue`.
    pub queue: String,
    /// Counts the queue's steps from 0.
    pub index: usize,
}

/// One HTTP request and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// `POST`
    pub method: String,
    /// With the query.
    pub path: String,
    /// By lower-case name; the values of credentials are `<masked>`.
    pub headers: BTreeMap<String, String>,
    /// `None` when there is none, or none that is JSON.
    pub body: Option<Value>,
    /// `None` for everything that does not ask a model.
    pub vendor: Option<Vendor>,
    /// `None` while the request is being routed, and for one that took none.
    pub step: Option<StepTaken>,
    /// The status of the answer; 0 before there is one.
    pub status: u16,
    /// The figures of the answer, once all of it was handed to the
    /// connection. `None` for errors and for answers that broke off or are
    /// under way.
    pub served: Option<Usage>,
}

/// Headers whose values are secrets.
const SECRET: [&str; 4] = [
    "authorization",
    "x-api-key",
    "cookie",
    "proxy-authorization",
];

impl Request {
    /// A request before it is routed.
    pub(super) fn received(parts: &hyper::http::request::Parts, body: Option<Value>) -> Self {
        let headers = parts.headers.iter().map(|(name, value)| {
            let value = if SECRET.contains(&name.as_str()) {
                "<masked>".to_owned()
            } else {
                String::from_utf8_lossy(value.as_bytes()).into_owned()
            };
            (name.as_str().to_owned(), value)
        });
        let path = parts.uri.path();
        let vendor = match (parts.method.as_str(), path) {
            ("POST", path) if path.ends_with("/messages") => Some(Vendor::Anthropic),
            ("POST", path) if path.ends_with("/responses") => Some(Vendor::OpenAi),
            _ => None,
        };
        Self {
            method: parts.method.as_str().to_owned(),
            path: parts.uri.to_string(),
            headers: headers.collect(),
            body,
            vendor,
            step: None,
            status: 0,
            served: None,
        }
    }

    /// Whether any text of the body (not a key) has `wanted` in it.
    #[must_use]
    pub fn contains(&self, wanted: &str) -> bool {
        let mut found = false;
        let body = self.body.as_ref().unwrap_or(&Value::Null);
        each_text(body, &mut |text| found |= text.contains(wanted));
        found
    }

    /// The model that was asked.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.field("model")?.as_str()
    }

    /// The names of the tools that the model may call; the type of one
    /// without a name.
    #[must_use]
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.field("tools").and_then(Value::as_array);
        (tools.into_iter().flatten())
            .filter_map(|tool| tool.get("name").or_else(|| tool.get("type"))?.as_str())
            .collect()
    }

    /// The system prompt: `system` of Messages, `instructions` of Responses.
    #[must_use]
    pub fn system(&self) -> String {
        let field = match self.vendor {
            Some(Vendor::OpenAi) => "instructions",
            _ => "system",
        };
        self.field(field).map(texts_of).unwrap_or_default()
    }

    /// The text of the last message of the user, without tool results.
    #[must_use]
    pub fn last_user_text(&self) -> String {
        let mut messages = self.conversation().iter().rev();
        let last = messages.find_map(|message| {
            let of_user = message.get("role").and_then(Value::as_str) == Some("user");
            let content = message.get("content").filter(|_| of_user)?;
            Some(texts_of(content)).filter(|text| !text.is_empty())
        });
        last.unwrap_or_default()
    }

    /// What the tools answered that the model called in its last turn, in
    /// order.
    #[must_use]
    pub fn tool_results(&self) -> Vec<String> {
        let kind = |item: &Value| item.get("type").and_then(Value::as_str).map(str::to_owned);
        let conversation = self.conversation();
        if self.vendor == Some(Vendor::OpenAi) {
            let is_output =
                |item: &&Value| kind(item).is_some_and(|it| it.ends_with("_call_output"));
            let mut outputs: Vec<String> = (conversation.iter().rev())
                .take_while(is_output)
                .filter_map(|item| item.get("output").map(texts_of))
                .collect();
            outputs.reverse();
            return outputs;
        }
        let last = conversation.last().and_then(|last| last.get("content"));
        (last.and_then(Value::as_array).into_iter().flatten())
            .filter(|block| kind(block).as_deref() == Some("tool_result"))
            .map(|block| block.get("content").map(texts_of).unwrap_or_default())
            .collect()
    }

    /// The messages or items that were sent.
    fn conversation(&self) -> &[Value] {
        let field = match self.vendor {
            Some(Vendor::OpenAi) => "input",
            _ => "messages",
        };
        let items = self.field(field).and_then(Value::as_array);
        items.map(Vec::as_slice).unwrap_or_default()
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.body.as_ref()?.get(name)
    }
}

/// A text, or the texts of a list of content blocks, one a line.
fn texts_of(content: &Value) -> String {
    let blocks = match content {
        Value::String(text) => return text.clone(),
        Value::Array(blocks) => blocks,
        _ => return String::new(),
    };
    let texts = blocks
        .iter()
        .filter_map(|block| block.get("text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

fn each_text(value: &Value, see: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, see)),
        Value::Object(fields) => fields.values().for_each(|item| each_text(item, see)),
        _ => {}
    }
}
