//! What a send says while it runs, on its way to the trace.

use std::future::Future;

use jig_protocol::event::{self, EventBody};
use jig_protocol::{limits, text};
use jig_runtime::{RuntimeEvent, SendReport, line_stream};
use serde_json::Value;
use tokio::sync::mpsc::Receiver;

use crate::attempt::Attempt;
use crate::redact::TextJoiner;
use crate::trace::Emitter;

impl Attempt<'_> {
    /// Sees a send through and passes on everything it says. Every event is in
    /// the trace when this returns.
    pub(super) async fn relay(
        &self,
        phase: &str,
        send: impl Future<Output = SendReport>,
        mut inbox: Receiver<RuntimeEvent>,
    ) -> SendReport {
        let mut relay = Relay::new(phase, &self.trace);
        let mut send = std::pin::pin!(send);
        let mut open = true;
        let report = loop {
            // Neither side may starve the other: the send holds the clocks.
            tokio::select! {
                said = inbox.recv(), if open => match said {
                    Some(said) => relay.pass(said),
                    None => open = false,
                },
                report = &mut send => break report,
            }
        };
        while let Ok(said) = inbox.try_recv() {
            relay.pass(said);
        }
        relay.end();
        report
    }
}

struct Relay<'a> {
    phase: &'a str,
    trace: &'a Emitter,
    joiner: TextJoiner,
    logs: Kept,
    events: Kept,
    /// Bytes of the trace that are left for this send.
    room: usize,
}

/// How many of a kind were kept: an agent can say anything as often as it
/// likes, and the trace is to stay readable.
struct Kept {
    most: u64,
    kept: u64,
    left_out: u64,
}

impl Kept {
    const fn new(most: u64) -> Self {
        Self {
            most,
            kept: 0,
            left_out: 0,
        }
    }

    /// Whether one more is kept, given whether the trace has room at all; it is
    /// counted either way.
    const fn next(&mut self, room: bool) -> bool {
        let keep = room && self.kept < self.most;
        if keep {
            self.kept += 1;
        } else {
            self.left_out += 1;
        }
        keep
    }
}

impl<'a> Relay<'a> {
    fn new(phase: &'a str, trace: &'a Emitter) -> Self {
        Self {
            phase,
            trace,
            joiner: TextJoiner::default(),
            logs: Kept::new(limits::SEND_LOGS.into()),
            events: Kept::new(limits::SEND_EVENTS.into()),
            room: limits::SEND_EVENTS_BYTES,
        }
    }

    fn pass(&mut self, said: RuntimeEvent) {
        if let RuntimeEvent::TextDelta { text } = &said {
            if let Some(ready) = self.joiner.push(self.trace.redactor(), text) {
                self.text(&ready);
            }
            return;
        }
        self.end_message();
        let room = self.room > 0;
        let keep = match &said {
            RuntimeEvent::Log { .. } => self.logs.next(room),
            // Counted where deltas become text as well.
            RuntimeEvent::Text { .. } => true,
            RuntimeEvent::ToolCall { .. } | RuntimeEvent::Retrying { .. } => self.events.next(room),
            RuntimeEvent::TextDelta { .. }
            | RuntimeEvent::TextEnd
            | RuntimeEvent::Started { .. } => false,
        };
        if !keep {
            return;
        }
        match said {
            RuntimeEvent::TextDelta { .. }
            | RuntimeEvent::TextEnd
            | RuntimeEvent::Started { .. } => {}
            RuntimeEvent::Text { text } => {
                let clean = self.trace.redactor().text(&text).into_owned();
                self.text(&clean);
            }
            RuntimeEvent::ToolCall { tool, input } => {
                self.emit(&EventBody::ToolCall { tool, input });
            }
            RuntimeEvent::Log { log, text, detail } => {
                let text = self.log_text(&log, text);
                let detail = detail.map(|detail| self.log_detail(detail));
                self.emit(&EventBody::RuntimeLog {
                    log,
                    entry: event::RuntimeLog { text, detail },
                });
            }
            RuntimeEvent::Retrying { class, wait } => {
                let wait = wait.unwrap_or_default().as_millis();
                self.emit(&EventBody::RateLimited(event::RateLimited {
                    class,
                    wait_ms: u64::try_from(wait).unwrap_or(u64::MAX),
                }));
            }
        }
    }

    fn end_message(&mut self) {
        if let Some(rest) = self.joiner.finish(self.trace.redactor()) {
            self.text(&rest);
        }
    }

    /// Ends the send: what was left out is counted in one entry.
    fn end(&mut self) {
        self.end_message();
        let (logs, events) = (self.logs.left_out, self.events.left_out);
        if logs + events > 0 {
            self.emit(&EventBody::RuntimeLog {
                log: "left_out".to_owned(),
                entry: event::RuntimeLog {
                    text: format!(
                        "{logs} log entries and {events} other events of this send were left \
                         out; {} and {} are kept, and {} bytes of all",
                        self.logs.most,
                        self.events.most,
                        limits::SEND_EVENTS_BYTES
                    ),
                    detail: None,
                },
            });
        }
    }

    /// What a log says. Of a line that made no sense the start is enough, once
    /// it is free of secrets.
    fn log_text(&self, log: &str, said: String) -> String {
        if log != line_stream::UNPARSED {
            return said;
        }
        let clean = self.trace.redactor().text(&said);
        text::head(&clean, limits::UNPARSED_LINE_BYTES).to_owned()
    }

    /// What a log adds. Of a long text its end is enough, once it is free of
    /// secrets.
    fn log_detail(&self, mut detail: Value) -> Value {
        self.trace.redactor().value(&mut detail);
        if let Some(fields) = detail.as_object_mut() {
            for field in fields.values_mut() {
                if let Value::String(said) = field {
                    *said = text::tail(said, limits::OUTPUT_TAIL_BYTES).to_owned();
                }
            }
        }
        detail
    }

    /// Text that is free of secrets already, so that it may be cut.
    fn text(&mut self, clean: &str) {
        if !self.events.next(self.room > 0) {
            return;
        }
        self.emit(&EventBody::AgentText(event::AgentText {
            text: text::head(clean, limits::AGENT_TEXT_BYTES).to_owned(),
        }));
    }

    fn emit(&mut self, body: &EventBody) {
        let bytes = self.trace.emit_measured(Some(self.phase), body);
        self.room = self.room.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::redact::Redactor;
    use crate::trace::NoSink;

    /// The lines of the trace after a send that said this.
    fn traced(send: impl FnOnce(&mut Relay<'_>)) -> Vec<Value> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.jsonl");
        let clock = Arc::new(jig_process::SystemClock::new());
        let redactor = Arc::new(Redactor::default());
        let trace = Emitter::open(&path, clock, redactor, Arc::new(NoSink));
        let mut relay = Relay::new("build", &trace);
        send(&mut relay);
        relay.end();
        let written = std::fs::read_to_string(path).unwrap();
        let lines = written.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Large events are bounded together, long before their number is.
    #[test]
    fn events_are_left_out_once_the_trace_has_no_room_for_the_send() {
        let long = "x".repeat(400);
        let lines = traced(|relay| {
            relay.room = 1_000;
            for _ in 0..10 {
                let (tool, input) = ("Read".to_owned(), json!({ "path": long }));
                relay.pass(RuntimeEvent::ToolCall { tool, input });
            }
            relay.pass(RuntimeEvent::Text { text: long.clone() });
            for _ in 0..5 {
                let (log, text) = ("note".to_owned(), long.clone());
                let detail = None;
                relay.pass(RuntimeEvent::Log { log, text, detail });
            }
        });
        // The second is begun while there is room; the last line counts the rest.
        assert_eq!(lines.len(), 3, "{lines:#?}");
        assert_eq!(lines[1]["type"], "tool_call");
        let said = lines[2]["payload"]["text"].as_str().unwrap();
        assert!(
            said.starts_with("5 log entries and 9 other events"),
            "{said}"
        );
    }

    #[test]
    fn messages_in_parts_are_not_run_together() {
        let lines = traced(|relay| {
            for part in ["fi", "rst", "", "sec", "ond", ""] {
                relay.pass(match part {
                    "" => RuntimeEvent::TextEnd,
                    part => RuntimeEvent::TextDelta { text: part.into() },
                });
            }
        });
        let texts: Vec<_> = lines.iter().map(|line| &line["payload"]["text"]).collect();
        assert_eq!(texts, ["first", "second"]);
    }
}
