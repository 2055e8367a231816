//! The two streams: results to stdout, everything else to stderr.

use std::io::{self, ErrorKind, Write};
use std::sync::Mutex;
use std::sync::PoisonError;

/// The first result that could not be written.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Prints a result. A reader that has gone away is not an error of ours; any
/// other failure is remembered for [`lost`].
pub(crate) fn result(text: &str) {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert(error);
    }
}

/// Why results did not arrive, when some did not: on a full disk, say.
pub(crate) fn lost() -> Option<io::Error> {
    LOST.lock().unwrap_or_else(PoisonError::into_inner).take()
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
        .map(|c| match c {
            '\n' | '\t' => c,
            c if steers(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Whether a character moves the cursor, recolours, or changes the order in which
/// others are shown.
pub(crate) fn steers(c: char) -> bool {
    c.is_control() || jig_protocol::text::reorders(c)
}
