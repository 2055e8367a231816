//! One send as an exchange of messages: a state machine without any I/O.
//!
//! `initialize` → `authenticate`, where it is wanted → a session, new or
//! continued → its mode and model, where they are not in force → the prompt →
//! its result. One request of jig's is open at a time; the agent's own requests
//! are answered as they come.

use std::collections::VecDeque;
use std::time::Duration;

use jig_protocol::limits;
use jig_protocol::outcome::FailureClass;
use jig_runtime::dialect::{Dialect, Exit, Heard, Verdict};
use jig_runtime::failure::{self, Failure};
use jig_runtime::{RuntimeEvent, Session, line_stream};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::classify;
use crate::greeting::{Greeting, PROTOCOL};
use crate::message::{self, Message, RpcError};
use crate::permission;
use crate::settings::{self, Choice, Setting};
use crate::step::Step;
use crate::tools::Tools;
use crate::usage::Used;

/// The longest id of an agent's request, as JSON: it is said again in the answer.
const ID_BYTES: usize = 1_024;

/// What a send asks of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Where the agent works, absolute.
    pub work_tree: String,
    /// The agent's id of the session to continue; `None` begins one.
    pub continues: Option<String>,
    /// The method to authenticate with; `None` is not to.
    pub auth_method: Option<String>,
    /// The mode to be in; `None` is the agent's own.
    pub mode: Option<String>,
    /// The model to use; `None` is the agent's own.
    pub model: Option<String>,
    /// What stands before the first prompt of a session; may be empty.
    pub system_prompt: String,
    /// The prompt.
    pub prompt: String,
}

/// One send's exchange.
#[derive(Debug)]
pub struct AcpDialect {
    /// `None` only asks who the agent is.
    plan: Option<Plan>,
    /// How long a request before the prompt may take.
    patience: Duration,
    greeting: Greeting,
    session_id: Option<String>,
    /// The last request of jig's.
    step: Step,
    /// Its id; ids begin at 1.
    id: u64,
    /// Whether it still waits for its answer.
    open: bool,
    choices: VecDeque<Choice>,
    /// Requests of the agent's.
    asked: u32,
    answer: Answer,
    tools: Tools,
    used: Used,
    /// How it ended, once it has.
    end: Option<Result<(), Failure>>,
}

impl AcpDialect {
    /// An exchange for a prompt. `patience` is how long each request before it
    /// may take.
    #[must_use]
    pub fn new(plan: Plan, patience: Duration) -> Self {
        Self::begin_with(Some(plan), patience)
    }

    /// An exchange that ends once the agent has said who it is: the answer is
    /// its result of `initialize`, as JSON.
    #[must_use]
    pub fn greeting(patience: Duration) -> Self {
        Self::begin_with(None, patience)
    }

    fn begin_with(plan: Option<Plan>, patience: Duration) -> Self {
        Self {
            plan,
            patience,
            greeting: Greeting::default(),
            session_id: None,
            step: Step::Initialize,
            id: 0,
            open: false,
            choices: VecDeque::new(),
            asked: 0,
            answer: Answer::default(),
            tools: Tools::default(),
            used: Used::default(),
            end: None,
        }
    }

    fn message(&mut self, message: Message, heard: &mut Vec<Heard>) {
        match message {
            Message::Response { id, outcome } if self.open && id == Some(self.id) => {
                self.open = false;
                match outcome {
                    Ok(result) => self.answered(result, heard),
                    Err(error) => self.refused(&error, heard),
                }
            }
            // Late, twice, or of another conversation: it answers nothing.
            Message::Response { .. } => heard.push(log(
                "stray_response",
                "a response that answers no open request was ignored".to_owned(),
            )),
            Message::Request { id, method, params } => self.asked(&id, &method, &params, heard),
            Message::Notification { method, params } if method == "session/update" => {
                self.update(&params, heard);
            }
            Message::Notification { .. } => {}
        }
    }

    /// Sends the next request.
    fn request(&mut self, step: Step, method: &str, params: &Value, heard: &mut Vec<Heard>) {
        self.step = step;
        self.id += 1;
        self.open = true;
        heard.push(Heard::Write(message::request(self.id, method, params)));
        // The work has the phase's clocks; nothing before it may hang.
        let within = (step != Step::Prompt).then_some(self.patience);
        heard.push(Heard::Within(within));
    }

    fn answered(&mut self, result: Value, heard: &mut Vec<Heard>) {
        match self.step {
            Step::Initialize => self.greeted(&result, heard),
            Step::Authenticate => self.open_session(heard),
            Step::New => match result["sessionId"].as_str() {
                Some(id) if !id.is_empty() => {
                    self.session_id = Some(id.to_owned());
                    self.opened(&result, heard);
                }
                _ => self.fail(
                    Failure::new(
                        FailureClass::Other,
                        "the agent opened a session without an id",
                    ),
                    heard,
                ),
            },
            Step::Load | Step::Resume => match (result["sessionId"].as_str(), &self.session_id) {
                (Some(other), Some(asked)) if other != asked => {
                    let message =
                        format!("session {asked} was to be continued, but {other} answered");
                    self.fail(Failure::new(FailureClass::Discontinuity, message), heard);
                }
                _ => self.opened(&result, heard),
            },
            Step::Choose(_) => self.next(heard),
            Step::Prompt => {
                self.used.result(&result);
                let failed = classify::stopped_for(text(&result, "stopReason"));
                self.end = Some(failed.map_or(Ok(()), Err));
                finish(heard);
            }
        }
    }

    fn greeted(&mut self, result: &Value, heard: &mut Vec<Heard>) {
        self.greeting = Greeting::read(result);
        let Some(plan) = &self.plan else {
            self.answer.chunk(None, &self.greeting.said().to_string());
            self.end = Some(Ok(()));
            return finish(heard);
        };
        if !self.greeting.is_understood() {
            let theirs = &result["protocolVersion"];
            let message =
                format!("the agent speaks version {theirs} of the protocol; jig speaks {PROTOCOL}");
            let failed = Failure::new(FailureClass::UnsupportedOption, message);
            return self.fail(failed, heard);
        }
        heard.push(log("agent", self.greeting.title()));
        let Some(method) = plan.auth_method.clone() else {
            return self.open_session(heard);
        };
        if !self.greeting.auth_methods.contains(&method) {
            let offered = self.greeting.auth_methods.join(", ");
            let message =
                format!("the agent does not authenticate with {method:?}; it offers: {offered}");
            let failed = Failure::new(FailureClass::UnsupportedOption, message)
                .with_hint("set the agent's `auth_method` in runtimes.toml");
            return self.fail(failed, heard);
        }
        let params = json!({"methodId": method});
        self.request(Step::Authenticate, "authenticate", &params, heard);
    }

    fn open_session(&mut self, heard: &mut Vec<Heard>) {
        let plan = self.plan.clone().unwrap_or_default();
        let mut params = json!({"cwd": plan.work_tree, "mcpServers": []});
        let Some(id) = plan.continues else {
            return self.request(Step::New, "session/new", &params, heard);
        };
        params["sessionId"] = json!(id);
        self.session_id = Some(id);
        if self.greeting.loads {
            self.request(Step::Load, "session/load", &params, heard);
        } else if self.greeting.resumes {
            self.request(Step::Resume, "session/resume", &params, heard);
        } else {
            let message = "the agent does not say any more that it can continue a session";
            self.fail(Failure::new(FailureClass::Discontinuity, message), heard);
        }
    }

    /// A session is open: what is not as it should be is chosen first.
    fn opened(&mut self, result: &Value, heard: &mut Vec<Heard>) {
        let plan = self.plan.clone().unwrap_or_default();
        let id = self.session_id.clone().unwrap_or_default();
        let wanted = [(Setting::Mode, plan.mode), (Setting::Model, plan.model)];
        for (setting, value) in wanted {
            let Some(value) = value else { continue };
            match settings::choose(setting, &value, &id, result) {
                Ok(choice) => self.choices.extend(choice),
                Err(failed) => return self.fail(failed, heard),
            }
        }
        self.next(heard);
    }

    /// The next choice; after the last one, the prompt.
    fn next(&mut self, heard: &mut Vec<Heard>) {
        if let Some(choice) = self.choices.pop_front() {
            let step = Step::Choose(choice.setting);
            return self.request(step, choice.method, &choice.params, heard);
        }
        let plan = self.plan.clone().unwrap_or_default();
        let first = plan.continues.is_none();
        let texts = [(first, plan.system_prompt), (true, plan.prompt)];
        let blocks: Vec<Value> = texts
            .into_iter()
            .filter(|(given, text)| *given && !text.is_empty())
            .map(|(_, text)| json!({"type": "text", "text": text}))
            .collect();
        let params = json!({"sessionId": self.session_id, "prompt": blocks});
        self.request(Step::Prompt, "session/prompt", &params, heard);
    }

    fn refused(&mut self, error: &RpcError, heard: &mut Vec<Heard>) {
        let failed = classify::answered_with(&self.step, error, &self.greeting.auth_methods);
        self.fail(failed, heard);
    }

    fn fail(&mut self, failed: Failure, heard: &mut Vec<Heard>) {
        self.end = Some(Err(failed));
        finish(heard);
    }

    /// A request of the agent's.
    fn asked(&mut self, id: &Value, method: &str, params: &Value, heard: &mut Vec<Heard>) {
        self.asked += 1;
        if self.asked > limits::AGENT_REQUESTS || id.to_string().len() > ID_BYTES {
            let message = format!(
                "the agent made more than {} requests, or one whose id is longer than {ID_BYTES} bytes",
                limits::AGENT_REQUESTS
            );
            self.fail(Failure::new(FailureClass::Other, message), heard);
            // It will not notice that nobody answers any more.
            return heard.push(Heard::Within(Some(Duration::ZERO)));
        }
        if method != "session/request_permission" {
            return heard.push(Heard::Write(message::unknown_method(id)));
        }
        let ours = self.is_ours(params);
        let (answer, decision) = permission::decide(params, ours);
        heard.push(Heard::Write(message::answer(id, &answer)));
        let call = &params["toolCall"];
        heard.push(log(
            "permission",
            format!("{decision}: {}", text(call, "title")),
        ));
        if ours && self.step == Step::Prompt && self.tools.asked_for(call) {
            self.answer.tool_began();
        }
    }

    fn is_ours(&self, params: &Value) -> bool {
        params["sessionId"]
            .as_str()
            .is_some_and(|id| self.session_id.as_deref() == Some(id))
    }

    /// News of a session. Before the prompt it is what was said in earlier
    /// sends, and not the answer.
    fn update(&mut self, params: &Value, heard: &mut Vec<Heard>) {
        if !self.is_ours(params) {
            return;
        }
        let update = &params["update"];
        let kind = text(update, "sessionUpdate");
        if kind == "usage_update" {
            self.used.update(update);
        }
        if self.step != Step::Prompt {
            return;
        }
        match kind {
            "agent_message_chunk" => self.chunk(update, heard),
            // Still of an earlier prompt.
            "user_message_chunk" => self.answer.forget(),
            "tool_call" | "tool_call_update" if self.tools.update(update, heard) => {
                self.answer.tool_began();
            }
            _ => {}
        }
    }

    fn chunk(&mut self, update: &Value, heard: &mut Vec<Heard>) {
        let said = text(&update["content"], "text");
        if said.is_empty() {
            return;
        }
        // A notice of the program around the model.
        if update["_meta"]["claudeCode"]["kind"] == "informational" {
            return heard.push(log("notice", said.to_owned()));
        }
        let told = self.answer.chunk(update["messageId"].as_str(), said);
        heard.push(Heard::Event(RuntimeEvent::TextDelta { text: told }));
    }
}

impl Dialect for AcpDialect {
    fn begin(&mut self) -> Vec<Heard> {
        let mut heard = Vec::new();
        let params = json!({
            "protocolVersion": PROTOCOL,
            "clientCapabilities": {
                "fs": {"readTextFile": false, "writeTextFile": false},
                "terminal": false,
            },
            "clientInfo": {"name": "jig", "version": env!("CARGO_PKG_VERSION")},
        });
        self.request(Step::Initialize, "initialize", &params, &mut heard);
        heard
    }

    fn line(&mut self, line: &[u8]) -> Vec<Heard> {
        let mut heard = Vec::new();
        let Some(messages) = message::read(line) else {
            return vec![Heard::Event(line_stream::unparsed(line))];
        };
        for message in messages {
            // Stdin is closed; whatever comes now is no part of the answer.
            if self.end.is_some() {
                break;
            }
            self.message(message, &mut heard);
            // A long session may take its time as long as it moves.
            if self.open && self.step == Step::Load {
                heard.push(Heard::Within(Some(self.patience)));
            }
        }
        heard
    }

    fn end(&mut self, session: &mut Session, exit: Exit, stderr: &str) -> Verdict {
        let continued = self
            .plan
            .as_ref()
            .is_some_and(|plan| plan.continues.is_some());
        if !continued && let Some(id) = &self.session_id {
            session.native_id = Some(id.clone());
        }
        let Some(end) = self.end.take() else {
            let seconds = self.patience.as_secs();
            return Verdict {
                outcome: Err(classify::without_answer(&self.step, exit, seconds, stderr)),
                usage: None,
            };
        };
        Verdict {
            usage: self.used.of_send(session, continued),
            outcome: end
                .map(|()| self.answer.take())
                .map_err(|failed| match failed.class {
                    FailureClass::Other => Failure {
                        message: failure::with_stderr(&failed.message, stderr),
                        ..failed
                    },
                    _ => failed,
                }),
        }
    }
}

/// The send has its end: the agent is to go, and has a grace for that.
fn finish(heard: &mut Vec<Heard>) {
    heard.extend([
        Heard::Terminal,
        Heard::CloseInput,
        Heard::Within(Some(limits::DRAIN_GRACE)),
    ]);
}

fn log(name: &str, text: String) -> Heard {
    Heard::Event(RuntimeEvent::Log {
        log: format!("acp:{name}"),
        text,
        detail: None,
    })
}

/// A field that is a string, else nothing.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("")
}
