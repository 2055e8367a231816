//! Lines that no version of the CLI is known to write.

use jig_protocol::outcome::FailureClass;
use jig_runtime::dialect::{Dialect, Exit, Heard};
use jig_runtime::{RuntimeEvent, Session};
use jig_runtime_claude::ClaudeDialect;
use proptest::prelude::*;
use serde_json::{Value, json};

fn end(lines: &[&str], exit: Exit, stderr: &str) -> Result<String, FailureClass> {
    end_of(ClaudeDialect::new(None), lines, exit, stderr)
}

fn end_of(
    mut dialect: ClaudeDialect,
    lines: &[&str],
    exit: Exit,
    stderr: &str,
) -> Result<String, FailureClass> {
    for line in lines {
        dialect.line(line.as_bytes());
    }
    dialect
        .end(&mut Session::new("s"), exit, stderr)
        .outcome
        .map_err(|failure| failure.class)
}

#[test]
fn a_result_outranks_the_exit_code() {
    let answer = r#"{"type":"result","subtype":"success","is_error":false,"result":"yes"}"#;
    assert_eq!(end(&[answer], Exit::Code(1), ""), Ok("yes".to_owned()));
    assert_eq!(end(&[answer], Exit::Signal(9), ""), Ok("yes".to_owned()));
    let limited = r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: Request rejected (429)","api_error_status":429}"#;
    assert_eq!(
        end(&[limited], Exit::Code(0), ""),
        Err(FailureClass::RateLimited)
    );
    assert_eq!(
        end(&[limited, answer], Exit::Code(0), ""),
        Ok("yes".to_owned()),
        "the last one counts"
    );
}

#[test]
fn errors_without_a_status_are_known_by_their_words() {
    for (result, class) in [
        (
            json!({"is_error": true, "result": "Claude AI usage limit reached|1764541315"}),
            FailureClass::RateLimited,
        ),
        (
            json!({"is_error": true, "result": "Credit balance is too low", "api_error_status": 400}),
            FailureClass::SpendCap,
        ),
        (
            json!({"is_error": true, "result": "API Error: Connection error."}),
            FailureClass::Overloaded,
        ),
        (
            json!({"is_error": true, "result": "Overloaded", "api_error_status": 529}),
            FailureClass::Overloaded,
        ),
        (
            json!({"subtype": "error_during_execution"}),
            FailureClass::Crashed,
        ),
        (
            json!({"subtype": "error_max_structured_output_retries", "is_error": true}),
            FailureClass::Other,
        ),
        (
            json!({"subtype": "error_of_a_later_version"}),
            FailureClass::Other,
        ),
        (json!({"is_error": true}), FailureClass::Other),
    ] {
        let mut line = result;
        line["type"] = "result".into();
        assert_eq!(
            end(&[&line.to_string()], Exit::Code(0), ""),
            Err(class),
            "{line}"
        );
    }
}

#[test]
fn an_error_echoed_as_a_success_is_an_error() {
    let message = r#"{"type":"assistant","error":"rate_limit","message":{"content":[{"type":"text","text":"Limit"}]}}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"Limit"}"#;
    assert_eq!(
        end(&[message, result], Exit::Code(0), ""),
        Err(FailureClass::RateLimited)
    );
}

#[test]
fn without_a_result_the_exit_and_stderr_decide() {
    for (exit, stderr, class) in [
        (Exit::Code(0), "", FailureClass::Crashed),
        (Exit::Code(0), "rate limit", FailureClass::Crashed),
        (
            Exit::Code(1),
            "Error: Session ID 1 is already in use.",
            FailureClass::Discontinuity,
        ),
        (
            Exit::Code(1),
            "No conversation found with session ID: 1",
            FailureClass::Discontinuity,
        ),
        (
            Exit::Code(1),
            "error: unknown option '--tools'",
            FailureClass::UnsupportedOption,
        ),
        (
            Exit::Code(1),
            "--dangerously-skip-permissions cannot be used with root/sudo privileges",
            FailureClass::UnsupportedOption,
        ),
        (
            Exit::Code(1),
            "Not logged in · Please run /login",
            FailureClass::Auth,
        ),
        (
            Exit::Code(1),
            "429 Too Many Requests",
            FailureClass::RateLimited,
        ),
        (Exit::Code(1), "something broke", FailureClass::Crashed),
        (Exit::Signal(11), "", FailureClass::Crashed),
        (Exit::Unknown, "unknown option", FailureClass::Crashed),
    ] {
        assert_eq!(end(&[], exit, stderr), Err(class), "{exit:?} {stderr:?}");
    }
}

#[test]
fn another_session_is_a_discontinuity_and_its_total_says_nothing() {
    let mut dialect = ClaudeDialect::new(Some("asked".to_owned()));
    let mut session = Session::new("s");
    session.native_id = Some("asked".to_owned());
    dialect.line(br#"{"type":"result","session_id":"other","result":"yes","total_cost_usd":5,"usage":{"input_tokens":1,"output_tokens":2}}"#);
    let verdict = dialect.end(&mut session, Exit::Code(0), "");
    let failure = verdict.outcome.unwrap_err();
    assert_eq!(failure.class, FailureClass::Discontinuity);
    assert!(failure.message.contains("asked") && failure.message.contains("other"));
    assert_eq!(verdict.usage.unwrap().cost_usd, None);
    assert_eq!(session.native_id.as_deref(), Some("asked"));

    let same = end_of(
        ClaudeDialect::new(Some("asked".to_owned())),
        &[r#"{"type":"result","session_id":"asked","result":"yes"}"#],
        Exit::Code(0),
        "",
    );
    assert_eq!(same, Ok("yes".to_owned()));
}

#[test]
fn costs_that_make_no_sense_are_unknown() {
    for (total, since, expected) in [
        (json!(0.5), json!(null), Some(0.5)),
        (json!(-1), json!(null), None),
        (json!("much"), json!(null), None),
        (
            json!(null),
            json!({"m": {"costUSD": 0.25}, "n": {"costUSD": 0.5}}),
            Some(0.75),
        ),
        (json!(0.5), json!({"m": {}}), Some(0.5)),
        (json!(null), json!({"m": {"costUSD": -0.25}}), None),
    ] {
        let line = json!({"type": "result", "result": "", "total_cost_usd": total,
            "model_usage_since_last_result": since, "usage": {}});
        let mut dialect = ClaudeDialect::new(None);
        dialect.line(line.to_string().as_bytes());
        let verdict = dialect.end(&mut Session::new("s"), Exit::Code(0), "");
        assert_eq!(verdict.usage.unwrap().cost_usd, expected, "{line}");
    }
}

#[test]
fn banners_arrays_and_broken_text_do_not_lose_the_result() {
    let mut dialect = ClaudeDialect::new(None);
    let banner = dialect.line(b"warning: a banner");
    assert!(
        matches!(&banner[..], [Heard::Event(RuntimeEvent::Log { log, .. })] if log == "unparsed_line")
    );
    assert!(dialect.line(b"   ").is_empty());
    let mut array =
        br#"[{"type":"system","subtype":"init","session_id":"11111111-1111-4111-8111-111111111111"},{"type":"result","result":"\ud83d"#
            .to_vec();
    array.extend(b"\xff");
    array.extend(br#""}]"#);
    dialect.line(&array);
    let mut session = Session::new("s");
    let verdict = dialect.end(&mut session, Exit::Code(0), "");
    // Half a character as an escape, and a byte that is none.
    assert_eq!(verdict.outcome, Ok("\u{FFFD}\u{FFFD}".to_owned()));
    let id = "11111111-1111-4111-8111-111111111111";
    assert_eq!(session.native_id.as_deref(), Some(id));

    let mut odd = ClaudeDialect::new(None);
    odd.line(br#"{"type":"result","session_id":"--help","result":"yes"}"#);
    let mut session = Session::new("s");
    let failure = odd
        .end(&mut session, Exit::Code(0), "")
        .outcome
        .unwrap_err();
    assert_eq!(failure.class, FailureClass::Discontinuity);
    assert_eq!(session.native_id, None);
}

#[test]
fn parts_of_a_message_replace_the_whole_and_other_conversations_stay_out() {
    let mut dialect = ClaudeDialect::new(None);
    let mut heard = Vec::new();
    for line in [
        r#"{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"message_start","message":{"id":"m"}}}"#,
        r#"{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"he"}}}"#,
        r#"{"type":"stream_event","parent_tool_use_id":"t","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"XX"}}}"#,
        r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"llo"}}}"#,
        r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}}"#,
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"hello"}]}}"#,
        r#"{"type":"assistant","parent_tool_use_id":"t","message":{"id":"m2","content":[{"type":"text","text":"sub"}]}}"#,
    ] {
        for one in dialect.line(line.as_bytes()) {
            if let Heard::Event(event) = one {
                heard.push(event);
            }
        }
    }
    let delta = |text: &str| RuntimeEvent::TextDelta {
        text: text.to_owned(),
    };
    assert_eq!(
        heard,
        [
            delta("he"),
            delta("llo"),
            RuntimeEvent::Text {
                text: "sub".to_owned()
            }
        ]
    );
}

/// JSON of the stream's own field names with values of any kind.
fn stream_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "system",
            "assistant",
            "user",
            "result",
            "stream_event",
            "init",
            "api_retry",
            "success",
            "error_max_turns",
            "text",
            "tool_use",
            "tool_result",
            "text_delta",
            "message_start",
            "content_block_delta",
            "message_delta",
        ])
        .prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "type",
        "subtype",
        "message",
        "content",
        "id",
        "usage",
        "session_id",
        "event",
        "delta",
        "text",
        "name",
        "input",
        "tool_use_id",
        "error",
        "errors",
        "result",
        "is_error",
        "total_cost_usd",
        "model_usage_since_last_result",
        "costUSD",
        "input_tokens",
        "api_error_status",
        "retry_delay_ms",
        "error_status",
        "parent_tool_use_id",
        "structured_output",
        "stop_reason",
        "is_api_error_message",
    ]);
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..6).prop_map(|map| {
                map.into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_survived(values in prop::collection::vec(stream_value(), 0..8), cut in 0_usize..400) {
        let mut dialect = ClaudeDialect::new(Some("asked".to_owned()));
        for value in &values {
            let line = value.to_string();
            dialect.line(line.as_bytes());
            dialect.line(&line.as_bytes()[..cut.min(line.len())]);
        }
        let verdict = dialect.end(&mut Session::new("s"), Exit::Code(0), "");
        if let Some(cost) = verdict.usage.and_then(|usage| usage.cost_usd) {
            prop_assert!(cost >= 0.0 && cost.is_finite());
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut dialect = ClaudeDialect::new(None);
        dialect.line(&bytes);
        prop_assert!(dialect.end(&mut Session::new("s"), Exit::Code(0), "").outcome.is_err());
    }

    #[test]
    fn deep_nesting_is_a_line_like_any_other(depth in 1_usize..5_000) {
        let line = "[".repeat(depth);
        let mut dialect = ClaudeDialect::new(None);
        let heard = dialect.line(line.as_bytes());
        prop_assert_eq!(heard.len(), 1);
        let closed = format!("{line}{}", "]".repeat(depth));
        dialect.line(closed.as_bytes());
    }
}
