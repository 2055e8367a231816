//! Recorded streams, played to a dialect and written down.

use std::fmt::Write as _;

use jig_runtime::RuntimeEvent;
use jig_runtime::dialect::{Dialect, Heard};
use jig_runtime::line_stream::{Line, LineStream};

/// What a dialect makes of a stream, one meaning per line of text.
///
/// # Panics
///
/// When a line is longer than one may be.
pub fn play(dialect: &mut dyn Dialect, stream: &[u8]) -> String {
    let mut lines = LineStream::default();
    let mut whole = lines.push(stream);
    whole.extend(lines.finish());
    let mut text = String::new();
    for line in whole {
        let Line::Whole(line) = line else {
            panic!("a line of the recording is too long")
        };
        for heard in dialect.line(&line) {
            let _ = writeln!(text, "{}", show(&heard));
        }
    }
    text
}

fn show(heard: &Heard) -> String {
    match heard {
        Heard::Event(RuntimeEvent::ToolCall { tool, input }) => format!("tool {tool} {input}"),
        Heard::Event(RuntimeEvent::Text { text }) => format!("text {text:?}"),
        Heard::Event(RuntimeEvent::TextDelta { text }) => format!("delta {text:?}"),
        Heard::Event(RuntimeEvent::Log { log, text, detail }) => {
            let names: Vec<_> = detail
                .iter()
                .filter_map(|detail| detail.as_object())
                .flat_map(|detail| detail.keys().map(String::as_str))
                .collect();
            format!("log {log} {text:?} {}", names.join(","))
        }
        Heard::Event(RuntimeEvent::Retrying { class, wait }) => {
            format!("retrying {} {wait:?}", class.as_str())
        }
        other => format!("{other:?}"),
    }
}

/// The regular files below a directory that hold these bytes.
///
/// # Panics
///
/// When something cannot be read.
#[must_use]
pub fn files_with(dir: &std::path::Path, wanted: &[u8]) -> Vec<std::path::PathBuf> {
    let must = |error: std::io::Error| panic!("{}: {error}", dir.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap_or_else(must) {
        let path = entry.unwrap_or_else(|error| panic!("{error}")).path();
        let meta = path
            .symlink_metadata()
            .unwrap_or_else(|error| panic!("{error}"));
        if meta.is_dir() {
            found.extend(files_with(&path, wanted));
        } else if meta.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{error}"));
            if bytes.windows(wanted.len()).any(|part| part == wanted) {
                found.push(path);
            }
        }
    }
    found
}
