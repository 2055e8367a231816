//! Recorded exchanges with real agents, replayed as sends.
//!
//! A recording is one process in which several prompts were made; jig makes one
//! per process. So every prompt becomes a send of its own: the recorded
//! handshake, the session's opening before it, and what came until its result.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_protocol::outcome::FailureClass;
use jig_runtime::dialect::{Dialect, Exit, Heard, Verdict};
use jig_runtime::{RuntimeEvent, Session};
use jig_runtime_acp::{AcpDialect, Plan};
use serde_json::Value;

/// What has to be made of each send of a recording: an answer, or a failure.
type Expected = (&'static str, &'static [Option<FailureClass>]);

/// The agent cancelled the turn, or the process ended with a loaded session
/// that nothing was asked of.
const ENDED: Option<FailureClass> = Some(FailureClass::Crashed);
const LOST: Option<FailureClass> = Some(FailureClass::Discontinuity);
const AUTH: Option<FailureClass> = Some(FailureClass::Auth);

const RECORDINGS: [Expected; 12] = [
    ("claude-cancel-then-401", &[ENDED, None]),
    ("claude-load-in-new-process", &[None]),
    ("claude-two-prompts-load", &[None, None, ENDED]),
    ("codex-cancel-then-401", &[ENDED, None]),
    ("codex-load-in-new-process", &[None]),
    ("codex-two-prompts-load", &[None, None, ENDED]),
    ("gemini-cancel-then-401", &[ENDED, AUTH]),
    ("gemini-load-in-new-process", &[LOST]),
    ("gemini-two-prompts-load", &[None, None, LOST]),
    ("opencode-cancel-then-401", &[ENDED, AUTH]),
    ("opencode-load-in-new-process", &[None]),
    ("opencode-two-prompts-load", &[None, None, ENDED]),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// What an agent said: the answer to a request, by its method, or anything else.
#[derive(Debug, Clone)]
enum Said {
    Response(String, Value),
    Else(Value),
}

/// One send of a recording.
#[derive(Debug, Clone, Default)]
struct Sent {
    said: Vec<Said>,
    continues: Option<String>,
    auth_method: Option<String>,
    /// The tree it worked in.
    cwd: String,
}

/// Takes a recording apart.
fn sends(file: &str) -> Vec<Sent> {
    let text = std::fs::read_to_string(folder().join(format!("{file}.txt"))).unwrap();
    let mut open: Vec<(Value, String)> = Vec::new();
    let (mut handshake, mut opening) = (Sent::default(), Sent::default());
    // What belongs to the step that the recording is in.
    let mut step: Vec<Said> = Vec::new();
    let mut sends = Vec::new();
    for line in text.lines() {
        let mut words = line.trim_start().splitn(3, ' ');
        let (_, Some(direction @ ("<" | ">")), Some(json)) =
            (words.next(), words.next(), words.next())
        else {
            assert!(line.starts_with("after stdin close: rc 0"), "{line}");
            continue;
        };
        let value: Value = serde_json::from_str(json).unwrap();
        if direction == ">" {
            if let (Some(id), Some(method)) = (value.get("id"), value["method"].as_str()) {
                open.push((id.clone(), method.to_owned()));
                match method {
                    "authenticate" => {
                        handshake.auth_method = text_of(&value["params"]["methodId"]);
                    }
                    "session/new" | "session/load" => {
                        opening = handshake.clone();
                        opening.continues = text_of(&value["params"]["sessionId"]);
                        opening.cwd = text_of(&value["params"]["cwd"]).unwrap();
                    }
                    _ => {}
                }
            }
            continue;
        }
        let is_response = value.get("method").is_none();
        let asked = open.iter().position(|(id, _)| *id == value["id"]);
        let Some(asked) = asked.filter(|_| is_response) else {
            step.push(Said::Else(value));
            continue;
        };
        let (_, method) = open.remove(asked);
        step.push(Said::Response(method.clone(), value));
        let step = std::mem::take(&mut step);
        match method.as_str() {
            "initialize" | "authenticate" => handshake.said.extend(step),
            "session/new" => opening.said.extend(step),
            "session/load" => {
                opening.said.extend(step);
                sends.push(opening.clone());
            }
            "session/prompt" => {
                // A load that is prompted is no send of its own.
                if opening.continues.is_some() {
                    sends.pop();
                }
                let mut sent = opening.clone();
                sent.said.extend(step);
                sends.push(sent);
            }
            other => panic!("{other}"),
        }
    }
    sends
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The requests that are waiting for the agent's answer.
#[derive(Default)]
struct Wire {
    open: Vec<(Value, String)>,
    shown: String,
}

impl Wire {
    fn take(&mut self, heard: Vec<Heard>) {
        for heard in heard {
            if let Heard::Write(bytes) = &heard {
                let message: Value = serde_json::from_slice(bytes).unwrap();
                if let Some(method) = message["method"].as_str() {
                    self.open.push((message["id"].clone(), method.to_owned()));
                }
            }
            writeln!(self.shown, "{}", show(&heard)).unwrap();
        }
    }

    /// The line of what an agent said, under the id that jig gave the request.
    fn line(&mut self, said: &Said) -> Vec<u8> {
        let value = match said {
            Said::Else(value) => value.clone(),
            Said::Response(method, value) => {
                let at = self.open.iter().position(|(_, open)| open == method);
                let at = at.unwrap_or_else(|| panic!("{method} was not asked\n{}", self.shown));
                let mut value = value.clone();
                value["id"] = self.open.remove(at).0;
                value
            }
        };
        serde_json::to_vec(&value).unwrap()
    }
}

fn dialect(sent: &Sent) -> AcpDialect {
    let plan = Plan {
        work_tree: sent.cwd.clone(),
        continues: sent.continues.clone(),
        auth_method: sent.auth_method.clone(),
        system_prompt: "You are it.".into(),
        prompt: "Do it.".into(),
        ..Plan::default()
    };
    AcpDialect::new(plan, Duration::from_secs(60))
}

fn play(sent: &Sent, session: &mut Session) -> (String, Verdict) {
    let mut dialect = dialect(sent);
    let mut wire = Wire::default();
    wire.take(dialect.begin());
    for said in &sent.said {
        let line = wire.line(said);
        wire.take(dialect.line(&line));
    }
    (wire.shown, dialect.end(session, Exit::Code(0), ""))
}

fn show(heard: &Heard) -> String {
    match heard {
        Heard::Write(bytes) => format!("> {}", String::from_utf8_lossy(bytes).trim_end()),
        Heard::Event(RuntimeEvent::ToolCall { tool, input }) => format!("tool {tool} {input}"),
        Heard::Event(RuntimeEvent::TextDelta { text }) => format!("delta {text:?}"),
        Heard::Event(RuntimeEvent::Log { log, text, .. }) => format!("log {log} {text:?}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn every_recording_is_expected_and_every_expectation_recorded() {
    let found: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected: BTreeSet<String> = RECORDINGS
        .iter()
        .map(|(name, _)| format!("{name}.txt"))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn recordings_are_exchanged_and_judged() {
    for (name, expected) in RECORDINGS {
        let sends = sends(name);
        let mut classes = Vec::new();
        let mut shown = String::new();
        for sent in &sends {
            let mut session = Session::new("attempt-role");
            let (text, verdict) = play(sent, &mut session);
            writeln!(
                shown,
                "{text}end: {verdict:#?}\nsession: {:?}\n",
                session.native_id
            )
            .unwrap();
            classes.push(verdict.outcome.err().map(|failure| failure.class));
        }
        assert_eq!(classes, expected, "{name}");
        insta::assert_snapshot!(name, shown);
    }
}

/// The answer of every recorded prompt is one JSON object; notices and remarks
/// that stand beside it are no reason to miss it.
#[test]
fn the_recorded_answers_hold_their_object() {
    let mut answers = 0;
    for (name, _) in RECORDINGS {
        for sent in sends(name) {
            if let Ok(text) = play(&sent, &mut Session::new("s")).1.outcome {
                let object = text.find('{').map(|at| text[at..].trim_end());
                assert_eq!(object, Some("{\"ok\": true}"), "{name}");
                assert!(!text.contains("I write."), "{name}: {text}");
                answers += 1;
            }
        }
    }
    assert_eq!(answers, 13, "sends with an answer");
}

#[test]
fn a_recording_that_breaks_off_never_invents_an_answer() {
    for (name, _) in RECORDINGS {
        for sent in sends(name) {
            for cut in 0..sent.said.len() {
                let mut part = sent.clone();
                part.said.truncate(cut);
                let verdict = play(&part, &mut Session::new("s")).1;
                let failed = verdict.outcome.unwrap_err();
                assert_eq!(failed.class, FailureClass::Crashed, "{name} at {cut}");
                assert!(
                    failed.message.contains("before it answered"),
                    "{name} at {cut}"
                );
                assert_eq!(verdict.usage, None, "{name} at {cut}");
            }
        }
    }
}
