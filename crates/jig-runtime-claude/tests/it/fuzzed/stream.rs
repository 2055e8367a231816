//! The translator of Claude Code's stream.

use jig_runtime::dialect::{Dialect, Exit, Heard, Verdict};
use jig_runtime::line_stream::{Line, LineStream};
use jig_runtime::{RuntimeEvent, Session};
use jig_runtime_claude::ClaudeDialect;

/// Bytes read at a time, so that a line is met in pieces.
const READ: usize = 7;

pub(crate) fn check(data: &[u8]) {
    let whole = lines(data, data.len().max(1));
    assert_eq!(lines(data, READ), whole, "how it was read changes nothing");
    for continues in [None, Some("asked")] {
        let (heard, verdict, session) = play(&whole, continues);
        let (again, same, _) = play(&whole, continues);
        assert_eq!(format!("{heard:?}"), format!("{again:?}"));
        assert_eq!(verdict, same);
        judged(&heard, &verdict);
        if let Some(asked) = continues {
            assert_eq!(session.native_id.as_deref(), Some(asked));
            let elsewhere = session_ids(&whole).is_some_and(|answered| answered != asked);
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

fn play(lines: &[Line], continues: Option<&str>) -> (Vec<Heard>, Verdict, Session) {
    let mut dialect = ClaudeDialect::new(continues.map(str::to_owned));
    let mut session = Session::new("s");
    session.native_id = continues.map(str::to_owned);
    let mut heard = Vec::new();
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

/// The last session id that a plain `result` line names, when it is the last
/// word on it.
fn session_ids(lines: &[Line]) -> Option<String> {
    let Some(Line::Whole(last)) = lines.last() else {
        return None;
    };
    let value: serde_json::Value = serde_json::from_slice(last).ok()?;
    let id = value.get("session_id")?.as_str()?;
    (value.get("type")? == "result" && !id.is_empty()).then(|| id.to_owned())
}
