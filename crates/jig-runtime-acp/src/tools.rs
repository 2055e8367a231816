//! The agent's tool calls, from the pieces in which agents tell of them.

use std::collections::BTreeMap;

use jig_runtime::RuntimeEvent;
use jig_runtime::dialect::Heard;
use serde_json::{Value, json};

use crate::dialect::text;

/// Calls that are remembered; a call that ended is forgotten before others.
const REMEMBERED: usize = 4_096;

/// The calls of one send, by the agent's ids.
#[derive(Debug, Default)]
pub(crate) struct Tools(BTreeMap<String, Call>);

#[derive(Debug, Default)]
struct Call {
    name: String,
    title: String,
    input: Value,
    told: bool,
    ended: bool,
}

impl Tools {
    /// Takes a `tool_call` or a `tool_call_update`: whichever comes first begins
    /// the call. Gives whether this one did.
    pub(crate) fn update(&mut self, update: &Value, heard: &mut Vec<Heard>) -> bool {
        let Some((id, began)) = self.find(update) else {
            return false;
        };
        let Some(call) = self.0.get_mut(&id) else {
            return false;
        };
        let status = text(update, "status");
        let ends = matches!(status, "completed" | "failed");
        if call.ended {
            return false;
        }
        call.learn(update);
        if began && !ends {
            heard.push(Heard::ToolOpened(id.clone()));
        }
        if !call.told && (ends || has_content(&call.input)) {
            call.told = true;
            heard.push(Heard::Event(call.event()));
            // Told once, however large it is.
            call.input = Value::Null;
        }
        if ends {
            call.ended = true;
            heard.push(Heard::ToolClosed(id));
        }
        began
    }

    /// The call that a permission is asked for, which may never be told of
    /// otherwise. Gives whether it began with that.
    pub(crate) fn asked_for(&mut self, call: &Value) -> bool {
        let Some((id, began)) = self.find(call) else {
            return false;
        };
        if let Some(known) = self.0.get_mut(&id).filter(|known| !known.ended) {
            known.learn(call);
        }
        // Not open: a call that is refused may never be told of again.
        began
    }

    /// The id of a call, and whether it is new.
    fn find(&mut self, update: &Value) -> Option<(String, bool)> {
        let id = update["toolCallId"].as_str().filter(|id| !id.is_empty())?;
        if self.0.contains_key(id) {
            return Some((id.to_owned(), false));
        }
        if self.0.len() >= REMEMBERED {
            self.0.retain(|_, call| !call.ended);
        }
        if self.0.len() >= REMEMBERED {
            return None;
        }
        self.0.insert(id.to_owned(), Call::default());
        Some((id.to_owned(), true))
    }
}

impl Call {
    fn learn(&mut self, update: &Value) {
        let own = &update["_meta"]["claudeCode"];
        for name in [text(update, "name"), text(own, "toolName")] {
            if self.name.is_empty() {
                name.clone_into(&mut self.name);
            }
        }
        for title in [text(update, "title"), text(update, "kind")] {
            if self.title.is_empty() {
                title.clone_into(&mut self.title);
            }
        }
        if !self.told && has_content(&update["rawInput"]) {
            self.input = update["rawInput"].clone();
        }
    }

    fn event(&self) -> RuntimeEvent {
        let name = [&self.name, &self.title]
            .into_iter()
            .find(|name| !name.is_empty());
        RuntimeEvent::ToolCall {
            tool: name.map_or("tool", String::as_str).to_owned(),
            input: if has_content(&self.input) {
                self.input.clone()
            } else {
                json!({"title": self.title})
            },
        }
    }
}

/// Agents tell of a call before they know its input.
fn has_content(input: &Value) -> bool {
    match input {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(tools: &mut Tools, update: Value) -> (bool, Vec<String>) {
        let mut heard = Vec::new();
        let began = tools.update(&update, &mut heard);
        let told = heard.iter().map(|heard| match heard {
            Heard::Event(RuntimeEvent::ToolCall { tool, input }) => format!("{tool} {input}"),
            other => format!("{other:?}"),
        });
        (began, told.collect())
    }

    #[test]
    fn a_call_is_told_once_with_its_input() {
        let mut tools = Tools::default();
        let (began, told) = hear(
            &mut tools,
            json!({"toolCallId": "t", "name": "Write", "title": "Preparing", "rawInput": {}}),
        );
        assert!(began);
        assert_eq!(told, ["ToolOpened(\"t\")"]);
        let update = json!({"toolCallId": "t", "rawInput": {"file": "a"}});
        assert_eq!(
            hear(&mut tools, update.clone()).1,
            ["Write {\"file\":\"a\"}"]
        );
        assert_eq!(hear(&mut tools, update).1, [""; 0]);
        let end = json!({"toolCallId": "t", "status": "completed"});
        assert_eq!(
            hear(&mut tools, end.clone()),
            (false, vec!["ToolClosed(\"t\")".to_owned()])
        );
        // What trails after the end opens nothing again.
        assert_eq!(hear(&mut tools, end), (false, vec![]));
        assert_eq!(
            hear(
                &mut tools,
                json!({"toolCallId": "t", "status": "in_progress"})
            ),
            (false, vec![])
        );
    }

    #[test]
    fn a_call_may_be_told_of_at_its_end_only() {
        let mut tools = Tools::default();
        assert!(tools.asked_for(&json!({"toolCallId": "g", "title": "Writing to a"})));
        assert_eq!(
            hear(&mut tools, json!({"toolCallId": "g", "status": "failed"})),
            (
                false,
                vec![
                    "Writing to a {\"title\":\"Writing to a\"}".to_owned(),
                    "ToolClosed(\"g\")".to_owned()
                ]
            )
        );
        assert_eq!(
            hear(&mut tools, json!({"status": "pending"})),
            (false, vec![])
        );
    }

    #[test]
    fn a_flood_of_calls_is_bounded() {
        let mut tools = Tools::default();
        for at in 0..2 * REMEMBERED {
            let status = if at % 2 == 0 { "completed" } else { "pending" };
            hear(
                &mut tools,
                json!({"toolCallId": at.to_string(), "status": status}),
            );
        }
        assert_eq!(tools.0.len(), REMEMBERED);
    }
}
