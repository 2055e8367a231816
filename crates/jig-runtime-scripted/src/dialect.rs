//! What the scripted agent's stream says.

use std::sync::Arc;
use std::time::Duration;

use jig_protocol::limits;
use jig_protocol::outcome::FailureClass;
use jig_protocol::time::Clock;
use jig_runtime::dialect::{Dialect, Exit, Heard, Verdict};
use jig_runtime::failure::{self, Failure};
use jig_runtime::{RuntimeEvent, Session, Usage, line_stream};

use crate::barrier::Barriers;
use crate::script::StepUsage;
use crate::wire::{Met, Said};

/// The translator of one send.
#[derive(Debug)]
pub(crate) struct ScriptedDialect {
    barriers: Arc<Barriers>,
    clock: Arc<dyn Clock>,
    session: Option<String>,
    last: Option<Last>,
}

/// What ends a stream.
#[derive(Debug)]
enum Last {
    Fault(String),
    Result {
        text: String,
        usage: Option<StepUsage>,
        error: Option<FailureClass>,
        retry_after: Option<Duration>,
    },
}

impl ScriptedDialect {
    pub(crate) fn new(barriers: Arc<Barriers>, clock: Arc<dyn Clock>) -> Self {
        Self {
            barriers,
            clock,
            session: None,
            last: None,
        }
    }

    fn wait_for(&self, barrier: String) -> Heard {
        let barriers = Arc::clone(&self.barriers);
        let timeout = self
            .clock
            .monotonic()
            .saturating_add(limits::BARRIER_TIMEOUT);
        let timeout = self.clock.sleep_until(timeout);
        Heard::Reply(Box::pin(async move {
            let met = tokio::select! {
                biased;
                () = barriers.reached(&barrier) => true,
                () = timeout => false,
            };
            let mut line = serde_json::to_vec(&Met { met }).unwrap_or_default();
            line.push(b'\n');
            line
        }))
    }
}

impl Dialect for ScriptedDialect {
    fn line(&mut self, line: &[u8]) -> Vec<Heard> {
        let Ok(said) = serde_json::from_slice::<Said>(line) else {
            return vec![Heard::Event(line_stream::unparsed(line))];
        };
        let event = match said {
            Said::Session { id } => {
                self.session = Some(id);
                return Vec::new();
            }
            Said::Reach { barrier } => {
                self.barriers.reach(&barrier);
                return Vec::new();
            }
            Said::Wait { barrier } => return vec![self.wait_for(barrier)],
            Said::Fault { message } => {
                self.last = Some(Last::Fault(message));
                return vec![Heard::Terminal];
            }
            Said::Result {
                text,
                usage,
                error,
                retry_after_ms,
            } => {
                let retry_after = retry_after_ms.map(Duration::from_millis);
                self.last = Some(Last::Result {
                    text,
                    usage,
                    error,
                    retry_after,
                });
                return vec![Heard::Terminal];
            }
            Said::Tool { name, input } => RuntimeEvent::ToolCall { tool: name, input },
            Said::Text { text } => RuntimeEvent::Text { text },
            Said::Delta { text } => RuntimeEvent::TextDelta { text },
            Said::Log { log, text, detail } => RuntimeEvent::Log { log, text, detail },
        };
        vec![Heard::Event(event)]
    }

    fn end(&mut self, session: &mut Session, exit: Exit, stderr: &str) -> Verdict {
        if let Some(id) = self.session.take() {
            session.native_id = Some(id);
        }
        match self.last.take() {
            None => Verdict {
                outcome: Err(Failure::new(
                    FailureClass::Crashed,
                    failure::with_stderr(
                        &format!("the scripted agent ended without a result ({exit})"),
                        stderr,
                    ),
                )),
                usage: None,
            },
            Some(Last::Fault(message)) => Verdict {
                outcome: Err(Failure::new(FailureClass::Script, message)),
                usage: None,
            },
            Some(Last::Result {
                text,
                usage,
                error,
                retry_after,
            }) => Verdict {
                outcome: match error {
                    None => Ok(text),
                    Some(class) => Err(Failure {
                        class,
                        message: text,
                        hint: None,
                        retry_after,
                    }),
                },
                // A step that says nothing used nothing.
                usage: Some(figures(usage.unwrap_or_default())),
            },
        }
    }
}

fn figures(usage: StepUsage) -> Usage {
    Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cost_usd: Some(usage.cost_usd.unwrap_or(0.0)),
        context_tokens: usage.context_tokens,
        late: None,
    }
}
