//! Cutting a byte stream into lines, with a bound.
//!
//! Only a line feed ends a line; what a line means is for a dialect.

use jig_protocol::{limits, text};

use crate::runtime::RuntimeEvent;

/// One line, or what is left of one that was too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line without its line feed.
    Whole(Vec<u8>),
    /// A line beyond the bound; its bytes were dropped.
    Dropped {
        /// How long it was.
        bytes: u64,
    },
}

/// Collects bytes and hands out lines.
#[derive(Debug)]
pub struct LineStream {
    held: Vec<u8>,
    /// Bytes of a line that is being dropped; 0 when none is.
    dropped: u64,
    limit: usize,
}

impl Default for LineStream {
    fn default() -> Self {
        Self::with_limit(limits::STREAM_LINE_BYTES)
    }
}

impl LineStream {
    /// A stream whose lines may have at most `limit` bytes.
    #[must_use]
    pub const fn with_limit(limit: usize) -> Self {
        Self {
            held: Vec::new(),
            dropped: 0,
            limit,
        }
    }

    /// Takes the next bytes and returns the lines that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut parts = bytes.split(|byte| *byte == b'\n');
        // The last part has no line feed yet; it is empty when bytes end in one.
        let last = parts.next_back().unwrap_or(&[]);
        for part in parts {
            self.take(part);
            lines.push(self.cut());
        }
        self.take(last);
        lines
    }

    /// The rest, when the stream ended without a line feed.
    pub fn finish(&mut self) -> Option<Line> {
        (self.dropped > 0 || !self.held.is_empty()).then(|| self.cut())
    }

    fn take(&mut self, part: &[u8]) {
        if self.dropped > 0 {
            self.dropped = self.dropped.saturating_add(part.len() as u64);
        } else if self.held.len() + part.len() > self.limit {
            self.dropped = (self.held.len() + part.len()) as u64;
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(part);
        }
    }

    fn cut(&mut self) -> Line {
        if self.dropped > 0 {
            return Line::Dropped {
                bytes: std::mem::take(&mut self.dropped),
            };
        }
        let mut line = std::mem::take(&mut self.held);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Line::Whole(line)
    }
}

/// The log entry for a line that was dropped.
#[must_use]
pub fn truncated(bytes: u64) -> RuntimeEvent {
    RuntimeEvent::Log {
        log: "line_truncated".to_owned(),
        text: format!(
            "a line of {bytes} bytes was dropped; at most {} are read",
            limits::STREAM_LINE_BYTES
        ),
        detail: None,
    }
}

/// The name of the log entry that [`unparsed`] makes.
pub const UNPARSED: &str = "unparsed_line";

/// The log entry for a line that is not of the stream's form. It holds the
/// whole line: the trace keeps [`limits::UNPARSED_LINE_BYTES`] of it, once
/// secrets are taken out.
#[must_use]
pub fn unparsed(line: &[u8]) -> RuntimeEvent {
    RuntimeEvent::Log {
        log: UNPARSED.to_owned(),
        text: text::lossy(line),
        detail: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn only_a_line_feed_ends_a_line() {
        let mut lines = LineStream::default();
        assert_eq!(
            lines.push("a\u{2028}b\r\nc".as_bytes()),
            [whole("a\u{2028}b")]
        );
        assert_eq!(lines.push(b"d\n\ne"), [whole("cd"), whole("")]);
        assert_eq!(lines.finish(), Some(whole("e")));
        assert_eq!(lines.finish(), None);
    }

    #[test]
    fn a_long_line_is_dropped_and_the_next_one_kept() {
        let mut lines = LineStream::with_limit(4);
        assert_eq!(lines.push(b"1234\n12"), [whole("1234")]);
        assert_eq!(lines.push(b"345"), []);
        assert_eq!(
            lines.push(b"6\nok\n"),
            [Line::Dropped { bytes: 6 }, whole("ok")]
        );
        assert_eq!(lines.push(b"12345"), []);
        assert_eq!(lines.finish(), Some(Line::Dropped { bytes: 5 }));
    }

    #[test]
    fn a_dropped_line_holds_no_memory() {
        let mut lines = LineStream::with_limit(8);
        for _ in 0..100 {
            lines.push(&[b'x'; 1_000]);
        }
        assert_eq!(lines.held.capacity(), 0);
        assert_eq!(lines.push(b"\n"), [Line::Dropped { bytes: 100_000 }]);
    }

    #[test]
    fn unparsed_lines_are_whole_text() {
        let line = "é".repeat(limits::UNPARSED_LINE_BYTES);
        for (line, expected) in [(line.as_bytes(), line.as_str()), (b"a\xFFb", "a\u{FFFD}b")] {
            let RuntimeEvent::Log { log, text, .. } = unparsed(line) else {
                panic!()
            };
            assert_eq!((log.as_str(), text.as_str()), (UNPARSED, expected));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_chunking_gives_the_same_lines(
            bytes in proptest::collection::vec(proptest::prop_oneof![3 => 0_u8..=255, 1 => proptest::strategy::Just(b'\n')], 0..200),
            cuts in proptest::collection::vec(0_usize..200, 0..8),
        ) {
            let mut once = LineStream::with_limit(16);
            let mut expected = once.push(&bytes);
            expected.extend(once.finish());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = LineStream::with_limit(16);
            let (mut got, mut from) = (Vec::new(), 0);
            for cut in cuts.into_iter().chain([bytes.len()]) {
                got.extend(pieces.push(&bytes[from..cut]));
                from = cut;
            }
            got.extend(pieces.finish());
            proptest::prop_assert_eq!(got, expected);
        }
    }
}
