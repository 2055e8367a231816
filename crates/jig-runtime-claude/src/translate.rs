//! What the lines of Claude Code's `stream-json` output say.
//!
//! Every field is optional and every unknown line is skipped: the stream grows
//! with each version of the CLI.

use std::collections::BTreeSet;
use std::time::Duration;

use jig_protocol::outcome::FailureClass;
use jig_runtime::dialect::{Dialect, Exit, Heard, Verdict};
use jig_runtime::{RuntimeEvent, Session, failure, json, line_stream};
use serde_json::Value;
use uuid::Uuid;

use crate::classify;

/// Longer ids of messages are none of this CLI's; nor does it write more messages
/// in one send.
const ID_BYTES: usize = 256;
const REMEMBERED: usize = 10_000;

/// The translator of one send.
#[derive(Debug, Default)]
pub struct ClaudeDialect {
    /// The id that this send continues; `None` on a conversation's first send.
    continues: Option<String>,
    /// The id under which the CLI answers.
    pub(crate) session_id: Option<String>,
    /// The last `result` line.
    pub(crate) result: Option<Value>,
    /// The last error the CLI put in place of a model's message.
    pub(crate) api_error: Option<Value>,
    /// The usage of the last message of the main conversation.
    pub(crate) last_usage: Option<Value>,
    /// Messages whose text went out in parts, so that the whole does not follow.
    streamed: BTreeSet<String>,
    /// The message being streamed.
    streaming: Option<String>,
    /// How often the vendor refused the login, without anything in between.
    pub(crate) refused_logins: u32,
}

impl ClaudeDialect {
    /// A translator for a conversation's first send (`None`) or for one that
    /// continues a known one.
    #[must_use]
    pub fn new(continues: Option<String>) -> Self {
        Self {
            continues,
            ..Self::default()
        }
    }

    /// The id under which a new conversation answered, when that is none.
    pub(crate) fn answered_as_nobody(&self) -> Option<&str> {
        let id = self.session_id.as_deref()?;
        if self.continues.is_some() {
            return None;
        }
        Uuid::try_parse(id).is_err().then_some(id)
    }

    /// The id that was to be continued and the other one that answered.
    pub(crate) fn answered_elsewhere(&self) -> Option<(&str, &str)> {
        match (&self.continues, &self.session_id) {
            (Some(asked), Some(answered)) if asked != answered => Some((asked, answered)),
            _ => None,
        }
    }

    fn value(&mut self, value: Value, heard: &mut Vec<Heard>) {
        if let Value::Array(values) = value {
            // Some wrappers hand the whole stream out as one array.
            values
                .into_iter()
                .for_each(|value| self.value(value, heard));
            return;
        }
        match text(&value, "type") {
            "system" => self.system(&value, heard),
            "assistant" => self.assistant(&value, heard),
            "user" => tool_results(&value, heard),
            "stream_event" => self.partial(&value, heard),
            // Other agents end their streams with a line of this name too.
            "result" if is_result(&value) => {
                self.note_session(&value);
                self.result = Some(value);
                heard.push(Heard::Terminal);
            }
            _ => {}
        }
    }

    fn note_session(&mut self, value: &Value) {
        let id = text(value, "session_id");
        if !id.is_empty() {
            self.session_id = Some(id.to_owned());
        }
    }

    fn system(&mut self, value: &Value, heard: &mut Vec<Heard>) {
        let subtype = text(value, "subtype");
        match subtype {
            "" => {}
            "api_retry" => self.retry(value, heard),
            // Progress ticks; their bytes have done their duty.
            "status" | "thinking_tokens" => {}
            "init" => {
                self.note_session(value);
                // A new turn: a result before it was not the last one.
                if self.result.is_some() {
                    heard.push(Heard::Reopened);
                }
                heard.push(log(subtype, init_text(value), Some(init_detail(value))));
            }
            _ => heard.push(log(subtype, system_text(value), None)),
        }
    }

    /// The CLI is about to ask again. A login that was refused twice will be
    /// refused the other times as well, three minutes long.
    fn retry(&mut self, value: &Value, heard: &mut Vec<Heard>) {
        let class = retry_class(value);
        let wait = value.get("retry_delay_ms").and_then(Value::as_u64);
        heard.push(Heard::Event(RuntimeEvent::Retrying {
            class,
            wait: wait.map(Duration::from_millis),
        }));
        if class != FailureClass::Auth {
            self.refused_logins = 0;
            return;
        }
        self.refused_logins += 1;
        if self.refused_logins > 1 {
            heard.push(Heard::Within(Some(Duration::ZERO)));
        }
    }

    fn assistant(&mut self, value: &Value, heard: &mut Vec<Heard>) {
        let message = &value["message"];
        let main = value["parent_tool_use_id"].is_null();
        if value["is_api_error_message"] == true || value["error"].is_string() {
            self.api_error = Some(value.clone());
        } else {
            self.api_error = None;
            if main && message["usage"].is_object() {
                self.last_usage = Some(message["usage"].clone());
            }
        }
        let streamed = main && self.streamed.contains(text(message, "id"));
        for block in message["content"].as_array().into_iter().flatten() {
            match text(block, "type") {
                "text" if !streamed && !text(block, "text").is_empty() => {
                    heard.push(Heard::Event(RuntimeEvent::Text {
                        text: text(block, "text").to_owned(),
                    }));
                }
                kind @ ("tool_use" | "server_tool_use") => {
                    if kind == "tool_use" && !text(block, "id").is_empty() {
                        heard.push(Heard::ToolOpened(text(block, "id").to_owned()));
                    }
                    heard.push(Heard::Event(RuntimeEvent::ToolCall {
                        tool: text(block, "name").to_owned(),
                        input: block["input"].clone(),
                    }));
                }
                _ => {}
            }
        }
    }

    /// One event of a message that is still being written. Only of the main
    /// conversation: parts of several would be joined into nonsense.
    fn partial(&mut self, value: &Value, heard: &mut Vec<Heard>) {
        if !value["parent_tool_use_id"].is_null() {
            return;
        }
        let event = &value["event"];
        match text(event, "type") {
            "message_start" => {
                let id = event["message"]["id"]
                    .as_str()
                    .filter(|id| id.len() <= ID_BYTES);
                self.streaming = id.map(str::to_owned);
            }
            "content_block_delta" if text(&event["delta"], "type") == "text_delta" => {
                let part = text(&event["delta"], "text");
                if let Some(id) = self.streaming.as_ref().filter(|_| !part.is_empty()) {
                    if self.streamed.len() < REMEMBERED {
                        self.streamed.insert(id.clone());
                    }
                    heard.push(Heard::Event(RuntimeEvent::TextDelta {
                        text: part.to_owned(),
                    }));
                }
            }
            "message_stop"
                if self
                    .streaming
                    .take()
                    .is_some_and(|id| self.streamed.contains(&id)) =>
            {
                heard.push(Heard::Event(RuntimeEvent::TextEnd));
            }
            // The final figures of the message.
            "message_delta" if event["usage"].is_object() => {
                self.last_usage = Some(event["usage"].clone());
            }
            _ => {}
        }
    }
}

impl Dialect for ClaudeDialect {
    fn line(&mut self, line: &[u8]) -> Vec<Heard> {
        let line = line.trim_ascii();
        let mut heard = Vec::new();
        match json::parse(line) {
            _ if line.is_empty() => {}
            Some(value @ (Value::Object(_) | Value::Array(_))) => self.value(value, &mut heard),
            _ => heard.push(Heard::Event(line_stream::unparsed(line))),
        }
        heard
    }

    fn end(&mut self, session: &mut Session, exit: Exit, stderr: &str) -> Verdict {
        let verdict = classify::verdict(self, session, exit, stderr);
        // On the first send the CLI's word counts; later it is compared.
        if let (None, Some(id)) = (&self.continues, &self.session_id)
            && Uuid::try_parse(id).is_ok()
        {
            session.native_id = Some(id.clone());
        }
        verdict
    }
}

/// Whether a line says how a send ended: by a word for it, a flag, or an answer.
fn is_result(value: &Value) -> bool {
    ["subtype", "is_error", "result"]
        .iter()
        .any(|field| value.get(field).is_some())
}

/// The class of the error that the CLI is about to retry by itself.
fn retry_class(value: &Value) -> FailureClass {
    value
        .get("error_status")
        .and_then(Value::as_u64)
        .and_then(|status| failure::class_of_status(u16::try_from(status).ok()?))
        .or_else(|| classify::class_of_word(text(value, "error")))
        .unwrap_or(FailureClass::Other)
}

/// The ends of tool calls.
fn tool_results(value: &Value, heard: &mut Vec<Heard>) {
    for block in value["message"]["content"].as_array().into_iter().flatten() {
        if text(block, "type") == "tool_result" && !text(block, "tool_use_id").is_empty() {
            heard.push(Heard::ToolClosed(text(block, "tool_use_id").to_owned()));
        }
    }
}

fn log(subtype: &str, text: String, detail: Option<Value>) -> Heard {
    Heard::Event(RuntimeEvent::Log {
        log: format!("system:{subtype}"),
        text,
        detail,
    })
}

/// What is worth keeping of the long line that opens a conversation.
fn init_detail(value: &Value) -> Value {
    let keep = [
        "model",
        "cwd",
        "session_id",
        "permissionMode",
        "apiKeySource",
        "claude_code_version",
        "mcp_servers",
    ];
    keep.iter()
        .filter_map(|name| {
            value
                .get(*name)
                .map(|found| ((*name).to_owned(), found.clone()))
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn init_text(value: &Value) -> String {
    format!(
        "Claude Code {} with {}",
        text(value, "claude_code_version"),
        text(value, "model")
    )
}

/// The one sentence a system line has to say, if any.
fn system_text(value: &Value) -> String {
    [
        "message",
        "content",
        "summary",
        "description",
        "hook_name",
        "status",
    ]
    .iter()
    .map(|name| text(value, name))
    .find(|found| !found.is_empty())
    .unwrap_or("")
    .to_owned()
}

/// A field that is a string, else nothing.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("")
}
