//! The adapter against agents that are scripts: what is made of those that do
//! not do as they should, and that none of them is left running.

use std::time::Duration;

use jig_protocol::limits;
use jig_protocol::outcome::FailureClass;
use jig_runtime::{
    AgentRuntime as _, ProbeError, RuntimeEvent, SendEnd, SendRequest, Session, StopReason,
    StopSignal, Stopped,
};
use jig_runtime_acp::{AcpConfig, AcpRuntime, Agents};
use jig_testkit::processes::assert_none_marked;
use jig_testkit::stub::{Sent, Stub};

/// An agent that is polite up to the prompt, when it does `@ACT@`; `$id` is the
/// request's.
const POLITE: &str = r#"#!/bin/sh
say() { printf '%s\n' "$1"; }
chunk() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}}}'; }
ends() { say '{"jsonrpc":"2.0","id":'$id',"result":{"stopReason":"'"$1"'"}}'; }
while IFS= read -r line; do
  printf '%s\n' "$line" >> @DIR@/heard
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
  *'"method":"initialize"'*)
    say '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"agentInfo":{"name":"stub","version":"1"},"agentCapabilities":{"loadSession":true}}}';;
  *'"method":"session/new"'*) say '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"S"}}';;
  *'"method":"session/prompt"'*)
@ACT@
  ;;
  esac
done
"#;

fn stub(script: &str) -> Stub {
    let stub = Stub::new("agent", "", "");
    stub.install(script);
    stub
}

fn polite(act: &str) -> Stub {
    stub(&POLITE.replace("@ACT@", act))
}

fn runtime(stub: &Stub, patience: Duration) -> AcpRuntime {
    let described = format!(
        "[acp.stub]\ncommand = [{:?}, \"{}\"]\n",
        stub.program(),
        stub.dir().display()
    );
    let (name, agent) = Agents::parse(&described).unwrap().acp.pop_first().unwrap();
    AcpRuntime::new(AcpConfig {
        name,
        agent,
        program: stub.program(),
        asker: stub.asker(),
        patience,
    })
}

async fn send(stub: &Stub, patience: Duration) -> Sent {
    let request = SendRequest {
        model: "default".into(),
        ..stub.request()
    };
    let runtime = runtime(stub, patience);
    let sent = stub.send(&runtime, &mut Session::new("s"), request).await;
    assert_none_marked(stub.dir().to_str().unwrap());
    sent
}

const LONG: Duration = limits::HANDSHAKE_TIMEOUT;

/// A request before the prompt that is not answered ends the send by its name,
/// with what the agent said on stderr.
#[tokio::test]
async fn a_request_that_is_not_answered_is_named() {
    let silent_at = |method: &str| {
        let muted = POLITE.replace(&format!("\"method\":\"{method}\""), "\"method\":\"nobody\"");
        muted.replace("@ACT@", "ends end_turn").replacen(
            "say()",
            "echo 'no key found' >&2\nsay()",
            1,
        )
    };
    for method in ["initialize", "session/new"] {
        let stub = stub(&silent_at(method));
        let sent = send(&stub, Duration::from_millis(300)).await;
        let (_, message, _) = sent.failure();
        assert!(message.contains(method), "{message}");
        assert!(message.contains("no key found"), "{message}");
    }
}

#[tokio::test]
async fn every_way_to_end_a_prompt_has_its_class() {
    for (act, class, named) in [
        ("ends refusal", FailureClass::Refused, ""),
        ("ends max_turn_requests", FailureClass::MaxTurns, ""),
        ("exit 3", FailureClass::Crashed, "3"),
        ("kill -9 $$", FailureClass::Crashed, "signal 9"),
        ("echo oops >&2; exit 1", FailureClass::Crashed, "oops"),
        (
            r#"say '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32000,"message":"Authentication required"}}'"#,
            FailureClass::Auth,
            "Authentication required",
        ),
        (
            r#"say '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32603,"message":"429 Too Many Requests"}}'"#,
            FailureClass::RateLimited,
            "429",
        ),
    ] {
        let stub = polite(act);
        let sent = send(&stub, LONG).await;
        let (found, message, _) = sent.failure();
        assert_eq!(found, class, "{act}: {message}");
        assert!(message.contains(named), "{act}: {message}");
    }
}

/// What it says that nobody understands is logged, and the answer is found.
#[tokio::test]
async fn noise_and_strangers_change_nothing() {
    let stub = polite(
        r#"
echo "warning: not json"
say '{"jsonrpc":"2.0","method":"_vendor/unheard_of","params":{"a":[1]}}'
say '{"jsonrpc":"2.0","id":999,"result":{"stopReason":"end_turn"}}'
say '{"jsonrpc":"2.0","id":77,"method":"fs/read_text_file","params":{"sessionId":"S","path":"/etc/passwd"}}'
say '{"jsonrpc":"2.0","id":78,"method":"terminal/create","params":{"sessionId":"S","command":"id"}}'
say '{"jsonrpc":"2.0","id":79,"method":"session/request_permission","params":{"sessionId":"S","toolCall":{"toolCallId":"t"},"options":[{"optionId":"ever","kind":"allow_always","name":"a"},{"optionId":"once","kind":"allow_once","name":"o"}]}}'
say '{"jsonrpc":"2.0","id":80,"method":"session/request_permission","params":{"sessionId":"S","toolCall":{"toolCallId":"t"},"options":[{"optionId":"ever","kind":"allow_always","name":"a"}]}}'
head -c 5000000 /dev/zero | tr '\0' x; echo
IFS= read -r a; IFS= read -r b; IFS= read -r c; IFS= read -r d
printf '%s\n' "$a" "$b" "$c" "$d" > @DIR@/answers
chunk "the answer"
ends end_turn"#,
    );
    let sent = send(&stub, LONG).await;
    assert_eq!(sent.answer(), "the answer");
    let answers = stub.recorded("answers");
    let answers: Vec<serde_json::Value> = answers
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_i64()).collect();
    assert_eq!(ids, [77, 78, 79, 80].map(Some));
    for refused in &answers[..2] {
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    assert_eq!(answers[2]["result"]["outcome"]["optionId"], "once");
    assert_ne!(answers[3]["result"]["outcome"]["optionId"], "ever");
    let logs: Vec<_> = sent
        .events
        .iter()
        .filter_map(|event| match event {
            RuntimeEvent::Log { log, .. } => Some(log.as_str()),
            _ => None,
        })
        .collect();
    assert!(
        logs.contains(&"unparsed_line") && logs.contains(&"line_truncated"),
        "{logs:?}"
    );
}

/// It is told that nobody reads files or opens terminals for it.
#[tokio::test]
async fn what_the_client_offers_is_nothing() {
    let stub = polite("chunk done; ends end_turn");
    send(&stub, LONG).await;
    let heard = stub.recorded("heard");
    let first: serde_json::Value = serde_json::from_str(heard.lines().next().unwrap()).unwrap();
    assert_eq!(first["params"]["protocolVersion"], 1);
    let offered = &first["params"]["clientCapabilities"];
    assert_eq!(offered["fs"]["readTextFile"], false, "{offered}");
    assert_eq!(offered["fs"]["writeTextFile"], false, "{offered}");
    assert_ne!(offered["terminal"], true, "{offered}");
}

/// An agent that has answered and stays is ended; so is one that is stopped in
/// the middle, with everything it started.
#[tokio::test]
async fn agents_that_stay_are_ended() {
    let stub =
        polite("sh -c 'tail -f /dev/null' @DIR@ & chunk stayed; ends end_turn; tail -f /dev/null");
    let sent = send(&stub, LONG).await;
    assert_eq!(sent.answer(), "stayed");

    let mut stub =
        polite("touch @DIR@/up; trap '' TERM; tail -f /dev/null & wait; tail -f /dev/null");
    let cancel = StopSignal::new();
    stub.deadline = stub.deadline.clone().and_signal(&cancel);
    let up = stub.dir().join("up");
    let cancelling = async {
        jig_testkit::wait_until_async("the agent at work", || up.exists()).await;
        cancel.raise(StopReason::Cancelled);
    };
    let (sent, ()) = tokio::join!(send(&stub, LONG), cancelling);
    assert_eq!(sent.report.end, SendEnd::Stopped(Stopped::Cancelled));
}

#[tokio::test]
async fn who_it_is_is_asked_in_bounded_time() {
    let stub = polite("");
    let found = runtime(&stub, LONG).probe().await.unwrap();
    assert_eq!(found.version, "stub 1");
    assert!(found.can_resume);

    let mute = stub_that("tail -f /dev/null");
    let mut config_asker = mute.asker();
    config_asker.bound = Duration::from_millis(300);
    let described = format!("[acp.stub]\ncommand = [{:?}]\n", mute.program());
    let (name, agent) = Agents::parse(&described).unwrap().acp.pop_first().unwrap();
    let runtime = AcpRuntime::new(AcpConfig {
        name,
        agent,
        program: mute.program(),
        asker: config_asker,
        patience: LONG,
    });
    let error = runtime.probe().await.unwrap_err();
    assert!(matches!(error, ProbeError::Unusable { .. }), "{error}");
    assert_none_marked(mute.dir().to_str().unwrap());
}

fn stub_that(act: &str) -> Stub {
    stub(&format!("#!/bin/sh\n{act}\n"))
}
