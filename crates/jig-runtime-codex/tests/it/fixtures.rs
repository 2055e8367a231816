//! Recorded streams of the real CLI, each with what is made of it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use jig_protocol::outcome::FailureClass;
use jig_runtime::Session;
use jig_runtime::dialect::{Dialect, Exit};
use jig_runtime_codex::CodexDialect;
use jig_testkit::streams;

/// The thread of the recorded conversation.
const THREAD: &str = "01a22e49-ff2b-7f10-b365-ec14c353f992";

/// How the recorded process ended, and what has to be made of its stream.
/// `None`: an answer.
const RECORDINGS: &[(&str, Exit, Option<FailureClass>)] = &[
    ("apply-patch-and-reasoning", Exit::Code(0), None),
    (
        "connection-refused-bounded",
        Exit::Code(1),
        Some(FailureClass::Overloaded),
    ),
    (
        "context-length-exceeded",
        Exit::Code(1),
        Some(FailureClass::Other),
    ),
    ("error-400", Exit::Code(1), Some(FailureClass::Other)),
    ("error-401", Exit::Code(1), Some(FailureClass::Auth)),
    ("error-429", Exit::Code(1), Some(FailureClass::RateLimited)),
    (
        "error-429-insufficient-quota",
        Exit::Code(1),
        Some(FailureClass::SpendCap),
    ),
    ("error-500", Exit::Code(1), Some(FailureClass::Overloaded)),
    ("failed-command", Exit::Code(0), None),
    ("first-send-exec-tool", Exit::Code(0), None),
    ("long-tool-not-completed", Exit::Code(0), None),
    ("missing-key", Exit::Code(1), Some(FailureClass::Auth)),
    ("output-schema", Exit::Code(0), None),
    ("rate-limit-then-ok", Exit::Code(0), None),
    ("resume", Exit::Code(0), None),
    (
        "sigterm-in-tool",
        Exit::Signal(15),
        Some(FailureClass::Crashed),
    ),
    (
        "sigterm-while-waiting",
        Exit::Signal(15),
        Some(FailureClass::Crashed),
    ),
    (
        "stream-cut-always",
        Exit::Code(1),
        Some(FailureClass::Overloaded),
    ),
    ("stream-cut-then-ok", Exit::Code(0), None),
    ("workspace-write", Exit::Code(0), None),
];

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn recorded(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.jsonl"))).unwrap()
}

#[test]
fn every_recording_is_expected_and_every_expectation_recorded() {
    let found: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected: BTreeSet<String> = RECORDINGS
        .iter()
        .map(|(name, ..)| format!("{name}.jsonl"))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn recordings_are_translated_and_judged() {
    let mut wrong = String::new();
    for (name, exit, expected) in RECORDINGS {
        let continues = (*name == "resume").then(|| THREAD.to_owned());
        let mut dialect = CodexDialect::new(continues);
        let mut session = Session::new("attempt-role");
        let text = streams::play(&mut dialect, &recorded(name));
        let verdict = dialect.end(&mut session, *exit, "the end of stderr");
        let class = verdict.outcome.as_ref().err().map(|failure| failure.class);
        if class != *expected {
            writeln!(wrong, "{name}: {class:?}, expected {expected:?}").unwrap();
        }
        let id = session.native_id;
        let shown = format!("{text}end: {verdict:#?}\nsession: {id:?}\n");
        insta::assert_snapshot!(*name, shown);
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The thread's totals grow; a send has what was added.
#[test]
fn figures_of_a_thread_are_per_send() {
    let mut session = Session::new("attempt-role");
    let mut figures = Vec::new();
    for total in [(1000, 50), (2500, 90), (2500, 90), (100, 100), (150, 101)] {
        let mut dialect = CodexDialect::new(session.native_id.clone());
        let stream = format!(
            "{{\"type\":\"thread.started\",\"thread_id\":\"{THREAD}\"}}\n\
             {{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":{},\"output_tokens\":{}}}}}\n",
            total.0, total.1
        );
        streams::play(&mut dialect, stream.as_bytes());
        let usage = dialect.end(&mut session, Exit::Code(0), "").usage;
        figures.push(usage.map(|usage| (usage.input_tokens, usage.output_tokens, usage.cost_usd)));
    }
    let expected = [
        Some((1000, 50, None)),
        Some((1500, 40, None)),
        Some((0, 0, None)),
        None,
        Some((50, 1, None)),
    ];
    assert_eq!(figures, expected);
    assert_eq!(session.native_id.as_deref(), Some(THREAD));
}

/// A stream that is cut anywhere has no answer, though words were said.
#[test]
fn a_recording_cut_anywhere_never_invents_an_answer() {
    let bytes = recorded("first-send-exec-tool");
    let last = bytes.strip_suffix(b"\n").unwrap_or(&bytes).len();
    for cut in 0..last {
        let mut dialect = CodexDialect::new(None);
        streams::play(&mut dialect, &bytes[..cut]);
        let verdict = dialect.end(&mut Session::new("s"), Exit::Code(0), "");
        let class = verdict.outcome.unwrap_err().class;
        assert_eq!(class, FailureClass::Crashed, "cut at {cut}");
        assert_eq!(verdict.usage, None);
    }
}

/// Lines, events and fields that no version had when this was written.
#[test]
fn what_is_unknown_breaks_nothing() {
    let stream = r#"
warning: something
[1,2]
{"type":"thread.started","thread_id":7}
{"type":"thread.started","thread_id":"01a22e49-ff2b-7f10-b365-ec14c353f992","more":{"deep":[]}}
{"type":"galaxy.formed","size":"large"}
{"type":"item.completed","item":{"type":"hologram","id":"h"}}
{"type":"item.completed"}
{"no":"type"}
{"type":"item.completed","item":{"id":"m","type":"mcp_tool_call","server":"s","tool":"t"}}
{"type":"item.completed","item":{"id":"a","type":"agent_message","text":"first"}}
{"type":"turn.completed"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"a","type":"agent_message","text":"last","extra":null}}
{"type":"turn.completed","usage":{"input_tokens":"many"}}
"#;
    let mut dialect = CodexDialect::new(None);
    let text = streams::play(&mut dialect, stream.as_bytes());
    let mut session = Session::new("s");
    let verdict = dialect.end(&mut session, Exit::Code(1), "");
    assert_eq!(verdict.outcome.as_deref(), Ok("last"));
    assert_eq!(
        (verdict.usage, session.native_id.as_deref()),
        (None, Some(THREAD))
    );
    insta::assert_snapshot!("unknown", text);
}

#[test]
fn an_answer_in_the_strict_form_becomes_the_envelope_and_another_stays() {
    let strict = r#"{"status":"success","summary":"s","artifacts":[],"notes_for_next_agent":"","further_fields":[{"name":"approved","value":true}]}"#;
    for (said, expected) in [
        (
            strict,
            r#"{"approved":true,"artifacts":[],"notes_for_next_agent":"","status":"success","summary":"s"}"#,
        ),
        ("done, it works", "done, it works"),
    ] {
        let item = serde_json::json!({"type": "item.completed", "item":
            {"id": "1", "type": "agent_message", "text": said}});
        let stream = format!("{item}\n{{\"type\":\"turn.completed\",\"usage\":{{}}}}\n");
        let mut dialect = CodexDialect::new(None).structured(true);
        streams::play(&mut dialect, stream.as_bytes());
        let verdict = dialect.end(&mut Session::new("s"), Exit::Code(0), "");
        let answer: String = verdict.outcome.unwrap();
        let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        assert_eq!(same(&answer), same(expected));
        assert!(same(expected).is_some() || answer == expected);
    }
}

/// Starts that the CLI refuses, by what it says on stderr.
#[test]
fn starts_that_are_refused_have_their_class() {
    for (code, stderr, class) in [
        (
            1,
            "Error: thread/resume: thread/resume failed: no rollout found for thread id x (code -32600)",
            FailureClass::Discontinuity,
        ),
        (
            2,
            "error: unexpected argument '--nope' found",
            FailureClass::UnsupportedOption,
        ),
        (
            1,
            "Error: Model provider `nix` not found",
            FailureClass::UnsupportedOption,
        ),
        (
            1,
            "Error loading config.toml:\n/h/config.toml:1:5: key with no value, expected `=`",
            FailureClass::UnsupportedOption,
        ),
        (1, "thread 'main' panicked", FailureClass::Crashed),
        (101, "", FailureClass::Crashed),
    ] {
        let mut dialect = CodexDialect::new(None);
        let verdict = dialect.end(&mut Session::new("s"), Exit::Code(code), stderr);
        let failure = verdict.outcome.unwrap_err();
        assert_eq!(failure.class, class, "{stderr}");
        assert!(failure.message.contains(stderr), "{}", failure.message);
        let advised = class == FailureClass::UnsupportedOption;
        assert_eq!(failure.hint.is_some(), advised, "{stderr}");
    }
}
