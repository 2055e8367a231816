//! What is kept of a stream: its end, its last line, a file with its start.
//!
//! All of these take bytes in any pieces and never hold more than their
//! bound. Cuts are on character boundaries.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A change made to a stream before anything of it is kept, such as the
/// redaction of secrets. It may hold bytes back until it has seen enough.
pub trait StreamFilter: Send {
    /// Takes the next bytes, returns what may be kept by now.
    fn push(&mut self, bytes: &[u8]) -> Vec<u8>;

    /// The stream ended: returns what was held back.
    fn finish(&mut self) -> Vec<u8>;
}

/// The end of a stream.
#[derive(Debug)]
pub struct Tail {
    kept: Vec<u8>,
    max: usize,
    seen: u64,
}

impl Tail {
    /// Keeps the last `max` bytes.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        Self {
            kept: Vec::new(),
            max,
            seen: 0,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.seen = self.seen.saturating_add(bytes.len() as u64);
        let bytes = &bytes[bytes.len().saturating_sub(self.max)..];
        self.kept.extend_from_slice(bytes);
        // Trimmed late, so that small pushes do not move the whole tail.
        if self.kept.len() > self.max.saturating_mul(2) {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let excess = self.kept.len().saturating_sub(self.max);
        self.kept.drain(..excess);
    }

    /// How many bytes came by.
    #[must_use]
    pub const fn seen(&self) -> u64 {
        self.seen
    }

    /// The end of the stream as text: starts on a character boundary, and
    /// bytes that are no UTF-8 are replaced. At most `max` bytes.
    #[must_use]
    pub fn text(&self) -> String {
        let bytes = &self.kept[self.kept.len().saturating_sub(self.max)..];
        let was_cut = self.seen > bytes.len() as u64;
        let skip = if was_cut { continuation(bytes) } else { 0 };
        let text = String::from_utf8_lossy(&bytes[skip..]).into_owned();
        // A replacement character is longer than the byte it stands for.
        let start = text.len().saturating_sub(self.max);
        text[text.ceil_char_boundary(start)..].to_owned()
    }
}

/// Bytes at the start that continue a character whose start was cut away.
fn continuation(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(3)
        .take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000)
        .count()
}

/// The last line of a stream that is not blank.
#[derive(Debug)]
pub struct LastLine {
    max: usize,
    current: Vec<u8>,
    current_blank: bool,
    current_overflow: bool,
    last: Option<Line>,
}

/// A line that was kept whole, or known to be too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// The line without its end, with bytes that are no UTF-8 replaced.
    Whole(String),
    /// It was longer than the bound; a cut line is never handed out.
    TooLong,
}

impl LastLine {
    /// Keeps lines up to `max` bytes.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        Self {
            max,
            current: Vec::new(),
            current_blank: true,
            current_overflow: false,
            last: None,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ended) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            self.extend(text);
            if ended {
                self.end_line();
            }
        }
    }

    fn extend(&mut self, text: &[u8]) {
        self.current_blank &= text.iter().all(u8::is_ascii_whitespace);
        if self.current_overflow || self.current.len() + text.len() > self.max {
            self.current_overflow = true;
            self.current.clear();
        } else {
            self.current.extend_from_slice(text);
        }
    }

    fn end_line(&mut self) {
        if !self.current_blank {
            self.last = Some(if self.current_overflow {
                Line::TooLong
            } else {
                let line = String::from_utf8_lossy(&self.current);
                Line::Whole(line.trim_end_matches('\r').to_owned())
            });
        }
        self.current.clear();
        self.current_blank = true;
        self.current_overflow = false;
    }

    /// The stream ended: the last line that was not blank, also when it has no
    /// line end.
    #[must_use]
    pub fn finish(mut self) -> Option<Line> {
        self.end_line();
        self.last
    }
}

/// The start of a stream, in a file.
#[derive(Debug)]
pub struct FileCapture {
    path: PathBuf,
    file: File,
    left: u64,
    truncated: bool,
    error: Option<io::Error>,
}

impl FileCapture {
    /// Makes a new file (0600) at `path` for at most `max` bytes.
    ///
    /// # Errors
    ///
    /// When it cannot be made; also when something is there already.
    pub fn create(path: &Path, max: usize) -> io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt;
        let file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            left: max as u64,
            truncated: false,
            error: None,
        })
    }

    /// Takes the next bytes. An error is kept for [`FileCapture::finish`], so
    /// that a full disk does not stop the reading of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        self.truncated |= room < bytes.len();
        if room == 0 || self.error.is_some() {
            return;
        }
        self.left -= room as u64;
        if let Err(error) = self.file.write_all(&bytes[..room]) {
            self.error = Some(error);
        }
    }

    /// The stream ended. Returns whether bytes were left out.
    ///
    /// # Errors
    ///
    /// The first error of writing.
    pub fn finish(self) -> io::Result<bool> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.truncated),
        }
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tail(max: usize, pieces: &[&[u8]]) -> String {
        let mut tail = Tail::new(max);
        pieces.iter().for_each(|piece| tail.push(piece));
        tail.text()
    }

    fn last(max: usize, text: &[u8], piece: usize) -> Option<Line> {
        let mut line = LastLine::new(max);
        text.chunks(piece).for_each(|piece| line.push(piece));
        line.finish()
    }

    #[test]
    fn a_tail_starts_on_a_character() {
        assert_eq!(tail(4, &["aäöü".as_bytes()]), "öü");
        assert_eq!(tail(3, &["aäöü".as_bytes()]), "ü");
        assert_eq!(tail(0, &[b"abc"]), "");
        assert_eq!(tail(8, &[b"ab", b"cd"]), "abcd");
        // Bytes that are no text at the very start of a stream are shown.
        assert_eq!(tail(8, &[b"\x80x"]), "\u{fffd}x");
    }

    #[test]
    fn the_last_line_that_is_not_blank() {
        for piece in [1, 2, 3, 100] {
            let whole = |text: &str| Some(Line::Whole(text.into()));
            assert_eq!(last(9, b"one\ntwo\n\n  \n", piece), whole("two"));
            assert_eq!(last(9, b"one\ntwo\r\n", piece), whole("two"));
            assert_eq!(last(9, b"one\nno end", piece), whole("no end"));
            assert_eq!(last(9, b" \n\t\n", piece), None);
            assert_eq!(last(3, b"12345\n \n", piece), Some(Line::TooLong));
            assert_eq!(last(3, b"12345\nok\n", piece), whole("ok"));
            // A blank line that is too long is still blank.
            assert_eq!(last(3, b"ok\n         \n", piece), whole("ok"));
        }
    }

    #[test]
    fn a_file_holds_the_start_and_is_never_an_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut file = FileCapture::create(&path, 5).unwrap();
        file.push(b"abc");
        file.push(b"defg");
        file.push(b"h");
        assert!(file.finish().unwrap(), "bytes were left out");
        assert_eq!(std::fs::read(&path).unwrap(), b"abcde");
        assert!(FileCapture::create(&path, 5).is_err());
    }

    proptest! {
        #[test]
        fn a_tail_is_bounded_and_does_not_depend_on_the_pieces(
            text in "\\PC{0,80}", max in 0_usize..40, piece in 1_usize..9,
        ) {
            let whole = tail(max, &[text.as_bytes()]);
            let pieces: Vec<_> = text.as_bytes().chunks(piece).collect();
            prop_assert_eq!(tail(max, &pieces), whole.clone());
            prop_assert!(whole.len() <= max);
            prop_assert!(text.ends_with(&whole));
        }

        #[test]
        fn any_bytes_are_bounded(bytes in proptest::collection::vec(any::<u8>(), 0..80), max in 0_usize..40) {
            prop_assert!(tail(max, &[&bytes]).len() <= max);
        }
    }
}
