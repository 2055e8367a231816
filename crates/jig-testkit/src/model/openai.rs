//! Answers in the form of `OpenAI`'s Responses.

use serde_json::{Value, json};

use super::body::Piece;
use super::state::serial;
use super::step::{Block, HttpError, Step, Stop, Usage};

/// Type and code that go with a status.
const fn kind_of(status: u16) -> (&'static str, Option<&'static str>) {
    match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("tokens", Some("rate_limit_exceeded")),
        400..=499 => ("invalid_request_error", None),
        503 => ("server_error", Some("server_is_overloaded")),
        _ => ("server_error", None),
    }
}

pub(super) fn error(error: &HttpError) -> Value {
    let (kind, code) = kind_of(error.status);
    let message = error.message.as_deref().unwrap_or(match error.status {
        401 => "Incorrect API key provided: sk-*****.",
        404 => "The model does not exist or you do not have access to it.",
        429 => "Rate limit reached. Please try again later.",
        500 => "The server had an error while processing your request.",
        503 => "The server is overloaded or not ready yet.",
        _ => "the request cannot be served",
    });
    json!({"error": {
        "message": message,
        "type": error.kind.as_deref().unwrap_or(kind),
        "param": null,
        "code": error.code.as_deref().or(code),
    }})
}

pub(super) fn failed(model: &Value, code: &str, message: &str) -> Vec<Piece> {
    let mut events = Events::default();
    let response = begin(&mut events, model);
    fail(&mut events, response, code, message);
    events.pieces
}

pub(super) fn plain(model: &Value, step: &Step, blocks: &[Block]) -> Value {
    let items = blocks.iter().map(item).collect();
    ended(response(model), step, items).1
}

pub(super) fn stream(model: &Value, step: &Step, blocks: &[Block]) -> Vec<Piece> {
    let mut events = Events::default();
    let response = begin(&mut events, model);
    let mut items = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let item = item(block);
        events.item(index, block, &item);
        items.push(item);
    }
    if step.stop == Some(Stop::ContextWindow) {
        let message = "Your input exceeds the context window of this model.";
        fail(&mut events, response, "context_length_exceeded", message);
    } else {
        let (event, response) = ended(response, step, items);
        events.push(event, json!({"response": response}));
    }
    events.pieces
}

/// The events of one stream, numbered.
#[derive(Default)]
struct Events {
    pieces: Vec<Piece>,
}

impl Events {
    fn push(&mut self, kind: &str, mut fields: Value) {
        fields["type"] = kind.into();
        fields["sequence_number"] = self.pieces.len().into();
        self.pieces.push(Piece::event(&fields));
    }

    /// All events of one item of the output.
    fn item(&mut self, index: usize, block: &Block, item: &Value) {
        let mut begun = item.clone();
        match block {
            Block::Text(_) => begun["content"] = json!([]),
            Block::Thinking(_) => begun["summary"] = json!([]),
            Block::Tool { .. } => begun["arguments"] = "".into(),
            Block::CustomTool { .. } => begun["input"] = "".into(),
        }
        if begun.get("status").is_some() {
            begun["status"] = "in_progress".into();
        }
        let added = json!({"output_index": index, "item": begun});
        self.push("response.output_item.added", added);
        self.content(index, block, item);
        let done = json!({"output_index": index, "item": item});
        self.push("response.output_item.done", done);
    }

    fn content(&mut self, index: usize, block: &Block, item: &Value) {
        let at = |more: Value| {
            let mut fields = json!({"item_id": item["id"], "output_index": index});
            if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
                fields.extend(more);
            }
            fields
        };
        match block {
            Block::Text(deltas) => {
                let begun = json!({"type": "output_text", "text": "", "annotations": []});
                let part = at(json!({"content_index": 0, "part": begun}));
                self.push("response.content_part.added", part);
                for delta in deltas {
                    let delta = at(json!({"content_index": 0, "delta": delta}));
                    self.push("response.output_text.delta", delta);
                }
                let text = at(json!({"content_index": 0, "text": deltas.concat()}));
                self.push("response.output_text.done", text);
                let part = at(json!({"content_index": 0, "part": item["content"][0]}));
                self.push("response.content_part.done", part);
            }
            Block::Thinking(text) => {
                let begun = json!({"type": "summary_text", "text": ""});
                let part = at(json!({"summary_index": 0, "part": begun}));
                self.push("response.reasoning_summary_part.added", part);
                let delta = at(json!({"summary_index": 0, "delta": text}));
                self.push("response.reasoning_summary_text.delta", delta);
                let done = at(json!({"summary_index": 0, "text": text}));
                self.push("response.reasoning_summary_text.done", done);
                let part = at(json!({"summary_index": 0, "part": item["summary"][0]}));
                self.push("response.reasoning_summary_part.done", part);
            }
            Block::Tool { .. } => {
                let delta = at(json!({"delta": item["arguments"]}));
                self.push("response.function_call_arguments.delta", delta);
                let done = at(json!({"arguments": item["arguments"]}));
                self.push("response.function_call_arguments.done", done);
            }
            Block::CustomTool { .. } => {
                let delta = at(json!({"delta": item["input"]}));
                self.push("response.custom_tool_call_input.delta", delta);
                let done = at(json!({"input": item["input"]}));
                self.push("response.custom_tool_call_input.done", done);
            }
        }
    }
}

fn begin(events: &mut Events, model: &Value) -> Value {
    let response = response(model);
    events.push("response.created", json!({"response": response}));
    events.push("response.in_progress", json!({"response": response}));
    response
}

fn response(model: &Value) -> Value {
    json!({
        "id": format!("resp_{:024}", serial()),
        "object": "response",
        "created_at": 1_764_547_200,
        "status": "in_progress",
        "model": model,
        "output": [],
        "error": null,
        "incomplete_details": null,
        "usage": null,
    })
}

fn fail(events: &mut Events, mut response: Value, code: &str, message: &str) {
    response["status"] = "failed".into();
    response["error"] = json!({"code": code, "message": message});
    events.push("response.failed", json!({"response": response}));
}

/// The last event's name and the response it carries.
fn ended(mut response: Value, step: &Step, items: Vec<Value>) -> (&'static str, Value) {
    response["output"] = items.into();
    response["usage"] = usage(step.usage);
    let reason = match step.stop {
        None => {
            response["status"] = "completed".into();
            return ("response.completed", response);
        }
        Some(Stop::Refusal) => "content_filter",
        Some(Stop::MaxTokens | Stop::ContextWindow) => "max_output_tokens",
    };
    response["status"] = "incomplete".into();
    response["incomplete_details"] = json!({"reason": reason});
    ("response.incomplete", response)
}

fn usage(of: Usage) -> Value {
    json!({
        "input_tokens": of.input,
        "input_tokens_details": {"cached_tokens": of.cached},
        "output_tokens": of.output,
        "output_tokens_details": {"reasoning_tokens": of.reasoning},
        "total_tokens": of.input + of.output,
    })
}

fn item(block: &Block) -> Value {
    let number = serial();
    match block {
        Block::Text(deltas) => json!({
            "type": "message", "id": format!("msg_{number:024}"), "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": deltas.concat(), "annotations": []}],
        }),
        Block::Thinking(text) => json!({
            "type": "reasoning", "id": format!("rs_{number:024}"),
            "summary": [{"type": "summary_text", "text": text}],
        }),
        Block::Tool { name, input } => json!({
            "type": "function_call", "id": format!("fc_{number:024}"),
            "call_id": format!("call_{number:024}"), "name": name,
            "arguments": input.to_string(), "status": "completed",
        }),
        Block::CustomTool { name, input } => json!({
            "type": "custom_tool_call", "id": format!("ctc_{number:024}"),
            "call_id": format!("call_{number:024}"), "name": name,
            "input": input, "status": "completed",
        }),
    }
}
