//! The adapter against a stub program that records how it was started and
//! plays a stream back.

use std::time::Duration;

use jig_protocol::definition::{Effort, OutputMode};
use jig_protocol::outcome::FailureClass;
use jig_runtime::{
    AgentRuntime as _, ProbeError, RuntimeEvent, SendEnd, SendRequest, Session, StopReason,
    StopSignal, Stopped,
};
use jig_runtime_codex::{CodexConfig, CodexRuntime, Operator};
use jig_testkit::processes::assert_none_marked;
use jig_testkit::stub::{Sent, Stub};

const THREAD: &str = "01a22e49-6317-7481-ad91-f4f22aeff366";

/// A turn; the totals are those of the first send or of both.
const ANSWER: &str = r#"
case "$*" in *resume*) IN=250 OUT=45;; *) IN=100 OUT=20;; esac
cat "$CODEX_HOME/config.toml" > @DIR@/config
cat <<END
{"type":"thread.started","thread_id":"${ID:-01a22e49-6317-7481-ad91-f4f22aeff366}"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"c","type":"command_execution","command":"ls"}}
{"type":"item.completed","item":{"id":"c","type":"command_execution","command":"ls","exit_code":0}}
{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"the answer"}}
{"type":"turn.completed","usage":{"input_tokens":$IN,"output_tokens":$OUT}}
END
"#;

const FLAGS: &str = "--json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox";

/// Answers to questions; `@RESUME@` is what continuing a thread is called.
fn probe(resume: &str) -> String {
    format!(
        r#"--version) echo "codex-cli 0.171.0"; exit 0;;
"exec --help") echo "{FLAGS} --color --output-schema --model"; exit 0;;
"exec resume --help") {resume};;"#
    )
}

fn stub(act: &str) -> Stub {
    let resume = format!("echo '[SESSION_ID] {FLAGS}'; exit 0");
    Stub::new("codex", &probe(&resume), act)
}

fn runtime(stub: &Stub) -> CodexRuntime {
    CodexRuntime::new(CodexConfig {
        program: stub.program(),
        asker: stub.asker(),
        operator: Operator::default(),
    })
}

fn request(stub: &Stub) -> SendRequest {
    SendRequest {
        model: "gpt-5.5".into(),
        ..stub.request()
    }
}

async fn send(stub: &Stub, session: &mut Session) -> Sent {
    stub.send(&runtime(stub), session, request(stub)).await
}

fn answered() -> SendEnd {
    SendEnd::Answered {
        text: "the answer".into(),
    }
}

#[tokio::test]
async fn the_first_send_makes_a_thread_and_the_second_continues_it() {
    let stub = stub(ANSWER);
    let mut session = Session::new("attempt-builder");
    let sent = send(&stub, &mut session).await;
    assert_eq!(sent.report.end, answered());
    assert_eq!(
        (session.native_id.as_deref(), session.sends),
        (Some(THREAD), 1)
    );
    let first = "exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox \
                 --color never --model gpt-5.5 -";
    assert_eq!(stub.args(), first.split_whitespace().collect::<Vec<_>>());
    assert_eq!(stub.recorded("stdin"), "do \"it\"\n");
    assert!(
        stub.recorded("config")
            .contains("developer_instructions = \"You are the builder.\"")
    );
    let variables = ["CODEX_HOME", "HOME", "ONLY", "PATH", "PWD"];
    assert_eq!(stub.variables(), variables);
    let usage = sent.report.usage.unwrap();
    let figures = (usage.input_tokens, usage.output_tokens);
    assert_eq!((figures, usage.cost_usd), ((100, 20), None));
    assert_eq!(usage.context_tokens, 0);
    let tools: Vec<_> = sent
        .events
        .iter()
        .filter_map(|event| match event {
            RuntimeEvent::ToolCall { tool, input } => Some((tool.as_str(), &input["exit_code"])),
            _ => None,
        })
        .collect();
    assert_eq!(tools, [("command_execution", &serde_json::json!(0))]);

    let sent = send(&stub, &mut session).await;
    assert_eq!(sent.report.end, answered());
    let second = "exec resume --json --skip-git-repo-check \
                  --dangerously-bypass-approvals-and-sandbox --model gpt-5.5";
    let mut expected: Vec<_> = second.split_whitespace().collect();
    expected.extend([THREAD, "-"]);
    assert_eq!(stub.args(), expected);
    let usage = sent.report.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (150, 25));
    let left: Vec<_> = std::fs::read_dir(stub.dir().join("home/.codex"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "private files stayed: {left:?}");
}

#[tokio::test]
async fn three_sends_stay_in_one_thread() {
    let stub = stub(ANSWER);
    let mut session = Session::new("s");
    for sends in 1..=3 {
        assert_eq!(send(&stub, &mut session).await.report.end, answered());
        let now = (session.native_id.as_deref(), session.sends);
        assert_eq!(now, (Some(THREAD), sends));
    }
}

#[tokio::test]
async fn what_was_asked_for_is_on_the_command_line_of_both_shapes() {
    let stub = stub(ANSWER);
    let mut session = Session::new("s");
    for shape in [vec!["exec"], vec!["exec", "resume"]] {
        let request = SendRequest {
            effort: Some(Effort::Max),
            output: OutputMode::Structured,
            ..request(&stub)
        };
        let schema = request.home.join(".codex/jig-answer.json");
        stub.send(&runtime(&stub), &mut session, request).await;
        let mut expected = vec!["-c", "model_reasoning_effort=\"xhigh\""];
        expected.extend(&shape);
        expected.extend(FLAGS.split_whitespace());
        if shape.len() == 1 {
            expected.extend(["--color", "never"]);
        }
        expected.extend(["--model", "gpt-5.5", "--output-schema"]);
        expected.push(schema.to_str().unwrap());
        if shape.len() == 2 {
            expected.push(THREAD);
        }
        expected.push("-");
        assert_eq!(stub.args(), expected);
    }
}

/// Nothing is started, and it is no death: trying again would not help.
#[tokio::test]
async fn what_cannot_be_enforced_is_refused_before_anything_starts() {
    let stub = stub(ANSWER);
    let tools = SendRequest {
        tools: Some(vec!["Read".into()]),
        ..request(&stub)
    };
    let budget = SendRequest {
        budget_usd: Some(0.5),
        ..request(&stub)
    };
    for (request, named) in [(tools, "a tool allowlist"), (budget, "a cap of one send")] {
        let mut session = Session::new("s");
        let sent = stub.send(&runtime(&stub), &mut session, request).await;
        let SendEnd::NotStarted { class, message, .. } = &sent.report.end else {
            panic!("{:?}", sent.report)
        };
        assert_eq!(*class, FailureClass::UnsupportedOption);
        assert_eq!(
            *message,
            format!("the runtime codex cannot enforce {named}")
        );
        assert_eq!(session, Session::new("s"));
        assert!(!stub.dir().join("args").exists(), "it was started");
    }
}

#[tokio::test]
async fn a_thread_that_is_none_is_never_put_on_the_command_line() {
    let stub = stub(ANSWER);
    let mut session = Session::new("s");
    session.native_id = Some("--last".to_owned());
    session.sends = 1;
    let sent = send(&stub, &mut session).await;
    assert!(
        matches!(&sent.report.end, SendEnd::NotStarted { message, .. } if message.contains("--last"))
    );
    assert!(!stub.dir().join("args").exists());
}

#[tokio::test]
async fn a_resume_that_another_thread_answers_is_a_discontinuity() {
    let stub = stub(&format!("ID=other\n{ANSWER}"));
    let mut session = Session::new("s");
    session.native_id = Some(THREAD.to_owned());
    session.sends = 1;
    let sent = send(&stub, &mut session).await;
    let SendEnd::Failed { class, message, .. } = &sent.report.end else {
        panic!("{:?}", sent.report)
    };
    assert_eq!(*class, FailureClass::Discontinuity);
    assert!(message.contains(THREAD) && message.contains("other"));
    assert_eq!(sent.report.usage, None);
}

#[tokio::test]
async fn how_it_ends_and_what_is_made_of_it() {
    let failed = r#"echo '{"type":"turn.failed","error":{"message":"said so"}}'"#;
    for (act, class, named, code) in [
        (failed.to_owned(), FailureClass::Other, "said so", Some(0)),
        (
            format!("{failed}; exit 1"),
            FailureClass::Other,
            "said so",
            Some(1),
        ),
        (
            "exit 0".to_owned(),
            FailureClass::Crashed,
            "without a result (exit code 0)",
            Some(0),
        ),
        (
            "echo oops >&2; exit 9".to_owned(),
            FailureClass::Crashed,
            "oops",
            Some(9),
        ),
        (
            "kill -9 $$".to_owned(),
            FailureClass::Crashed,
            "signal 9",
            None,
        ),
    ] {
        let stub = stub(&act);
        let sent = send(&stub, &mut Session::new("s")).await;
        let SendEnd::Failed {
            class: found,
            message,
            exit_code,
            ..
        } = &sent.report.end
        else {
            panic!("{act}: {:?}", sent.report)
        };
        assert_eq!((*found, *exit_code), (class, code), "{act}");
        assert!(message.contains(named), "{act}: {message}");
        assert_eq!(sent.report.usage, None);
    }
}

/// A thread that began is continued, though its first send failed.
#[tokio::test]
async fn the_thread_of_a_failed_send_is_kept() {
    let begun = format!(r#"echo '{{"type":"thread.started","thread_id":"{THREAD}"}}'; exit 1"#);
    let stub = stub(&begun);
    let mut session = Session::new("s");
    send(&stub, &mut session).await;
    assert_eq!(session.native_id.as_deref(), Some(THREAD));
    send(&stub, &mut session).await;
    assert_eq!(stub.args()[..2], ["exec", "resume"]);
}

/// More than a pipe and the channel hold, taken by a consumer that is slow to
/// begin; and a descendant that keeps the output open.
#[tokio::test]
async fn every_event_arrives_and_a_descendant_holds_nothing_up() {
    let many = r#"
i=0; while [ $i -lt 400 ]; do i=$((i+1))
echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"$i\",\"type\":\"agent_message\",\"text\":\"message $i\"}}"
done
echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
sh -c 'sleep 600; :' @DIR@ &
echo "late words" >&2
"#;
    let stub = stub(many);
    let sent = send(&stub, &mut Session::new("s")).await;
    let text = "message 400".to_owned();
    assert_eq!(sent.report.end, SendEnd::Answered { text });
    let texts = sent
        .events
        .iter()
        .filter(|event| matches!(event, RuntimeEvent::Text { .. }));
    assert_eq!(texts.count(), 400);
    assert!(!sent.report.leftovers.is_empty());
    assert_none_marked(stub.dir().to_str().unwrap());
}

#[tokio::test]
async fn a_stopped_send_keeps_what_it_said_and_leaves_nobody() {
    let mut stub = stub(&format!(
        r#"echo '{{"type":"thread.started","thread_id":"{THREAD}"}}'; touch @DIR@/up; sleep 600"#
    ));
    let cancel = StopSignal::new();
    stub.deadline = stub.deadline.clone().and_signal(&cancel);
    let up = stub.dir().join("up");
    let mut session = Session::new("s");
    let cancelling = async {
        jig_testkit::wait_until_async("the stub", || up.exists()).await;
        cancel.raise(StopReason::Cancelled);
    };
    let (sent, ()) = tokio::join!(send(&stub, &mut session), cancelling);
    assert_eq!(sent.report.end, SendEnd::Stopped(Stopped::Cancelled));
    assert_eq!(session.native_id.as_deref(), Some(THREAD));
    assert_none_marked(stub.dir().to_str().unwrap());
}

#[tokio::test]
async fn probes() {
    let stub = stub("");
    let found = runtime(&stub).probe().await.unwrap();
    assert_eq!(found.version, "0.171.0");
    assert!(found.can_resume && found.supports_effort && found.supports_structured);
    assert!(!found.reports_cost && !found.supports_tools && !found.supports_budget);
    assert_eq!(found.warnings, Vec::<String>::new());

    let without = Stub::new("codex", &probe("echo unknown; exit 2"), "");
    let found = runtime(&without).probe().await.unwrap();
    assert!(!found.can_resume);

    for (script, named) in [
        ("#!/bin/sh\necho codex-cli 0.149.9\n", "0.150.0"),
        (
            "#!/bin/sh\n[ \"$1\" = --version ] && echo codex-cli 0.171.0 || echo --json\n",
            "--skip-git-repo-check",
        ),
    ] {
        stub.install(script);
        let error = runtime(&stub).probe().await.unwrap_err();
        assert!(
            matches!(&error, ProbeError::Unsupported { detail, .. } if detail.contains(named)),
            "{error}"
        );
    }
    std::fs::remove_file(stub.program()).unwrap();
    let error = runtime(&stub).probe().await.unwrap_err();
    assert!(matches!(error, ProbeError::NotFound { .. }), "{error}");
}

#[tokio::test]
async fn a_probe_that_hangs_is_ended() {
    let stub = stub("");
    stub.install("#!/bin/sh\nsleep 600\n");
    let mut asker = stub.asker();
    asker.bound = Duration::from_millis(50);
    let runtime = CodexRuntime::new(CodexConfig {
        program: stub.program(),
        asker,
        operator: Operator::default(),
    });
    let error = runtime.probe().await.unwrap_err();
    assert!(matches!(error, ProbeError::Unusable { .. }), "{error}");
}
