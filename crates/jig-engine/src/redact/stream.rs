//! Streamed text, put together before it is judged.

use super::redactor::Redactor;

/// Raw bytes held back at most, the redactor's margin aside.
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
        let cut = safe_cut(redactor, self.held.as_bytes())?;
        let rest = self.held.split_off(self.held.ceil_char_boundary(cut));
        let ready = std::mem::replace(&mut self.held, rest);
        Some(text(redactor, ready))
    }

    /// Ends the message; gives back what is left of it.
    pub fn finish(&mut self, redactor: &Redactor) -> Option<String> {
        if self.held.is_empty() {
            return None;
        }
        Some(text(redactor, std::mem::take(&mut self.held)))
    }
}

fn text(redactor: &Redactor, whole: String) -> String {
    redactor
        .whole(whole.as_bytes())
        .map_or(whole, |clean| String::from_utf8_lossy(&clean).into_owned())
}

/// Where the text held so far may be cut, once it is long enough: matches that
/// begin before that place are complete, since a margin of text follows it.
pub(super) fn safe_cut(redactor: &Redactor, held: &[u8]) -> Option<usize> {
    let cut = held
        .len()
        .checked_sub(redactor.margin())
        .filter(|cut| *cut > HELD_BYTES)?;
    let spans = redactor.matches(held);
    let covering = spans
        .iter()
        .find(|(span, _)| span.start < cut && cut < span.end);
    Some(covering.map_or(cut, |(span, _)| span.end))
}
