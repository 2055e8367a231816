//! The two interfaces, event for event.

use jig_testkit::model::{ModelServer, Script, Step, Stop, Usage};
use serde_json::{Value, json};

use crate::http::{Answer, post};
use crate::model::{MESSAGES, RESPONSES, asked};

const USAGE: Usage = Usage {
    input: 10,
    output: 5,
    cached: 3,
    cache_creation: 2,
    reasoning: 1,
};

fn anthropic(step: Step) -> Answer {
    one(MESSAGES, &asked(""), step)
}

fn openai(step: Step) -> Answer {
    one(RESPONSES, &asked(""), step)
}

fn one(path: &str, body: &Value, step: Step) -> Answer {
    let script = Script::new().anthropic([step.clone()]).openai([step]);
    let server = ModelServer::start(script);
    let answer = post(&server, path, body);
    server.finish();
    answer
}

/// The events' types, and that the stream is as each vendor frames it.
fn types(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.head.status, 200);
    assert_eq!(
        answer.head.header("content-type"),
        Some("text/event-stream")
    );
    assert_eq!(answer.head.header("connection"), Some("close"));
    let types = answer.events().into_iter();
    types
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_stream_of_messages_has_every_block_in_its_events() {
    let answer = anthropic(
        Step::thinking("hm")
            .and_deltas(["a", "b"])
            .and_tool("Bash", json!({"command": "true"}))
            .and_tool("Read", json!({"file_path": "x"}))
            .usage(USAGE),
    );
    let block = |deltas: usize| {
        let deltas = std::iter::repeat_n("content_block_delta", deltas);
        std::iter::once("content_block_start")
            .chain(deltas)
            .chain(["content_block_stop"])
    };
    let mut expected = vec!["message_start"];
    expected.extend(block(2).chain(block(2)).chain(block(1)).chain(block(1)));
    expected.extend(["message_delta", "message_stop"]);
    assert_eq!(types(&answer), expected);
    assert!(answer.whole && answer.head.header("request-id").is_some());

    let events = answer.events();
    let message = &events[0]["message"];
    assert_eq!(
        (&message["model"], &message["role"]),
        (&json!("m-1"), &json!("assistant"))
    );
    let usage = |output: u64| {
        json!({
            "input_tokens": 10, "output_tokens": output, "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 2, "service_tier": "standard",
            "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 0},
        })
    };
    assert_eq!(message["usage"], usage(1));
    let end = &events[events.len() - 2];
    assert_eq!(end["usage"], usage(5));
    assert_eq!(end["delta"]["stop_reason"], "tool_use");

    let deltas: Vec<_> = events
        .iter()
        .filter(|it| it["type"] == "content_block_delta")
        .collect();
    assert_eq!(deltas[0]["delta"]["thinking"], "hm");
    assert_eq!(
        (&deltas[2]["delta"]["text"], &deltas[3]["delta"]["text"]),
        (&json!("a"), &json!("b"))
    );
    assert_eq!(deltas[4]["delta"]["partial_json"], r#"{"command":"true"}"#);
    let started: Vec<_> = events
        .iter()
        .filter(|it| it["type"] == "content_block_start")
        .collect();
    let (bash, read) = (&started[2]["content_block"], &started[3]["content_block"]);
    assert_eq!(
        (&bash["name"], &bash["input"]),
        (&json!("Bash"), &json!({}))
    );
    assert_ne!(bash["id"], read["id"]);
    let indexes: Vec<_> = started
        .iter()
        .map(|it| it["index"].as_u64().unwrap())
        .collect();
    assert_eq!(indexes, [0, 1, 2, 3]);
}

#[test]
fn a_plain_message_says_the_same_at_once() {
    let mut body = asked("");
    body["stream"] = false.into();
    let step = Step::text("a")
        .and_tool("Bash", json!({"command": "true"}))
        .usage(USAGE);
    let answer = one(MESSAGES, &body, step);
    assert_eq!(answer.head.header("content-type"), Some("application/json"));
    assert!(answer.head.header("content-length").is_some());
    let message = answer.json();
    assert_eq!(message["content"][0], json!({"type": "text", "text": "a"}));
    assert_eq!(message["content"][1]["input"], json!({"command": "true"}));
    assert_eq!(
        (&message["stop_reason"], &message["usage"]["output_tokens"]),
        (&json!("tool_use"), &json!(5))
    );
}

#[test]
fn a_stream_of_responses_has_every_item_in_its_events() {
    let answer = openai(
        Step::thinking("hm")
            .and_deltas(["a", "b"])
            .and_tool("exec_command", json!({"cmd": "true"}))
            .and_custom_tool("apply_patch", "*** Begin")
            .usage(USAGE),
    );
    let expected = [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(
        types(&answer),
        expected.map(|name| format!("response.{name}"))
    );
    let events = answer.events();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    let done: Vec<_> = events
        .iter()
        .filter(|it| it["type"] == "response.output_item.done")
        .collect();
    let items: Vec<_> = done.iter().map(|it| it["item"].clone()).collect();
    assert_eq!(items[0]["summary"][0]["text"], "hm");
    assert_eq!(items[1]["content"][0]["text"], "ab");
    assert_eq!(items[2]["arguments"], r#"{"cmd":"true"}"#);
    assert_eq!(
        (&items[3]["type"], &items[3]["input"]),
        (&json!("custom_tool_call"), &json!("*** Begin"))
    );
    let response = &events[events.len() - 1]["response"];
    assert_eq!(
        (&response["output"], &response["status"]),
        (&items.into(), &json!("completed"))
    );
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 1}, "total_tokens": 15,
    });
    assert_eq!(response["usage"], usage);
}

#[test]
fn a_plain_response_says_the_same_at_once() {
    let mut body = asked("");
    body["stream"] = Value::Null;
    let response = one(RESPONSES, &body, Step::text("a").usage(USAGE)).json();
    assert_eq!(response["status"], "completed");
    assert_eq!(response["output"][0]["content"][0]["text"], "a");
    assert_eq!(response["usage"]["total_tokens"], 15);
}

#[test]
fn errors_have_the_vendors_own_body_and_the_scripts_headers() {
    let kinds = [
        (
            400,
            "invalid_request_error",
            "invalid_request_error",
            Value::Null,
        ),
        (
            401,
            "authentication_error",
            "invalid_request_error",
            "invalid_api_key".into(),
        ),
        (
            403,
            "permission_error",
            "invalid_request_error",
            Value::Null,
        ),
        (
            404,
            "not_found_error",
            "invalid_request_error",
            "model_not_found".into(),
        ),
        (
            429,
            "rate_limit_error",
            "tokens",
            "rate_limit_exceeded".into(),
        ),
        (500, "api_error", "server_error", Value::Null),
        (529, "overloaded_error", "server_error", Value::Null),
    ];
    for (status, anthropics, openais, code) in kinds {
        let answer = anthropic(Step::error(status));
        assert_eq!(
            (answer.head.status, &answer.json()["type"]),
            (status, &json!("error"))
        );
        assert_eq!(answer.json()["error"]["type"], anthropics);
        let answer = openai(Step::error(status));
        assert_eq!(answer.head.status, status);
        let error = &answer.json()["error"];
        assert_eq!((&error["type"], &error["code"]), (&json!(openais), &code));
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
    let step = Step::error(429)
        .message("Quota exceeded.")
        .kind("insufficient_quota")
        .code("insufficient_quota")
        .header("retry-after", "7");
    let answer = openai(step.clone());
    assert_eq!(answer.head.header("retry-after"), Some("7"));
    let expected = json!({"error": {
        "message": "Quota exceeded.", "type": "insufficient_quota", "param": null,
        "code": "insufficient_quota",
    }});
    assert_eq!(answer.json(), expected);
    let answer = anthropic(step);
    assert_eq!(answer.head.header("retry-after"), Some("7"));
    assert_eq!(answer.json()["error"]["message"], "Quota exceeded.");
    let answer = anthropic(Step::error(502).raw_body("<html>Bad gateway</html>"));
    assert_eq!(
        (answer.head.status, answer.body.as_str()),
        (502, "<html>Bad gateway</html>")
    );
}

#[test]
fn a_stream_fails_in_the_vendors_own_event() {
    let step = Step::failed("server_is_overloaded", "no room").usage(USAGE);
    let answer = openai(step.clone());
    assert_eq!(
        types(&answer),
        [
            "response.created",
            "response.in_progress",
            "response.failed"
        ]
    );
    let response = &answer.events()[2]["response"];
    assert_eq!(
        response["error"],
        json!({"code": "server_is_overloaded", "message": "no room"})
    );
    let answer = anthropic(step);
    assert_eq!(types(&answer), ["message_start", "error"]);
    let error = json!({"type": "server_is_overloaded", "message": "no room"});
    assert_eq!(answer.events()[1]["error"], error);
}

#[test]
fn an_answer_that_stops_early_says_why() {
    let last = |answer: &Answer, back: usize| {
        let mut events = answer.events();
        events.remove(events.len() - back)
    };
    let stops = [
        (Stop::MaxTokens, "max_tokens", "max_output_tokens"),
        (Stop::Refusal, "refusal", "content_filter"),
    ];
    for (stop, anthropics, openais) in stops {
        let step = Step::text("so f").stop(stop);
        assert_eq!(
            last(&anthropic(step.clone()), 2)["delta"]["stop_reason"],
            anthropics
        );
        let event = last(&openai(step), 1);
        assert_eq!(event["type"], "response.incomplete");
        assert_eq!(event["response"]["incomplete_details"]["reason"], openais);
    }
    let step = Step::empty().stop(Stop::ContextWindow);
    let reason = &last(&anthropic(step.clone()), 2)["delta"]["stop_reason"];
    assert_eq!(reason, "model_context_window_exceeded");
    let event = last(&openai(step), 1);
    assert_eq!(
        event["response"]["error"]["code"],
        "context_length_exceeded"
    );
}

#[test]
fn a_cut_stream_breaks_after_what_was_sent() {
    for (path, first) in [(MESSAGES, "message_start"), (RESPONSES, "response.created")] {
        let whole = one(path, &asked(""), Step::text("x"));
        let half = one(path, &asked(""), Step::text("x").cut());
        assert!(!half.whole);
        assert_eq!(types(&half), types(&whole)[..types(&whole).len() / 2]);
        let begun = one(path, &asked(""), Step::text("x").cut_after(1));
        assert!(!begun.whole);
        assert_eq!(types(&begun), [first]);
        let nothing = one(path, &asked(""), Step::text("x").cut_after(0));
        assert_eq!((nothing.whole, nothing.body.as_str()), (false, ""));
    }
}

#[test]
fn messages_cannot_call_a_tool_with_free_text() {
    let server =
        ModelServer::start(Script::new().anthropic([Step::custom_tool("apply_patch", "x")]));
    assert_eq!(post(&server, MESSAGES, &asked("")).head.status, 500);
    let faults = server.take_faults();
    assert!(faults[0].contains("apply_patch"), "{faults:?}");
    server.finish();
}
