//! Finding and validating envelopes.

use std::time::Instant;

use jig_protocol::envelope::{Envelope, EnvelopeStatus};
use jig_protocol::limits::ENVELOPE_BYTES;
use jig_protocol::predicate::Fields;
use serde_json::{Value, json};

/// The summary of the envelope found in a text.
fn summary(text: &str) -> Result<String, String> {
    Envelope::extract(text)
        .map(|envelope| envelope.summary)
        .map_err(|error| error.to_string())
}

#[test]
fn found_in_whatever_stands_around_it() {
    let object = r#"{"status":"success","summary":"it"}"#;
    for text in [
        object.to_owned(),
        format!("\n\n  {object}\n"),
        format!("Here you are:\n```json\n{object}\n```\nBye."),
        format!("```\n{object}\n```"),
        format!("```json\n{{\"not\": \"it\"}}\n```\nand\n```json\n{object}\n```"),
        format!("Use {{curly}} braces. {object}"),
        format!("fn main() {{ let a = b'{{'; }}\n}}\n{object}"),
        format!("{{ unclosed in prose\n{object}"),
        format!("a \"quote that never ends {object}"),
        format!("{object} trailing }} brace"),
        format!("{object} and then {{ an open one"),
        format!("\u{feff}{object}"),
        format!("é{object}é"),
        format!("{{}} {object} {{}}"),
        format!(r#"{{"status":"success","summary":"an example"}} {object}"#),
        format!(r#"{object} {{"status":"maybe"}}"#),
        r#"{"summary":"it","x":"} { \" \\","status":"success"}"#.to_owned(),
    ] {
        assert_eq!(summary(&text), Ok("it".to_owned()), "{text}");
    }
}

#[test]
fn a_quotation_inside_another_object_is_never_the_answer() {
    let inner = r#"{"status":"success","summary":"quoted"}"#;
    for text in [
        format!(r#"{{"status":"fail","summary":"it","last":{inner}}}"#),
        format!(r#"{{"status":"fail","summary":"it","last":[{inner}]}}"#),
    ] {
        assert_eq!(summary(&text), Ok("it".to_owned()), "{text}");
    }
    for text in [
        // A raw line break, a trailing comma, single quotes, bare keys: broken outside.
        format!("{{\"status\":\"fail\",\"a\":\"x\ny\",\"last\":{inner}}}"),
        format!(r#"{{"last":{inner},}}"#),
        format!("{{'status':'fail','last':{inner}}}"),
        format!("{{status: fail, last: {inner}}}"),
        format!(r#"[{inner}"#).replace('[', "{\"a\":["),
        // Cut off.
        format!(r#"{{"status":"fail","last":{inner}"#),
        format!(r#"{{"status":"fail","last":[{inner},"#),
        format!("{{status: fail, last: {inner}"),
    ] {
        assert!(summary(&text).is_err(), "{text}");
    }
}

#[test]
fn errors_name_the_field() {
    for (text, error) in [
        ("", "no JSON object was found"),
        ("no braces here", "no JSON object was found"),
        ("[1, 2]", "no JSON object was found"),
        (
            "{}",
            "the field `status` is missing; it must be \"success\" or \"fail\"",
        ),
        (
            r#"{"status": null}"#,
            "the field `status` must be a string, not null",
        ),
        (
            r#"{"status": true}"#,
            "the field `status` must be a string, not a boolean",
        ),
        (
            r#"{"status": "Success"}"#,
            "the field `status` must be \"success\" or \"fail\", not \"Success\"",
        ),
        (
            r#"{"status": "success", "summary": null}"#,
            "the field `summary` must be a string, not null",
        ),
        (
            r#"{"status": "success", "notes_for_next_agent": []}"#,
            "the field `notes_for_next_agent` must be a string, not a list",
        ),
        (
            r#"{"status": "success", "artifacts": null}"#,
            "the field `artifacts` must be a list of strings, not null",
        ),
        (
            r#"{"status": "success", "artifacts": "a"}"#,
            "the field `artifacts` must be a list of strings, not a string",
        ),
        (
            r#"{"status": "success", "artifacts": ["a", 1]}"#,
            "the field `artifacts` must be a list of strings; entry 2 is a number",
        ),
        (
            r#"{"status": "success", "summary": "cut"#,
            "the last JSON object is not closed; the answer may have been cut off",
        ),
        // An example given before an answer that was cut off is not the answer.
        (
            r#"Like {"status": "success"}: {"status": "fail", "summary": "cut"#,
            "the last JSON object is not closed; the answer may have been cut off",
        ),
    ] {
        assert_eq!(summary(text), Err(error.to_owned()), "{text}");
    }
    let broken = summary(r#"{"status": "success",}"#).unwrap_err();
    assert!(
        broken.starts_with("invalid JSON: trailing comma"),
        "{broken}"
    );
}

#[test]
fn the_error_is_of_the_last_object() {
    let text = r#"{"status": 1} {"status": "success", "artifacts": {}}"#;
    let error = summary(text).unwrap_err();
    assert!(error.contains("`artifacts`"), "{error}");
}

#[test]
fn everything_rides_along_as_written() {
    let text = r#"{ "n": 1.10, "big": 9007199254740993, "n2": 1, "status": "success", "artifacts": ["a"], "notes_for_next_agent": "é" }"#;
    let envelope = Envelope::extract(text).unwrap();
    assert_eq!(envelope.raw.get(), text);
    assert_eq!(envelope.status, EnvelopeStatus::Success);
    assert_eq!(envelope.artifacts, Some(vec!["a".to_owned()]));
    assert_eq!(envelope.notes_for_next_agent, "é");
    assert_eq!(
        envelope.field("big"),
        Some(&json!(9_007_199_254_740_993_u64))
    );
    assert_eq!(envelope.field("n2"), Some(&json!(1)));
    assert_eq!(envelope.field("absent"), None);
    let bare = Envelope::extract(r#"{"status":"fail"}"#).unwrap();
    assert_eq!((bare.summary.as_str(), bare.artifacts), ("", None));
}

#[test]
fn depth_and_size_have_limits() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
        format!(r#"{{"status":"success","a":{open}{close}}}"#)
    };
    assert!(Envelope::extract(&nested(64)).is_ok());
    let error = summary(&nested(65)).unwrap_err();
    assert!(error.contains("more than 64 deep"), "{error}");
    let brackets = format!(r#"{{"status":"success","a":"{}"}}"#, "[{".repeat(500));
    assert!(
        Envelope::extract(&brackets).is_ok(),
        "brackets in strings nest nothing"
    );

    let filled = |size: usize| {
        let frame = r#"{"status":"success","summary":""}"#.len();
        format!(
            r#"{{"status":"success","summary":"{}"}}"#,
            "x".repeat(size - frame)
        )
    };
    assert!(Envelope::extract(&filled(ENVELOPE_BYTES)).is_ok());
    let error = summary(&filled(ENVELOPE_BYTES + 1)).unwrap_err();
    assert!(error.contains("at most 1048576"), "{error}");
}

#[test]
fn a_code_phase_gets_its_typed_view() {
    let report = |value: Value| {
        let mut fields = Fields::new();
        fields.insert("artifacts".to_owned(), value);
        fields.insert("risk".to_owned(), json!("low"));
        fields.insert("status".to_owned(), json!(7));
        Envelope::from_fields(EnvelopeStatus::Fail, "exit 1", fields)
    };
    let good = report(json!(["a"]));
    assert_eq!(good.artifacts, Some(vec!["a".to_owned()]));
    assert_eq!(good.field("status"), Some(&json!("fail")));
    assert_eq!(good.field("risk"), Some(&json!("low")));
    let read: Value = serde_json::from_str(good.raw.get()).unwrap();
    assert_eq!(read["summary"], "exit 1");
    let odd = report(json!("a"));
    assert_eq!(odd.artifacts, None);
    assert_eq!(odd.field("artifacts"), Some(&json!("a")));
}

/// Texts made to be slow: each is a mebibyte. A quadratic search would take
/// hours over them, so ending at all is the assertion.
#[test]
fn hostile_texts_end_soon() {
    let fill = |part: &str| part.repeat(ENVELOPE_BYTES / part.len());
    let begun = Instant::now();
    for part in [
        "{",
        "{ ",
        "{\"",
        "{\"a\":",
        "{\"a\":[",
        "}{",
        "{}",
        "\"",
        "\\",
        "{\\",
        "[{",
        "{a",
        "{ x }",
        "{\"a\":\"{\",",
        "{\"{\":\":1,\"",
        "{'",
    ] {
        assert!(Envelope::extract(&fill(part)).is_err(), "{part}");
    }
    // Not a measurement: minutes of slack for a machine that does much else.
    assert!(begun.elapsed().as_secs() < 300);
}

proptest::proptest! {
    #[test]
    fn what_was_put_in_comes_out(before in "[^{}]{0,40}", after in "[^{]{0,40}", text in "\\PC{0,40}") {
        let object = json!({"status": "success", "summary": text, "x": {"y": [text, null]}});
        let found = Envelope::extract(&format!("{before}{object}{after}")).unwrap();
        proptest::prop_assert_eq!(Value::Object(found.fields), object);
    }

    #[test]
    fn no_text_panics(text in "[{}\\[\\]\",:\\\\a1é \n]{0,80}") {
        let _ = Envelope::extract(&text);
    }

    #[test]
    fn what_is_accepted_is_a_valid_object_of_the_text(text in "(\\{\"status\":\"(success|fail)\"\\}|[{}\", a])*") {
        if let Ok(envelope) = Envelope::extract(&text) {
            proptest::prop_assert!(text.contains(envelope.raw.get()));
            let again = Envelope::from_json(envelope.raw.get()).unwrap();
            proptest::prop_assert_eq!(again.fields, envelope.fields);
        }
    }
}

#[test]
fn a_field_that_is_there_twice_is_no_answer() {
    for text in [
        r#"{"status":"fail","status":"success","summary":"s"}"#,
        r#"{"status":"success","approved":false,"approved":true}"#,
        // The same name in another spelling.
        r#"{"status":"fail","st\u0061tus":"success"}"#,
    ] {
        let error = Envelope::extract(text).unwrap_err();
        assert!(error.0.contains("is there twice"), "{error}");
    }
    // One name at two levels is two fields.
    assert!(Envelope::extract(r#"{"status":"success","inner":{"status":"fail"}}"#).is_ok());
}
