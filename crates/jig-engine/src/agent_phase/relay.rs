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
        let mut relay = Relay {
            phase,
            trace: &self.trace,
            joiner: TextJoiner::default(),
            logs: Kept::new(limits::SEND_LOGS.into()),
            events: Kept::new(limits::SEND_EVENTS.into()),
        };
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
}

/// How many of a kind were kept: an agent can say anything as often as it
/// likes, and the trace is to stay readable.
struct Kept {
    most: u64,
    seen: u64,
}

impl Kept {
    const fn new(most: u64) -> Self {
        Self { most, seen: 0 }
    }

    /// Whether there is room for one more, which is counted either way.
    const fn next(&mut self) -> bool {
        self.seen += 1;
        self.seen <= self.most
    }

    const fn left_out(&self) -> u64 {
        self.seen.saturating_sub(self.most)
    }
}

impl Relay<'_> {
    fn pass(&mut self, said: RuntimeEvent) {
        if let RuntimeEvent::TextDelta { text } = &said {
            if let Some(ready) = self.joiner.push(self.trace.redactor(), text) {
                self.text(&ready);
            }
            return;
        }
        self.end_message();
        let room = match &said {
            RuntimeEvent::Log { .. } => self.logs.next(),
            // Counted where deltas become text as well.
            RuntimeEvent::Text { .. } => true,
            RuntimeEvent::ToolCall { .. } | RuntimeEvent::Retrying { .. } => self.events.next(),
            RuntimeEvent::TextDelta { .. } | RuntimeEvent::Started { .. } => false,
        };
        if !room {
            return;
        }
        match said {
            RuntimeEvent::TextDelta { .. } | RuntimeEvent::Started { .. } => {}
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
        let (logs, events) = (self.logs.left_out(), self.events.left_out());
        if logs + events > 0 {
            self.emit(&EventBody::RuntimeLog {
                log: "left_out".to_owned(),
                entry: event::RuntimeLog {
                    text: format!(
                        "{logs} log entries and {events} other events of this send were left \
                         out; {} and {} are kept",
                        self.logs.most, self.events.most
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
        if !self.events.next() {
            return;
        }
        self.emit(&EventBody::AgentText(event::AgentText {
            text: text::head(clean, limits::AGENT_TEXT_BYTES).to_owned(),
        }));
    }

    fn emit(&self, body: &EventBody) {
        self.trace.emit(Some(self.phase), body);
    }
}
