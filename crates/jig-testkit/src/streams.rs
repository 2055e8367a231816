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
