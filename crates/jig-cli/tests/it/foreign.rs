//! Streams that another agent wrote: a program that is called `claude` or
//! `codex` and is neither must not be taken for one that answered.

use std::fmt::Write as _;
use std::path::Path;

use jig_runtime::dialect::{Dialect, Exit, Heard};
use jig_runtime::line_stream::{Line, LineStream};
use jig_runtime::{RuntimeEvent, Session};
use jig_runtime_claude::ClaudeDialect;
use jig_runtime_codex::CodexDialect;

/// Where streams of an agent are recorded, and the beginning of their names.
const RECORDED: [(&str, &str, &str); 4] = [
    ("claude", "../jig-runtime-claude/tests/fixtures", ""),
    ("codex", "../jig-runtime-codex/tests/fixtures", ""),
    ("gemini", "tests/foreign", "gemini-"),
    ("opencode", "tests/foreign", "opencode-"),
];

fn dialects() -> [(&'static str, Box<dyn Dialect>); 2] {
    [
        ("claude", Box::new(ClaudeDialect::new(None))),
        ("codex", Box::new(CodexDialect::new(None))),
    ]
}

/// The recordings of one agent, by name.
fn recordings(folder: &str, prefix: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read(&path).unwrap())
        })
        .filter(|(name, _)| name.starts_with(prefix))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "nothing in {}", folder.display());
    found
}

/// What a dialect hears in a stream, in short.
fn heard(dialect: &mut dyn Dialect, stream: &[u8]) -> String {
    let mut lines = LineStream::default();
    let mut said = lines.push(stream);
    said.extend(lines.finish());
    let mut shown = Vec::new();
    for line in said {
        let Line::Whole(line) = line else {
            panic!("a recorded line is too long")
        };
        for heard in dialect.line(&line) {
            shown.push(match heard {
                Heard::Event(RuntimeEvent::Log { log, .. }) => log,
                Heard::Event(event) => format!("{event:?}"),
                other => format!("{other:?}"),
            });
        }
    }
    shown.join(", ")
}

#[test]
fn the_stream_of_another_agent_is_no_answer() {
    let mut shown = String::new();
    for (agent, folder, prefix) in RECORDED {
        for (name, stream) in recordings(folder, prefix) {
            for (dialect_name, mut dialect) in dialects() {
                if dialect_name == agent {
                    continue;
                }
                let heard = heard(dialect.as_mut(), &stream);
                let mut session = Session::new("s");
                let verdict = dialect.end(&mut session, Exit::Code(0), "");
                let failure = verdict.outcome.expect_err(&name);
                assert_eq!(verdict.usage, None, "{name} as {dialect_name}");
                let _ = writeln!(
                    shown,
                    "{name} as {dialect_name}: {:?}: {}\n  heard: [{heard}]",
                    failure.class, failure.message
                );
            }
        }
    }
    insta::assert_snapshot!(shown);
}
