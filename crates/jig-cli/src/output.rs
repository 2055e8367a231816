//! The two streams: results to stdout, everything else to stderr.

use std::io::Write;

/// Prints a result. A reader that has gone away is not an error of ours.
pub(crate) fn result(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints one result line.
pub(crate) fn result_line(text: &str) {
    result(&format!("{text}\n"));
}

/// Prints one line for people.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// `text` without anything that could control a terminal, line breaks and tabs
/// aside: what agents and repositories say is printed through this.
pub(crate) fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\n' && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}
