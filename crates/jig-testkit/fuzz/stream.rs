//! What holds for the stream of any agent; included by the crates whose dialects
//! the targets check.

use jig_runtime::dialect::{Dialect, Exit, Heard, Verdict};
use jig_runtime::line_stream::{Line, LineStream};
use jig_runtime::{RuntimeEvent, Session};

/// Bytes read at a time, so that a line is met in pieces.
const READ: usize = 7;

/// The id of the conversation that a send continues.
const ASKED: &str = "asked";

/// Checks what a dialect makes of `data`, as a first send and as one that
/// continues a conversation. `answered` is the id that the last line names as
/// the one that answered, where it does.
pub(crate) fn check<D: Dialect>(
    data: &[u8],
    make: impl Fn(Option<String>) -> D,
    answered: fn(&serde_json::Value) -> Option<&str>,
) {
    let whole = lines(data, data.len().max(1));
    assert_eq!(lines(data, READ), whole, "how it was read changes nothing");
    for continues in [None, Some(ASKED)] {
        let begin = || make(continues.map(str::to_owned));
        let (heard, verdict, session) = play(&whole, begin(), continues);
        let (again, same, _) = play(&whole, begin(), continues);
        assert_eq!(format!("{heard:?}"), format!("{again:?}"));
        assert_eq!(verdict, same);
        judged(&heard, &verdict);
        if continues.is_some() {
            assert_eq!(session.native_id.as_deref(), continues);
            let elsewhere = last(&whole).is_some_and(|last| {
                answered(&last).is_some_and(|answered| !answered.is_empty() && answered != ASKED)
            });
            assert!(!elsewhere || verdict.outcome.is_err(), "another session");
        }
    }
}

fn lines(data: &[u8], at_a_time: usize) -> Vec<Line> {
    let mut stream = LineStream::with_limit(64 * 1024);
    let mut lines = Vec::new();
    for part in data.chunks(at_a_time) {
        lines.extend(stream.push(part));
    }
    lines.extend(stream.finish());
    lines
}

fn play<D: Dialect>(
    lines: &[Line],
    mut dialect: D,
    continues: Option<&str>,
) -> (Vec<Heard>, Verdict, Session) {
    let mut session = Session::new("s");
    session.native_id = continues.map(str::to_owned);
    let mut heard = dialect.begin();
    for line in lines {
        if let Line::Whole(line) = line {
            heard.extend(dialect.line(line));
        }
    }
    let verdict = dialect.end(&mut session, Exit::Code(0), "");
    (heard, verdict, session)
}

/// No answer without a result, no figure that makes no sense, and nothing that
/// is empty where something is said.
fn judged(heard: &[Heard], verdict: &Verdict) {
    let ended = heard.iter().any(|one| matches!(one, Heard::Terminal));
    assert!(ended || verdict.outcome.is_err(), "an answer from nowhere");
    if let Err(failure) = &verdict.outcome {
        assert!(!failure.message.is_empty());
    }
    if let Some(cost) = verdict.usage.and_then(|usage| usage.cost_usd) {
        assert!(cost >= 0.0 && cost.is_finite(), "{cost}");
    }
    for one in heard {
        if let Heard::Event(RuntimeEvent::Text { text } | RuntimeEvent::TextDelta { text }) = one {
            assert!(!text.is_empty());
        }
    }
}

/// The last line, when it is JSON.
fn last(lines: &[Line]) -> Option<serde_json::Value> {
    match lines.last()? {
        Line::Whole(last) => serde_json::from_slice(last).ok(),
        Line::Dropped { .. } => None,
    }
}
