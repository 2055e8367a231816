//! Streamed text, put together before it is judged.

use super::redactor::Redactor;

/// Raw text held back at most, the redactor's margin aside.
const HELD_BYTES: usize = jig_protocol::limits::AGENT_TEXT_BYTES;

/// Joins the consecutive text deltas of one message, so that a secret split
/// over two of them is found. Text comes out redacted, in pieces that were cut
/// where no secret can be.
#[derive(Debug, Default)]
pub struct TextJoiner {
    held: String,
}

impl TextJoiner {
    /// Takes one delta; gives back text once enough has gathered.
    pub fn push(&mut self, redactor: &Redactor, delta: &str) -> Option<String> {
        self.held.push_str(delta);
        if self.held.len() <= HELD_BYTES + redactor.margin() {
            return None;
        }
        let cut = self.safe_cut(redactor, HELD_BYTES);
        let rest = self.held.split_off(cut);
        let ready = std::mem::replace(&mut self.held, rest);
        Some(redactor.text(&ready).into_owned())
    }

    /// Ends the message; gives back what is left of it.
    pub fn finish(&mut self, redactor: &Redactor) -> Option<String> {
        if self.held.is_empty() {
            return None;
        }
        let ready = std::mem::take(&mut self.held);
        Some(redactor.text(&ready).into_owned())
    }

    /// A place near `wanted` that no secret covers: matches that begin before
    /// it are complete, since a margin of text follows it.
    fn safe_cut(&self, redactor: &Redactor, wanted: usize) -> usize {
        let cut = self.held.floor_char_boundary(wanted);
        let spans = redactor.matches(self.held.as_bytes());
        spans
            .iter()
            .find(|(span, _)| span.start < cut && cut < span.end)
            .map_or(cut, |(span, _)| self.held.ceil_char_boundary(span.end))
    }
}
