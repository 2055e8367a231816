//! What the lines of `codex exec --json` say.
//!
//! Every field is optional and nothing unknown is an error: the stream grows
//! with each version of the CLI.

use jig_protocol::outcome::FailureClass;
use jig_runtime::dialect::{Dialect, Exit, Heard, Verdict};
use jig_runtime::json::parse;
use jig_runtime::{RuntimeEvent, Session, line_stream};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::classify;

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Turn {
    /// With the usage that the thread has come to.
    Completed(Value),
    /// With these words.
    Failed(String),
}

/// The translator of one send.
#[derive(Debug, Default)]
pub struct CodexDialect {
    /// The thread that this send continues; `None` on a thread's first send.
    continues: Option<String>,
    /// Whether the answer was asked for in the strict form.
    pub(crate) structured: bool,
    /// The thread that answers.
    pub(crate) thread: Option<String>,
    /// The last end of a turn.
    pub(crate) turn: Option<Turn>,
    /// The agent's last message.
    pub(crate) answer: String,
    /// The last error that ended no turn.
    pub(crate) error: Option<String>,
}

impl CodexDialect {
    /// A translator for a thread's first send (`None`) or for one that continues
    /// a known one.
    #[must_use]
    pub fn new(continues: Option<String>) -> Self {
        Self {
            continues,
            ..Self::default()
        }
    }

    /// The same for an answer in the strict form.
    #[must_use]
    pub const fn structured(mut self, structured: bool) -> Self {
        self.structured = structured;
        self
    }

    /// The new thread that answered, when its id is none.
    pub(crate) fn answered_as_nobody(&self) -> Option<&str> {
        let id = self.thread.as_deref()?;
        if self.continues.is_some() {
            return None;
        }
        Uuid::try_parse(id).is_err().then_some(id)
    }

    /// The thread that was to be continued and the other one that answered.
    pub(crate) fn answered_elsewhere(&self) -> Option<(&str, &str)> {
        match (&self.continues, &self.thread) {
            (Some(asked), Some(answered)) if asked != answered => Some((asked, answered)),
            _ => None,
        }
    }

    fn value(&mut self, value: &Value) -> Vec<Heard> {
        match text(value, "type") {
            "thread.started" => {
                let id = text(value, "thread_id");
                self.thread = Some(id.to_owned()).filter(|id| !id.is_empty());
                vec![log("thread_started", id, Some(json!({"thread_id": id})))]
            }
            "turn.started" => {
                let mut heard = vec![log("turn_started", "", None)];
                if self.turn.take().is_some() {
                    heard.insert(0, Heard::Reopened);
                }
                heard
            }
            "turn.completed" => {
                self.turn = Some(Turn::Completed(value["usage"].clone()));
                vec![Heard::Terminal]
            }
            "turn.failed" => {
                let said = text(&value["error"], "message");
                self.turn = Some(Turn::Failed(said.to_owned()));
                vec![log("turn_failed", said, None), Heard::Terminal]
            }
            "error" => self.error(text(value, "message")),
            "item.started" => started(&value["item"]),
            "item.updated" => vec![item_log("updated", &value["item"])],
            "item.completed" => self.completed(&value["item"]),
            "" => Vec::new(),
            other => vec![log(&format!("unhandled:{other}"), "", None)],
        }
    }

    /// An error line ends nothing by itself: the CLI may try again.
    fn error(&mut self, said: &str) -> Vec<Heard> {
        if let Some(why) = said.strip_prefix("Reconnecting... ") {
            return vec![Heard::Event(RuntimeEvent::Retrying {
                class: classify::class(why).unwrap_or(FailureClass::Other),
                wait: None,
            })];
        }
        self.error = Some(said.to_owned()).filter(|said| !said.is_empty());
        vec![log("error", said, None)]
    }

    fn completed(&mut self, item: &Value) -> Vec<Heard> {
        let kind = text(item, "type");
        let mut heard = Vec::new();
        if is_tool(kind) && !text(item, "id").is_empty() {
            heard.push(Heard::ToolClosed(text(item, "id").to_owned()));
        }
        heard.extend(match kind {
            "agent_message" => {
                text(item, "text").clone_into(&mut self.answer);
                self.said()
            }
            "mcp_tool_call" => {
                let tool = format!("{}.{}", text(item, "server"), text(item, "tool"));
                Some(tool_call(tool, item))
            }
            kind if is_tool(kind) => Some(tool_call(kind.to_owned(), item)),
            "reasoning" => Some(log("reasoning", text(item, "text"), None)),
            "error" => Some(log("item_error", text(item, "message"), None)),
            other => Some(log(&format!("item:{other}"), "", None)),
        });
        heard
    }

    fn said(&self) -> Option<Heard> {
        let text = self.answer.clone();
        (!text.is_empty()).then_some(Heard::Event(RuntimeEvent::Text { text }))
    }
}

impl Dialect for CodexDialect {
    fn line(&mut self, line: &[u8]) -> Vec<Heard> {
        let line = line.trim_ascii();
        match parse(line) {
            _ if line.is_empty() => Vec::new(),
            Some(value @ Value::Object(_)) => self.value(&value),
            _ => vec![Heard::Event(line_stream::unparsed(line))],
        }
    }

    fn end(&mut self, session: &mut Session, exit: Exit, stderr: &str) -> Verdict {
        let verdict = classify::verdict(self, session, exit, stderr);
        // Also of a send that failed: the thread may be there. Later it is
        // compared.
        if session.native_id.is_none() && self.answered_as_nobody().is_none() {
            session.native_id.clone_from(&self.thread);
        }
        verdict
    }
}

fn started(item: &Value) -> Vec<Heard> {
    let mut heard = vec![item_log("started", item)];
    let id = text(item, "id");
    if is_tool(text(item, "type")) && !id.is_empty() {
        heard.push(Heard::ToolOpened(id.to_owned()));
    }
    heard
}

/// Items that are the use of a tool.
fn is_tool(kind: &str) -> bool {
    matches!(
        kind,
        "command_execution" | "file_change" | "mcp_tool_call" | "web_search" | "collab_tool_call"
    )
}

fn tool_call(tool: String, item: &Value) -> Heard {
    Heard::Event(RuntimeEvent::ToolCall {
        tool,
        input: item.clone(),
    })
}

/// What has begun, in the few words that name it.
fn item_log(stage: &str, item: &Value) -> Heard {
    let kind = text(item, "type");
    let said = ["command", "query", "tool"]
        .iter()
        .map(|field| text(item, field))
        .find(|said| !said.is_empty());
    log(&format!("{stage}:{kind}"), said.unwrap_or(""), None)
}

fn log(name: &str, said: &str, detail: Option<Value>) -> Heard {
    Heard::Event(RuntimeEvent::Log {
        log: name.to_owned(),
        text: said.to_owned(),
        detail,
    })
}

/// A field that is a string, else nothing.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("")
}
