//! What the agent said, as far as it is the answer.

use jig_protocol::{limits, text};

/// Collects the chunks of the agent's messages.
///
/// The answer is what came after the last tool call; words before it are plans
/// and remarks. All messages since then are kept, a blank line between two,
/// because agents add notices of their own: whoever reads the answer looks for
/// an object in it, not for a whole text.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Since the last tool call.
    said: String,
    /// What stood before it.
    before: String,
    /// The message of the last chunk, where the agent numbers its messages.
    message: Option<String>,
    /// Whether the next chunk continues a message.
    within: bool,
}

impl Answer {
    /// The next chunk, and the message it belongs to. Gives what is to be told,
    /// which begins with a blank line where a new message begins.
    pub(crate) fn chunk(&mut self, message: Option<&str>, chunk: &str) -> String {
        let new = self.within && self.message.as_deref() != message;
        self.message = message.map(str::to_owned);
        self.within = true;
        let told = if new {
            format!("\n\n{chunk}")
        } else {
            chunk.to_owned()
        };
        self.said.push_str(&told);
        if self.said.len() > 2 * limits::ENVELOPE_BYTES {
            self.said = text::tail(&self.said, limits::ENVELOPE_BYTES).to_owned();
        }
        told
    }

    /// A tool call began: what was said before it was not the answer, unless
    /// nothing follows.
    pub(crate) fn tool_began(&mut self) {
        self.within = false;
        if !self.said.trim().is_empty() {
            self.before = std::mem::take(&mut self.said);
        }
    }

    /// Forgets everything: what follows belongs to another prompt.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The answer.
    pub(crate) fn take(&mut self) -> String {
        let answer = std::mem::take(self);
        let said = if answer.said.trim().is_empty() {
            answer.before
        } else {
            answer.said
        };
        // What stands at the end counts, and more than this is not looked at.
        text::tail(&said, limits::ENVELOPE_BYTES).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_a_message_are_joined_and_messages_kept_apart() {
        let mut answer = Answer::default();
        assert_eq!(answer.chunk(Some("1"), "{\"a\""), "{\"a\"");
        assert_eq!(answer.chunk(Some("1"), ":1}"), ":1}");
        assert_eq!(answer.chunk(None, "**Warning"), "\n\n**Warning");
        assert_eq!(answer.chunk(None, "**"), "**");
        assert_eq!(answer.take(), "{\"a\":1}\n\n**Warning**");
    }

    #[test]
    fn what_follows_the_last_tool_call_counts() {
        let mut answer = Answer::default();
        answer.chunk(None, "I write.");
        answer.tool_began();
        answer.chunk(None, "done");
        answer.tool_began();
        answer.tool_began();
        // Nothing follows: then the last words count.
        assert_eq!(answer.take(), "done");
        answer.chunk(None, "one");
        answer.tool_began();
        assert_eq!(answer.chunk(None, "two"), "two");
        assert_eq!(answer.take(), "two");
        assert_eq!(answer.take(), "");
    }

    #[test]
    fn an_endless_answer_keeps_its_end() {
        let mut answer = Answer::default();
        for _ in 0..3 {
            answer.chunk(None, &"é".repeat(limits::ENVELOPE_BYTES / 2));
        }
        answer.chunk(None, "end");
        let said = answer.take();
        assert!(said.ends_with("end") && said.len() <= limits::ENVELOPE_BYTES);
    }
}
