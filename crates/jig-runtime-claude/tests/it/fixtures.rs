//! Recorded streams of the real CLI, each with what is made of it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use jig_protocol::outcome::FailureClass;
use jig_runtime::Session;
use jig_runtime::dialect::{Dialect, Exit};
use jig_runtime_claude::ClaudeDialect;

/// How the recorded process ended, and what has to be made of its stream.
struct Recording {
    file: &'static str,
    exit: Exit,
    /// `None`: an answer.
    class: Option<FailureClass>,
    /// The id that the send continued.
    continues: Option<&'static str>,
}

const fn recording(file: &'static str, exit: Exit, class: Option<FailureClass>) -> Recording {
    Recording {
        file,
        exit,
        class,
        continues: None,
    }
}

const RECORDINGS: &[Recording] = &[
    recording(
        "error-400-prompt-too-long",
        Exit::Code(1),
        Some(FailureClass::Other),
    ),
    recording(
        "error-401-no-retries",
        Exit::Code(1),
        Some(FailureClass::Auth),
    ),
    recording("error-403", Exit::Code(1), Some(FailureClass::Auth)),
    recording(
        "error-404-model",
        Exit::Code(1),
        Some(FailureClass::UnsupportedOption),
    ),
    recording(
        "error-429-ten-retries",
        Exit::Code(1),
        Some(FailureClass::RateLimited),
    ),
    recording("error-500-529-then-ok", Exit::Code(0), None),
    recording(
        "error-500-one-retry",
        Exit::Code(1),
        Some(FailureClass::Overloaded),
    ),
    recording("first-send-write-tool", Exit::Code(0), None),
    recording("include-partial-messages", Exit::Code(0), None),
    recording("input-stream-json-two-turns", Exit::Code(0), None),
    recording("json-schema-never-called", Exit::Code(0), None),
    recording("json-schema-ok", Exit::Code(0), None),
    recording("json-schema-repaired", Exit::Code(0), None),
    recording("max-budget", Exit::Code(1), Some(FailureClass::SpendCap)),
    recording(
        "max-tokens-empty-refusal",
        Exit::Code(1),
        Some(FailureClass::Refused),
    ),
    recording("max-turns", Exit::Code(1), Some(FailureClass::MaxTurns)),
    recording("not-logged-in", Exit::Code(1), Some(FailureClass::Auth)),
    recording("permission-denied", Exit::Code(0), None),
    recording("project-hooks", Exit::Code(0), None),
    Recording {
        continues: Some("11111111-1111-4111-8111-111111111111"),
        ..recording("resume-bash-tool", Exit::Code(0), None)
    },
    Recording {
        continues: Some("91111111-1111-4111-8111-111111111111"),
        ..recording(
            "resume-unknown-id",
            Exit::Code(1),
            Some(FailureClass::Discontinuity),
        )
    },
    recording("sigint-in-tool", Exit::Code(0), Some(FailureClass::Crashed)),
    recording(
        "sigint-while-waiting",
        Exit::Code(0),
        Some(FailureClass::Crashed),
    ),
    recording(
        "sigkill-in-tool",
        Exit::Signal(9),
        Some(FailureClass::Crashed),
    ),
    recording(
        "sigterm-in-tool",
        Exit::Code(143),
        Some(FailureClass::Crashed),
    ),
    recording(
        "sigterm-while-waiting",
        Exit::Code(143),
        Some(FailureClass::Crashed),
    ),
    recording("stream-cut-then-ok", Exit::Code(0), None),
    recording("thinking", Exit::Code(0), None),
];

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

#[test]
fn every_recording_is_expected_and_every_expectation_recorded() {
    let found: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected: BTreeSet<String> = RECORDINGS
        .iter()
        .map(|recording| format!("{}.jsonl", recording.file))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn recordings_are_translated_and_judged() {
    let mut wrong = String::new();
    for recording in RECORDINGS {
        let mut dialect = ClaudeDialect::new(recording.continues.map(str::to_owned));
        let mut session = Session::new("attempt-role");
        let text = play(&mut dialect, recording.file);
        let verdict = dialect.end(&mut session, recording.exit, "the end of stderr");
        let class = verdict.outcome.as_ref().err().map(|failure| failure.class);
        if class != recording.class {
            writeln!(
                wrong,
                "{}: {class:?}, expected {:?}",
                recording.file, recording.class
            )
            .unwrap();
        }
        let shown = format!(
            "{text}end: {verdict:#?}\nsession: {:?}\n",
            session.native_id
        );
        insta::assert_snapshot!(recording.file, shown);
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Every line's meaning, one per line of text.
fn play(dialect: &mut ClaudeDialect, file: &str) -> String {
    let bytes = std::fs::read(folder().join(format!("{file}.jsonl"))).unwrap();
    jig_testkit::streams::play(dialect, &bytes)
}

/// The two sends of one conversation that were recorded: the second one's
/// totals include the first one's.
#[test]
fn costs_of_a_conversation_are_per_send() {
    let mut session = Session::new("attempt-role");
    let mut costs = Vec::new();
    for (file, continues) in [
        ("first-send-write-tool", None),
        (
            "resume-bash-tool",
            Some("11111111-1111-4111-8111-111111111111".to_owned()),
        ),
    ] {
        let mut dialect = ClaudeDialect::new(continues);
        play(&mut dialect, file);
        let usage = dialect.end(&mut session, Exit::Code(0), "").usage.unwrap();
        costs.push((
            usage.cost_usd.unwrap(),
            usage.input_tokens,
            usage.output_tokens,
        ));
    }
    assert_eq!(costs, [(0.0075, 2100, 80), (0.0084, 2500, 50)]);
    assert_eq!(
        session.native_id.as_deref(),
        Some("11111111-1111-4111-8111-111111111111")
    );
}

/// A stream that is cut anywhere has no answer; the part before the cut is
/// still translated.
#[test]
fn a_recording_cut_anywhere_never_invents_an_answer() {
    let bytes = std::fs::read(folder().join("first-send-write-tool.jsonl")).unwrap();
    let last = bytes.strip_suffix(b"\n").unwrap_or(&bytes).len();
    for cut in (0..last).step_by(97) {
        let mut dialect = ClaudeDialect::new(None);
        jig_testkit::streams::play(&mut dialect, &bytes[..cut]);
        let verdict = dialect.end(&mut Session::new("s"), Exit::Code(0), "");
        assert_eq!(
            verdict.outcome.unwrap_err().class,
            FailureClass::Crashed,
            "cut at {cut}"
        );
        assert_eq!(verdict.usage, None);
    }
}
