//! What a runtime without a memory is told of the exchanges before.

use jig_protocol::{limits, text};

/// One prompt and its answer, as they were, without any earlier digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// What was asked.
    pub(crate) prompt: String,
    /// What was answered.
    pub(crate) response: String,
}

const INTRODUCTION: &str = "The session in which you worked before cannot be continued. \
This is what was said in it, oldest first:\n\n";
const RULE: &str = "\n---\n\n";
const CUT: &str = "\n[…]\n";

/// The exchanges of a role as the start of its next prompt, at most
/// [`limits::TRANSCRIPT_DIGEST_BYTES`]: the newest are kept, and the last one
/// that fits only in part is cut rather than dropped.
pub(crate) fn digest(exchanges: &[Exchange]) -> String {
    if exchanges.is_empty() {
        return String::new();
    }
    let mut room = limits::TRANSCRIPT_DIGEST_BYTES - INTRODUCTION.len() - RULE.len();
    let mut kept: Vec<String> = Vec::new();
    for exchange in exchanges.iter().rev() {
        let Some(rendered) = render(exchange, room) else {
            break;
        };
        room -= rendered.len();
        kept.push(rendered);
    }
    kept.reverse();
    format!("{INTRODUCTION}{}{RULE}", kept.concat())
}

/// One exchange in at most `room` bytes; `None` when it would say nothing.
fn render(exchange: &Exchange, room: usize) -> Option<String> {
    const ASKED: &str = "### You were asked\n\n";
    const ANSWERED: &str = "\n\n### You answered\n\n";
    const END: &str = "\n\n";
    let frame = ASKED.len() + ANSWERED.len() + END.len();
    let room = room.checked_sub(frame + 2 * CUT.len())?;
    if room < 64 {
        return None;
    }
    let whole = exchange.prompt.len() + exchange.response.len();
    let (asked, answered) = if whole <= room {
        (exchange.prompt.len(), exchange.response.len())
    } else {
        // The shorter of the two gives what it does not need to the other.
        let half = room / 2;
        let asked = exchange
            .prompt
            .len()
            .min(half.max(room.saturating_sub(exchange.response.len())));
        (asked, exchange.response.len().min(room - asked))
    };
    Some(format!(
        "{ASKED}{}{ANSWERED}{}{END}",
        ends_of(&exchange.prompt, asked),
        ends_of(&exchange.response, answered),
    ))
}

/// The start and the end of a text that does not fit whole.
fn ends_of(whole: &str, room: usize) -> String {
    if whole.len() <= room {
        return whole.to_owned();
    }
    let half = room / 2;
    format!(
        "{}{CUT}{}",
        text::head(whole, half),
        text::tail(whole, half)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(prompt: &str, response: &str) -> Exchange {
        Exchange {
            prompt: prompt.into(),
            response: response.into(),
        }
    }

    #[test]
    fn oldest_first_and_whole_where_it_fits() {
        let text = digest(&[exchange("p1", "r1"), exchange("p2", "r2")]);
        let places: Vec<_> = ["p1", "r1", "p2", "r2"]
            .iter()
            .map(|part| text.find(part).unwrap())
            .collect();
        assert!(places.is_sorted());
        assert!(text.ends_with(RULE));
        assert_eq!(digest(&[]), "");
    }

    #[test]
    fn one_oversized_exchange_is_cut_and_not_dropped() {
        let big = exchange(
            &"p".repeat(100_000),
            &format!("{}THE END", "r".repeat(100_000)),
        );
        let text = digest(&[exchange("old", "old"), big]);
        assert!(text.len() <= limits::TRANSCRIPT_DIGEST_BYTES);
        assert!(text.contains("THE END"));
        assert!(text.len() > limits::TRANSCRIPT_DIGEST_BYTES - 200);
    }

    #[test]
    fn the_newest_of_many_are_kept() {
        let many: Vec<_> = (0..100)
            .map(|n| exchange(&format!("prompt-{n:03}"), &"r".repeat(1000)))
            .collect();
        let text = digest(&many);
        assert!(text.len() <= limits::TRANSCRIPT_DIGEST_BYTES);
        assert!(text.contains("prompt-099") && text.contains("prompt-090"));
        assert!(!text.contains("prompt-010"));
    }

    proptest::proptest! {
        #[test]
        fn digests_fit_whatever_was_said(
            said in proptest::collection::vec(("\\PC{0,3000}", 0_usize..12), 0..12)
        ) {
            let exchanges: Vec<_> = said
                .iter()
                .map(|(text, times)| exchange(text, &text.repeat(*times)))
                .collect();
            let digest = digest(&exchanges);
            proptest::prop_assert!(digest.len() <= limits::TRANSCRIPT_DIGEST_BYTES);
        }
    }
}
