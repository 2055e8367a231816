//! Which step a request takes, when it is answered, what the server keeps.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jig_testkit::model::{Gate, ModelServer, Script, Step, StepTaken, Stop, Usage, Vendor};
use serde_json::{Value, json};

use crate::http::{Exchange, begin, post};

pub(crate) const MESSAGES: &str = "/v1/messages?beta=true";
pub(crate) const RESPONSES: &str = "/v1/responses";

/// What an agent sends, of `system`; streaming.
pub(crate) fn asked(system: &str) -> Value {
    json!({
        "model": "m-1",
        "stream": true,
        "system": [{"type": "text", "text": system}],
        "instructions": system,
        "tools": [{"name": "Bash"}, {"type": "web_search"}],
        "messages": [{"role": "user", "content": "Say \"it\"."}],
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say it."}]}],
    })
}

fn said(server: &ModelServer, path: &str, system: &str) -> String {
    let mut body = asked(system);
    body["stream"] = false.into();
    let answer = post(server, path, &body);
    assert_eq!(answer.head.status, 200, "{}", answer.body);
    let answer = answer.json();
    let text = match path {
        RESPONSES => &answer["output"][0]["content"][0]["text"],
        _ => &answer["content"][0]["text"],
    };
    text.as_str().unwrap().to_owned()
}

/// The message of the panic that `act` ends with.
fn panic_of(act: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

#[test]
fn each_vendor_and_each_marked_role_has_its_own_queue() {
    let server = ModelServer::start(
        Script::new()
            .anthropic([Step::text("a0"), Step::text("a1")])
            .openai([Step::text("o0")])
            .queue(
                "reviewer",
                |request| request.contains("You \"review\"\n"),
                [Step::text("r0"), Step::text("r1")],
            ),
    );
    let review = "Be brief. You \"review\"\nwork.";
    assert_eq!(said(&server, MESSAGES, review), "r0");
    assert_eq!(said(&server, MESSAGES, "You build."), "a0");
    assert_eq!(said(&server, RESPONSES, "You build."), "o0");
    assert_eq!(said(&server, RESPONSES, review), "r1");
    assert_eq!(server.steps_left(), 1);
    assert_eq!(said(&server, MESSAGES, "You build."), "a1");
    let taken: Vec<_> = server
        .turns()
        .into_iter()
        .map(|it| it.step.unwrap())
        .collect();
    let step = |queue: &str, index| StepTaken {
        queue: queue.to_owned(),
        index,
    };
    let expected = [
        step("reviewer", 0),
        step("anthropic", 0),
        step("openai", 0),
        step("reviewer", 1),
        step("anthropic", 1),
    ];
    assert_eq!(taken, expected);
    server.finish();
}

#[test]
fn a_repeated_step_stays() {
    let steps = [Step::text("once"), Step::text("always").repeated()];
    let server = ModelServer::start(Script::new().anthropic(steps));
    let texts: Vec<_> = (0..4).map(|_| said(&server, MESSAGES, "")).collect();
    assert_eq!(texts, ["once", "always", "always", "always"]);
    assert_eq!(server.steps_left(), 0);
    server.finish();
}

#[test]
fn a_script_that_is_used_up_answers_500_and_fails_the_test() {
    let server = ModelServer::start(Script::new().anthropic([Step::text("only")]));
    assert_eq!(said(&server, MESSAGES, ""), "only");
    let answer = post(&server, MESSAGES, &asked(""));
    assert_eq!(answer.head.status, 500);
    assert_eq!(answer.head.header("x-should-retry"), Some("false"));
    let message = answer.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.contains("the queue anthropic has no step left"),
        "{message}"
    );
    let answer = post(&server, RESPONSES, &asked(""));
    assert_eq!(answer.head.status, 500);
    assert!(
        server.requests()[1..]
            .iter()
            .all(|it| it.step.is_none() && it.status == 500)
    );
    let panic = panic_of(|| server.finish());
    assert!(
        panic.contains("/v1/messages?beta=true: the queue anthropic has no step left"),
        "{panic}"
    );
    assert!(
        panic.contains("/v1/responses: no queue takes it"),
        "{panic}"
    );
}

#[test]
fn dropping_it_is_the_same_check_unless_the_test_has_failed_already() {
    let server = ModelServer::start(Script::new());
    post(&server, MESSAGES, &asked(""));
    assert!(panic_of(|| drop(server)).contains("no queue takes it"));
    let server = ModelServer::start(Script::new());
    post(&server, MESSAGES, &asked(""));
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let _server = server;
        std::panic::panic_any("the test's own");
    }));
    assert_eq!(
        panic.unwrap_err().downcast_ref::<&str>(),
        Some(&"the test's own")
    );
}

#[test]
fn faults_that_a_test_expects_are_taken() {
    let server = ModelServer::start(Script::new());
    post(&server, MESSAGES, &asked(""));
    assert_eq!(server.take_faults().len(), 1);
    server.finish();
}

#[test]
fn a_panic_in_what_the_test_wrote_is_the_tests() {
    let script = Script::new().anthropic([
        Step::from_request(|request| panic!("{} is not m-2", request.model().unwrap())),
        Step::text("goes on"),
    ]);
    let server = ModelServer::start(script);
    assert_eq!(post(&server, MESSAGES, &asked("")).head.status, 500);
    assert_eq!(said(&server, MESSAGES, ""), "goes on");
    let panic = panic_of(|| server.finish());
    assert!(panic.contains("m-1 is not m-2"), "{panic}");
}

#[test]
fn a_step_is_computed_from_what_was_asked() {
    let step = Step::from_request(|request| {
        assert_eq!(request.tools(), ["Bash", "web_search"]);
        let text = format!("{} {}", request.system(), request.last_user_text());
        Step::text(text).usage(Usage {
            input: 7,
            ..Usage::default()
        })
    });
    let server = ModelServer::start(Script::new().anthropic([step.clone()]).openai([step]));
    assert_eq!(said(&server, MESSAGES, "S."), "S. Say \"it\".");
    assert_eq!(said(&server, RESPONSES, "S."), "S. Say it.");
    assert_eq!(server.usage_served(Vendor::Anthropic).input, 7);
    server.finish();
}

#[test]
fn the_results_of_tools_are_those_of_the_last_turn() {
    let step = || Step::from_request(|request| Step::text(request.tool_results().join("|")));
    let server = ModelServer::start(Script::new().anthropic([step()]).openai([step()]));
    let mut body = asked("");
    body["stream"] = false.into();
    let result =
        |content: Value| json!({"type": "tool_result", "tool_use_id": "t", "content": content});
    body["messages"] = json!([
        {"role": "user", "content": [result("old".into())]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]},
        {"role": "user", "content": [
            result("one".into()),
            result(json!([{"type": "text", "text": "two"}])),
            {"type": "text", "text": "go on"},
        ]},
    ]);
    let output =
        |kind: &str, output: Value| json!({"type": kind, "call_id": "c", "output": output});
    body["input"] = json!([
        output("function_call_output", "old".into()),
        {"type": "function_call", "call_id": "c", "name": "exec_command", "arguments": "{}"},
        output("function_call_output", "one".into()),
        output("custom_tool_call_output", json!([{"type": "input_text", "text": "two"}])),
    ]);
    let answer = post(&server, MESSAGES, &body).json();
    assert_eq!(answer["content"][0]["text"], "one|two");
    let answer = post(&server, RESPONSES, &body).json();
    assert_eq!(answer["output"][0]["content"][0]["text"], "one|two");
    server.finish();
}

#[test]
fn titles_and_probes_take_no_step_unless_they_shall() {
    let title = json!({"model": "m", "messages": [{"role": "user", "content": "title?"}]});
    let server = ModelServer::start(Script::new().anthropic([Step::text("step")]));
    assert_eq!(
        post(&server, MESSAGES, &title).json()["content"][0]["text"],
        "ok"
    );
    let request = &server.requests()[0];
    assert_eq!((request.status, request.step.is_none()), (200, true));
    assert_eq!(server.usage_served(Vendor::Anthropic), Usage::default());
    assert_eq!((server.steps_left(), server.turns().len()), (1, 0));
    server.finish();
    let script = Script::new()
        .anthropic([Step::text("step")])
        .steps_without_tools();
    let server = ModelServer::start(script);
    assert_eq!(
        post(&server, MESSAGES, &title).json()["content"][0]["text"],
        "step"
    );
    server.finish();
}

#[test]
fn a_gate_holds_all_of_an_answer_or_all_but_its_beginning() {
    let (late, slow) = (Gate::new(), Gate::new());
    let server = ModelServer::start(Script::new().anthropic([
        Step::text("late").after(&late),
        Step::text("slow").held(&slow),
        Step::text("meanwhile"),
    ]));
    let first = begin(&server, MESSAGES, &asked(""));
    server.wait_for_turns(1);
    let mut second = begin(&server, MESSAGES, &asked(""));
    assert_eq!(second.head().status, 200);
    assert!(second.chunk().unwrap().starts_with("event: message_start"));
    assert_eq!(said(&server, MESSAGES, ""), "meanwhile");
    // Neither of the two has been answered by now, whatever the time.
    let log = server.requests();
    assert_eq!((log[0].status, log[0].served), (0, None));
    assert_eq!((log[1].status, log[1].served), (200, None));
    slow.open();
    let mut rest = String::new();
    while let Some(chunk) = second.chunk().filter(|chunk| !chunk.is_empty()) {
        rest += &chunk;
    }
    assert!(
        rest.contains("slow") && rest.contains("message_stop"),
        "{rest}"
    );
    late.open();
    let answer = first.end();
    assert!(answer.whole && answer.body.contains("late"));
    server.finish();
}

#[test]
fn what_hangs_ends_with_the_server() {
    let server = ModelServer::start(
        Script::new()
            .anthropic([Step::hang(), Step::text("x").after(&Gate::new())])
            .openai([Step::hang()]),
    );
    let mut streams = Vec::new();
    for path in [MESSAGES, RESPONSES] {
        let mut exchange = begin(&server, path, &asked(""));
        assert_eq!(exchange.head().status, 200);
        assert!(exchange.chunk().is_some());
        streams.push(exchange);
    }
    let silent = begin(&server, MESSAGES, &asked(""));
    server.wait_for_turns(3);
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.served.is_none())
    );
    server.finish();
    for mut stream in streams {
        assert_eq!(stream.chunk(), None);
    }
    drop(silent);
}

#[test]
fn only_answers_that_were_given_whole_are_counted() {
    let usage = Usage {
        input: 10,
        output: 5,
        cached: 3,
        cache_creation: 2,
        reasoning: 1,
    };
    let server = ModelServer::start(Script::new().anthropic([
        Step::text("whole").usage(usage),
        Step::text("cut").usage(usage).cut(),
        Step::hang().usage(usage),
        Step::error(500).usage(usage),
        Step::failed("overloaded_error", "no").usage(usage),
        Step::text("whole").usage(usage).stop(Stop::Refusal),
    ]));
    for _ in 0..2 {
        post(&server, MESSAGES, &asked(""));
    }
    let hung = begin(&server, MESSAGES, &asked(""));
    server.wait_for_turns(3);
    for _ in 0..3 {
        post(&server, MESSAGES, &asked(""));
    }
    let served: Vec<_> = server.requests().iter().map(|it| it.served).collect();
    assert_eq!(served, [Some(usage), None, None, None, None, Some(usage)]);
    assert_eq!(server.usage_served(Vendor::Anthropic), usage + usage);
    assert_eq!(server.usage_served(Vendor::OpenAi), Usage::default());
    drop(hung);
    server.finish();
}

#[test]
fn the_log_shows_what_was_asked_and_no_secret() {
    let server = ModelServer::start(Script::new().anthropic([Step::text("x")]));
    let body = asked("").to_string();
    let length = format!("Content-Length: {}", body.len());
    let headers = [
        "Authorization: Bearer sk-secret",
        "X-Api-Key: sk-secret",
        "Cookie: sk-secret",
        "anthropic-version: 2023-06-01",
        &length,
    ];
    let line = format!("POST {MESSAGES}");
    Exchange::begin(&server, &line, &headers, body.as_bytes()).end();
    let request = server.requests().remove(0);
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", MESSAGES)
    );
    assert_eq!(request.body, Some(asked("")));
    assert_eq!(request.headers["anthropic-version"], "2023-06-01");
    for name in ["authorization", "x-api-key", "cookie"] {
        assert_eq!(request.headers[name], "<masked>");
    }
    assert!(!format!("{server:?}{request:?}").contains("sk-secret"));
    server.finish();
}

#[test]
fn bodies_come_in_chunks_or_at_once_and_are_refused_when_compressed() {
    let server = ModelServer::start(Script::new().anthropic([Step::text("x")]));
    let body = asked("").to_string();
    let (one, two) = body.split_at(20);
    let chunks = format!("14\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n", two.len());
    let line = format!("POST {MESSAGES}");
    let chunked = ["transfer-encoding: chunked", "accept-encoding: gzip, br"];
    let answer = Exchange::begin(&server, &line, &chunked, chunks.as_bytes()).end();
    assert_eq!(answer.head.status, 200);
    assert_eq!(server.requests()[0].body, Some(asked("")));

    let zstd = ["content-encoding: zstd", "content-length: 4"];
    let answer = Exchange::begin(&server, &line, &zstd, b"\x28\xb5\x2f\xfd").end();
    assert_eq!(answer.head.status, 415);
    assert!(answer.body.contains("zstd"), "{}", answer.body);
    let answer = Exchange::begin(&server, &line, &["content-length: 4"], b"{\"a\"").end();
    assert_eq!(answer.head.status, 400);
    let faults = server.take_faults();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(
        faults[0].contains("zstd") && faults[1].contains("not JSON"),
        "{faults:?}"
    );
    server.finish();
}

#[test]
fn what_asks_no_model_is_answered_without_a_step() {
    let server = ModelServer::start(Script::new());
    let ask = |line: &str| Exchange::begin(&server, line, &[], b"").end_of(line);
    assert_eq!(ask("HEAD /api/hello").head.status, 200);
    let models = ask("GET /v1/models?limit=1").json();
    assert!(models["data"].is_array() && models["models"].is_array());
    assert_eq!(
        post(&server, "/v1/messages/count_tokens", &asked("")).json()["input_tokens"],
        100
    );
    assert_eq!(ask("GET /elsewhere").head.status, 404);
    assert_eq!(ask("POST /api/event_logging").head.status, 404);
    let seen: Vec<_> = server
        .requests()
        .into_iter()
        .map(|it| (it.path, it.status))
        .collect();
    let expected = [
        ("/api/hello", 200),
        ("/v1/models?limit=1", 200),
        ("/v1/messages/count_tokens", 200),
        ("/elsewhere", 404),
        ("/api/event_logging", 404),
    ];
    assert_eq!(
        seen,
        expected.map(|(path, status)| (path.to_owned(), status))
    );
    server.finish();
}

#[tokio::test]
async fn a_test_with_a_runtime_waits_without_blocking_it() {
    let gate = Gate::new();
    let server = ModelServer::start(Script::new().openai([Step::text("x").after(&gate)]));
    let exchange = begin(&server, RESPONSES, &asked(""));
    server.wait_for_turns_async(1).await;
    assert_eq!(server.requests()[0].status, 0);
    gate.open();
    let answer = tokio::task::spawn_blocking(|| exchange.end())
        .await
        .unwrap();
    assert!(answer.whole);
    server.finish();
}

#[test]
fn many_agents_at_once_each_take_one_step() {
    const AGENTS: usize = 16;
    let steps = (0..AGENTS).map(|n| Step::text(format!("step {n}")));
    let server = ModelServer::start(Script::new().anthropic(steps));
    let together = std::sync::Barrier::new(AGENTS);
    let mut texts: Vec<String> = std::thread::scope(|scope| {
        let agents: Vec<_> = (0..AGENTS)
            .map(|_| {
                scope.spawn(|| {
                    together.wait();
                    said(&server, MESSAGES, "")
                })
            })
            .collect();
        agents
            .into_iter()
            .map(|agent| agent.join().unwrap())
            .collect()
    });
    texts.sort_unstable();
    texts.dedup();
    assert_eq!((texts.len(), server.steps_left()), (AGENTS, 0));
    server.finish();
}
