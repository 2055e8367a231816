//! Whatever an agent writes, in whatever order.

use std::time::Duration;

use jig_protocol::limits;
use jig_protocol::outcome::FailureClass;
use jig_runtime::Session;
use jig_runtime::dialect::{Dialect, Exit, Heard};
use jig_runtime_acp::{AcpDialect, Plan};
use proptest::prelude::*;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

fn dialect(continues: Option<&str>) -> AcpDialect {
    let plan = Plan {
        work_tree: "/tree".into(),
        continues: continues.map(str::to_owned),
        prompt: "do it".into(),
        ..Plan::default()
    };
    AcpDialect::new(plan, PATIENCE)
}

fn hear(dialect: &mut AcpDialect, message: &Value) -> Vec<Heard> {
    dialect.line(&serde_json::to_vec(message).unwrap())
}

/// The messages among what was heard.
fn written(heard: &[Heard]) -> Vec<Value> {
    heard
        .iter()
        .filter_map(|heard| match heard {
            Heard::Write(bytes) => Some(serde_json::from_slice(bytes).unwrap()),
            _ => None,
        })
        .collect()
}

fn greeting() -> Value {
    json!({"id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}})
}

/// A dialect that waits for the result of its prompt, whose id is 3.
fn prompted() -> AcpDialect {
    let mut dialect = dialect(None);
    dialect.begin();
    hear(&mut dialect, &greeting());
    let heard = hear(
        &mut dialect,
        &json!({"id": 2, "result": {"sessionId": "s"}}),
    );
    assert_eq!(written(&heard)[0]["method"], "session/prompt");
    assert_eq!(written(&heard)[0]["id"], 3);
    dialect
}

fn says(text: &str) -> Value {
    update(
        "s",
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}),
    )
}

fn update(session: &str, update: Value) -> Value {
    json!({"method": "session/update", "params": {"sessionId": session, "update": update}})
}

fn answer(mut dialect: AcpDialect) -> Result<String, FailureClass> {
    let verdict = dialect.end(&mut Session::new("k"), Exit::Code(0), "");
    verdict.outcome.map_err(|failure| failure.class)
}

const DONE: &str = r#"{"id":3,"result":{"stopReason":"end_turn"}}"#;

#[test]
fn what_a_loaded_session_repeats_is_not_the_answer() {
    let mut dialect = dialect(Some("s"));
    dialect.begin();
    let heard = hear(&mut dialect, &greeting());
    assert_eq!(
        written(&heard)[0]["params"],
        json!({"sessionId": "s", "cwd": "/tree", "mcpServers": []})
    );
    // A session that is being repeated moves its time along.
    let heard = hear(&mut dialect, &says("{\"old\": 1}"));
    assert!(
        matches!(heard[..], [Heard::Within(Some(PATIENCE))]),
        "{heard:?}"
    );
    hear(&mut dialect, &json!({"id": 2, "result": {}}));
    // One that trails is known by the prompt before it.
    hear(&mut dialect, &says("{\"older\": 1}"));
    hear(
        &mut dialect,
        &update("s", json!({"sessionUpdate": "user_message_chunk"})),
    );
    hear(&mut dialect, &says("new"));
    dialect.line(DONE.as_bytes());
    assert_eq!(answer(dialect), Ok("new".to_owned()));
}

#[test]
fn only_the_open_request_is_answered_and_only_once() {
    let mut dialect = prompted();
    for stray in [
        json!({"id": 1, "result": {"stopReason": "end_turn"}}),
        json!({"id": 4, "result": {"stopReason": "end_turn"}}),
        json!({"id": "3", "result": {"stopReason": "end_turn"}}),
        json!({"id": null, "error": {"code": 1}}),
        json!({"id": 2, "result": {"sessionId": "other"}}),
    ] {
        let heard = hear(&mut dialect, &stray);
        assert!(
            matches!(&heard[..], [Heard::Event(_)]),
            "{stray} did more than a log entry: {heard:?}"
        );
    }
    hear(&mut dialect, &says("yes"));
    assert!(
        dialect
            .line(DONE.as_bytes())
            .iter()
            .any(|heard| matches!(heard, Heard::Terminal))
    );
    // Stdin is closed: no second end, no reply, no text.
    for late in [
        DONE.to_owned(),
        says("no").to_string(),
        json!({"id": 9, "method": "fs/read_text_file"}).to_string(),
        "garbage".to_owned(),
    ] {
        let heard = dialect.line(late.as_bytes());
        assert!(written(&heard).is_empty() && heard.len() <= 1, "{heard:?}");
    }
    assert_eq!(answer(dialect), Ok("yes".to_owned()));
}

#[test]
fn other_sessions_say_nothing_and_may_nothing() {
    let mut dialect = prompted();
    let chunk =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "{}"}});
    assert!(hear(&mut dialect, &update("other", chunk)).is_empty());
    let options =
        json!([{"optionId": "a", "kind": "allow_once"}, {"optionId": "r", "kind": "reject_once"}]);
    let ask = |session: &str| {
        json!({"id": 7, "method": "session/request_permission",
            "params": {"sessionId": session, "options": options, "toolCall": {"toolCallId": "t"}}})
    };
    let told = written(&hear(&mut dialect, &ask("other")));
    assert_eq!(
        told,
        [
            json!({"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "r"}}})
        ]
    );
    let told = written(&hear(&mut dialect, &ask("s")));
    assert_eq!(told[0]["result"]["outcome"]["optionId"], "a");
    dialect.line(DONE.as_bytes());
    assert_eq!(answer(dialect), Ok(String::new()));
}

#[test]
fn files_and_terminals_are_not_offered_and_not_given() {
    let mut dialect = prompted();
    for method in [
        "fs/read_text_file",
        "fs/write_text_file",
        "terminal/create",
        "x/y",
    ] {
        let request =
            json!({"id": {"odd": [1]}, "method": method, "params": {"path": "/etc/passwd"}});
        let told = written(&hear(&mut dialect, &request));
        assert_eq!(told.len(), 1);
        assert_eq!(told[0]["id"], json!({"odd": [1]}));
        assert_eq!(told[0]["error"]["code"], -32601);
        assert!(told[0].get("result").is_none());
    }
    assert!(hear(&mut dialect, &json!({"method": "_auth/status_update"})).is_empty());
}

#[test]
fn a_flood_of_requests_ends_the_send() {
    let mut dialect = prompted();
    let request = json!({"id": 0, "method": "terminal/create"});
    for _ in 0..limits::AGENT_REQUESTS {
        assert_eq!(written(&hear(&mut dialect, &request)).len(), 1);
    }
    let heard = hear(&mut dialect, &request);
    assert!(written(&heard).is_empty());
    assert!(matches!(
        heard.last(),
        Some(Heard::Within(Some(Duration::ZERO)))
    ));
    assert_eq!(answer(dialect), Err(FailureClass::Other));
}

#[test]
fn an_agent_of_another_version_or_without_a_session_is_refused() {
    for (result, class) in [
        (
            json!({"protocolVersion": 2}),
            FailureClass::UnsupportedOption,
        ),
        (json!({}), FailureClass::UnsupportedOption),
        (json!(null), FailureClass::UnsupportedOption),
    ] {
        let mut dialect = dialect(None);
        dialect.begin();
        let heard = hear(&mut dialect, &json!({"id": 1, "result": result}));
        assert!(written(&heard).is_empty());
        assert_eq!(answer(dialect), Err(class));
    }
    for result in [json!({}), json!({"sessionId": ""}), json!({"sessionId": 3})] {
        let mut dialect = dialect(None);
        dialect.begin();
        hear(&mut dialect, &greeting());
        hear(&mut dialect, &json!({"id": 2, "result": result}));
        assert_eq!(answer(dialect), Err(FailureClass::Other));
    }
    // It could continue a session, and now another one answers.
    let mut dialect = dialect(Some("s"));
    dialect.begin();
    hear(&mut dialect, &greeting());
    hear(
        &mut dialect,
        &json!({"id": 2, "result": {"sessionId": "t"}}),
    );
    assert_eq!(answer(dialect), Err(FailureClass::Discontinuity));
}

#[test]
fn an_agent_that_cannot_continue_any_more_has_lost_the_session() {
    for (capabilities, method) in [
        (
            json!({"sessionCapabilities": {"resume": {}}}),
            Some("session/resume"),
        ),
        (
            json!({"loadSession": true, "sessionCapabilities": {"resume": {}}}),
            Some("session/load"),
        ),
        (json!({"loadSession": false}), None),
    ] {
        let mut dialect = dialect(Some("s"));
        dialect.begin();
        let greeting = json!({"protocolVersion": 1, "agentCapabilities": capabilities});
        let told = written(&hear(&mut dialect, &json!({"id": 1, "result": greeting})));
        assert_eq!(
            told.first().and_then(|told| told["method"].as_str()),
            method
        );
        if method.is_none() {
            assert_eq!(answer(dialect), Err(FailureClass::Discontinuity));
        }
    }
}

/// A few messages that matter, and any others.
fn messages() -> impl Strategy<Value = Value> {
    let id = prop_oneof![
        Just(json!(1)),
        Just(json!(2)),
        Just(json!(3)),
        Just(json!("3")),
        Just(Value::Null)
    ];
    let result = prop_oneof![
        Just(greeting()["result"].clone()),
        Just(json!({"sessionId": "s", "models": {"availableModels": [{"modelId": "m"}]}})),
        Just(json!({"stopReason": "end_turn"})),
        Just(json!({"stopReason": "refusal", "usage": {"inputTokens": 1, "outputTokens": 1}})),
        Just(Value::Null),
    ];
    let method = prop_oneof![
        Just("session/update"),
        Just("session/request_permission"),
        Just("fs/read_text_file"),
        Just("x")
    ];
    let params = prop_oneof![
        Just(says("{\"a\":1}")["params"].clone()),
        Just(
            update(
                "s",
                json!({"sessionUpdate": "tool_call", "toolCallId": "t"})
            )["params"]
                .clone()
        ),
        Just(
            update(
                "s",
                json!({"sessionUpdate": "usage_update", "cost": {"amount": -1, "currency": "USD"}})
            )["params"]
                .clone()
        ),
        Just(json!([])),
    ];
    prop_oneof![
        (id.clone(), result).prop_map(|(id, result)| json!({"id": id, "result": result})),
        (id.clone(), any::<i64>())
            .prop_map(|(id, code)| json!({"id": id, "error": {"code": code}})),
        (id, method.clone(), params.clone())
            .prop_map(|(id, method, params)| json!({"id": id, "method": method, "params": params})),
        (method, params).prop_map(|(method, params)| json!({"method": method, "params": params})),
    ]
}

proptest! {
    #[test]
    fn any_exchange_ends_in_order(messages in proptest::collection::vec(messages(), 0..40), continues: bool) {
        let mut dialect = dialect(continues.then_some("s"));
        let mut asked: Vec<(u64, String)> = Vec::new();
        let mut done = false;
        let mut ends = 0;
        let note = |heard: &[Heard], asked: &mut Vec<(u64, String)>| {
            for told in written(heard) {
                assert_eq!(told["jsonrpc"], "2.0");
                if let Some(method) = told["method"].as_str() {
                    asked.push((told["id"].as_u64().unwrap(), method.to_owned()));
                }
            }
        };
        note(&dialect.begin(), &mut asked);
        for message in &messages {
            let last = asked.last().cloned();
            let answers = message.get("result").is_some() && ends == 0
                && last.is_some_and(|(id, method)| message["id"] == id && method == "session/prompt");
            done |= answers && message["result"]["stopReason"] == "end_turn";
            let heard = hear(&mut dialect, message);
            prop_assert!(ends == 0 || written(&heard).is_empty());
            ends += heard.iter().filter(|heard| matches!(heard, Heard::Terminal)).count();
            note(&heard, &mut asked);
        }
        // Ids are in order, each once, and there is one end at most.
        prop_assert!(asked.iter().map(|(id, _)| *id).eq(1..=asked.len() as u64));
        prop_assert!(ends <= 1);
        prop_assert_eq!(answer(dialect).is_ok(), done);
    }

    #[test]
    fn any_bytes_are_taken(lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..20)) {
        let mut dialect = prompted();
        for line in lines {
            dialect.line(&line);
        }
        prop_assert!(answer(dialect).is_err());
    }
}
