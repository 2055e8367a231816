//! Answers in the form of Anthropic's Messages.

use serde_json::{Value, json};

use super::body::Piece;
use super::state::serial;
use super::step::{Block, HttpError, Step, Stop, Usage};

/// The type that goes with a status.
const fn kind_of(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        _ => "api_error",
    }
}

pub(super) fn error(error: &HttpError, request_id: &str) -> Value {
    let kind = error.kind.as_deref().unwrap_or(kind_of(error.status));
    let message = error.message.as_deref().unwrap_or(match error.status {
        401 => "invalid x-api-key",
        403 => "Your API key does not have permission to use the specified resource",
        429 => "This request would exceed your account's rate limit. Please try again later.",
        529 => "Overloaded",
        500 => "Internal server error",
        _ => "the request cannot be served",
    });
    json!({
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": request_id,
    })
}

/// What a stream says that fails after it began.
pub(super) fn failed(model: &Value, usage: Usage, code: &str, message: &str) -> Vec<Piece> {
    let failure = json!({"type": "error", "error": {"type": code, "message": message}});
    vec![start(model, usage), Piece::event(&failure)]
}

pub(super) fn plain(model: &Value, step: &Step, blocks: &[Block]) -> Result<Value, String> {
    let content: Result<Vec<Value>, String> = blocks.iter().map(whole).collect();
    let mut message = message(model, usage(step.usage));
    message["content"] = content?.into();
    message["stop_reason"] = stop_reason(step, blocks).into();
    Ok(message)
}

pub(super) fn stream(model: &Value, step: &Step, blocks: &[Block]) -> Result<Vec<Piece>, String> {
    let mut pieces = vec![start(model, step.usage)];
    for (index, block) in blocks.iter().enumerate() {
        let (begun, deltas) = in_parts(block)?;
        pieces.push(Piece::event(&json!({
            "type": "content_block_start", "index": index, "content_block": begun,
        })));
        pieces.extend(deltas.into_iter().map(|delta| {
            Piece::event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
        }));
        pieces.push(Piece::event(
            &json!({"type": "content_block_stop", "index": index}),
        ));
    }
    pieces.push(Piece::event(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(step, blocks), "stop_sequence": null},
        "usage": usage(step.usage),
    })));
    pieces.push(Piece::event(&json!({"type": "message_stop"})));
    Ok(pieces)
}

/// The first event: the input is known, of the output only that it began.
fn start(model: &Value, of: Usage) -> Piece {
    let begun = Usage {
        output: of.output.min(1),
        ..of
    };
    Piece::event(&json!({"type": "message_start", "message": message(model, usage(begun))}))
}

fn message(model: &Value, usage: Value) -> Value {
    json!({
        "id": format!("msg_{:024}", serial()),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn usage(of: Usage) -> Value {
    json!({
        "input_tokens": of.input,
        "output_tokens": of.output,
        "cache_read_input_tokens": of.cached,
        "cache_creation_input_tokens": of.cache_creation,
        "cache_creation": {
            "ephemeral_5m_input_tokens": of.cache_creation,
            "ephemeral_1h_input_tokens": 0,
        },
        "service_tier": "standard",
    })
}

fn stop_reason(step: &Step, blocks: &[Block]) -> &'static str {
    match step.stop {
        Some(Stop::MaxTokens) => "max_tokens",
        Some(Stop::Refusal) => "refusal",
        Some(Stop::ContextWindow) => "model_context_window_exceeded",
        None if blocks.iter().any(|it| matches!(it, Block::Tool { .. })) => "tool_use",
        None => "end_turn",
    }
}

const SIGNATURE: &str = "c2lnbmF0dXJl";

fn whole(block: &Block) -> Result<Value, String> {
    Ok(match block {
        Block::Text(deltas) => json!({"type": "text", "text": deltas.concat()}),
        Block::Thinking(text) => {
            json!({"type": "thinking", "thinking": text, "signature": SIGNATURE})
        }
        Block::Tool { name, input } => json!({
            "type": "tool_use", "id": format!("toolu_{:024}", serial()), "name": name, "input": input,
        }),
        Block::CustomTool { name, .. } => {
            return Err(format!(
                "{name} is called with free text, which Messages cannot carry"
            ));
        }
    })
}

/// The block as it begins, and the deltas that make it whole.
fn in_parts(block: &Block) -> Result<(Value, Vec<Value>), String> {
    let mut begun = whole(block)?;
    let deltas = match block {
        Block::Text(deltas) => {
            begun["text"] = "".into();
            let delta = |text| json!({"type": "text_delta", "text": text});
            deltas.iter().map(delta).collect()
        }
        Block::Thinking(text) => {
            begun["thinking"] = "".into();
            begun["signature"] = "".into();
            vec![
                json!({"type": "thinking_delta", "thinking": text}),
                json!({"type": "signature_delta", "signature": SIGNATURE}),
            ]
        }
        Block::Tool { input, .. } => {
            begun["input"] = json!({});
            vec![json!({"type": "input_json_delta", "partial_json": input.to_string()})]
        }
        Block::CustomTool { .. } => Vec::new(),
    };
    Ok((begun, deltas))
}
