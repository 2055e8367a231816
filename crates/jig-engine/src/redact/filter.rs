//! The output of a command, redacted as it comes by.

use std::sync::Arc;

use jig_process::capture::StreamFilter;

use super::redactor::Redactor;

/// Raw bytes held back at most, the redactor's margin aside.
const HELD_BYTES: usize = 32 * 1024;

/// Redacts a stream of bytes. Text comes out in pieces that were cut where no
/// secret can be, so that a secret split over two reads is found.
#[derive(Debug)]
pub struct RedactingFilter {
    redactor: Arc<Redactor>,
    held: Vec<u8>,
}

impl RedactingFilter {
    /// A filter for one stream.
    #[must_use]
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self {
            redactor,
            held: Vec::new(),
        }
    }
}

impl StreamFilter for RedactingFilter {
    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        if self.held.len() <= HELD_BYTES + self.redactor.margin() {
            return Vec::new();
        }
        // What begins before the cut is complete: a margin follows it.
        let wanted = self.held.len() - self.redactor.margin();
        let spans = self.redactor.matches(&self.held);
        let cut = spans
            .iter()
            .find(|(span, _)| span.start < wanted && wanted < span.end)
            .map_or(wanted, |(span, _)| span.end);
        let rest = self.held.split_off(cut);
        let ready = std::mem::replace(&mut self.held, rest);
        self.redactor.bytes(&ready).into_owned()
    }

    fn finish(&mut self) -> Vec<u8> {
        let ready = std::mem::take(&mut self.held);
        self.redactor.bytes(&ready).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_secret_is_found_however_the_stream_is_cut(
            before in 0_usize..70_000,
            cuts in proptest::collection::vec(1_usize..9_000, 1..12),
        ) {
            let redactor = Arc::new(Redactor::new([("TOKEN", "hunter2-and-more")]));
            let mut text = vec![b'.'; before];
            text.extend_from_slice(b"hunter2-and-more");
            text.resize(before + 40_000, b'.');
            let mut filter = RedactingFilter::new(redactor);
            let (mut out, mut at, mut cuts) = (Vec::new(), 0, cuts.into_iter().cycle());
            while at < text.len() {
                let end = (at + cuts.next().unwrap()).min(text.len());
                out.extend(filter.push(&text[at..end]));
                at = end;
            }
            out.extend(filter.finish());
            let out = String::from_utf8(out).unwrap();
            proptest::prop_assert!(!out.contains("hunter2"));
            proptest::prop_assert!(out.contains("[redacted:TOKEN]"));
            let expected = text.len() - "hunter2-and-more".len() + "[redacted:TOKEN]".len();
            proptest::prop_assert_eq!(out.len(), expected);
        }
    }
}
