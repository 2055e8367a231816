//! The adapter against a stub program that records how it was started and
//! plays a stream back.

use std::sync::Arc;
use std::time::Duration;

use jig_protocol::definition::{Effort, OutputMode};
use jig_protocol::outcome::FailureClass;
use jig_runtime::{
    AgentRuntime, ProbeError, RuntimeEvent, SendEnd, SendRequest, Session, StopReason, StopSignal,
    Stopped, structured,
};
use jig_runtime_claude::{ClaudeConfig, ClaudeRuntime};
use jig_testkit::stub::{Sent, Stub};

/// What an answer looks like; `$ID` is the session's id.
const ANSWER: &str = r#"cat <<END
{"type":"system","subtype":"init","session_id":"$ID","model":"m","claude_code_version":"2.1.332"}
{"type":"assistant","message":{"id":"1","content":[{"type":"tool_use","id":"t","name":"Read","input":{"file":"a"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}
{"type":"result","subtype":"success","is_error":false,"result":"the answer","session_id":"$ID","total_cost_usd":0.5,"usage":{"input_tokens":10,"output_tokens":2,"cache_read_input_tokens":2}}
END
"#;

const HELP: &str = "--print --output-format --verbose --include-partial-messages --permission-mode \
    --setting-sources --strict-mcp-config --session-id --resume --system-prompt --tools --effort \
    --max-budget-usd --json-schema";

/// The questions and their answers, then what a send does before anything else:
/// it finds out its session's id, and keeps the system prompt.
fn bench(act: &str) -> Stub {
    let probe = format!(
        "--version) echo '2.1.332 (Claude Code)'; exit 0;;\n--help) echo '{HELP}'; exit 0;;"
    );
    let prelude = r#"
for word in "$@"; do
  case "$before" in --session-id|--resume) ID=$word;; --system-prompt-file) cat "$word" > @DIR@/system;; esac
  before=$word
done
"#;
    Stub::new("claude", &probe, &format!("{prelude}{act}"))
}

fn runtime(bench: &Stub) -> ClaudeRuntime {
    ClaudeRuntime::new(ClaudeConfig {
        program: bench.program(),
        asker: bench.asker(),
        random: Arc::new(|| *b"0123456789abcdef"),
    })
}

async fn send(bench: &Stub, session: &mut Session) -> Sent {
    send_as(bench, session, bench.request()).await
}

async fn send_as(bench: &Stub, session: &mut Session, request: SendRequest) -> Sent {
    bench.send(&runtime(bench), session, request).await
}

/// Everything that a send is started with: these, and what was asked for.
fn arguments(bench: &Stub, conversation: [&str; 2], asked: &[&str]) -> Vec<String> {
    let mut words: Vec<String> = "--print --output-format stream-json --verbose \
         --include-partial-messages --permission-mode bypassPermissions --setting-sources"
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    words.extend(["", "--strict-mcp-config"].map(str::to_owned));
    words.extend(conversation.map(str::to_owned));
    words.extend(["--model", "sonnet"].map(str::to_owned));
    let system = bench.dir().join("home/.jig-system-prompt");
    for word in asked {
        match *word {
            "SYSTEM" => words.push(system.to_str().unwrap().to_owned()),
            word => words.push(word.to_owned()),
        }
    }
    words
}

const ID: &str = "30313233-3435-4637-b839-616263646566";

#[tokio::test]
async fn the_first_send_makes_a_session_and_the_second_continues_it() {
    let bench = bench(ANSWER);
    let mut session = Session::new("attempt-builder");
    let sent = send(&bench, &mut session).await;
    assert_eq!(
        sent.report.end,
        SendEnd::Answered {
            text: "the answer".into()
        }
    );
    assert_eq!((session.native_id.as_deref(), session.sends), (Some(ID), 1));
    let system = ["--system-prompt-file", "SYSTEM"];
    assert_eq!(
        bench.args(),
        arguments(&bench, ["--session-id", ID], &system)
    );
    assert_eq!(bench.recorded("stdin"), "do \"it\"\n");
    assert_eq!(bench.recorded("system"), "You are the builder.");
    assert!(!bench.recorded("args").contains("You are"));
    assert_eq!(
        std::fs::read_dir(bench.dir().join("home")).unwrap().count(),
        0
    );
    let usage = sent.report.usage.unwrap();
    assert_eq!(
        (
            usage.input_tokens + usage.output_tokens,
            usage.context_tokens
        ),
        (12, 14)
    );
    assert_eq!(usage.cost_usd, Some(0.5));
    assert!(
        sent.events
            .iter()
            .any(|event| matches!(event, RuntimeEvent::ToolCall { tool, .. } if tool == "Read"))
    );

    let sent = send(&bench, &mut session).await;
    assert_eq!(
        sent.report.end,
        SendEnd::Answered {
            text: "the answer".into()
        }
    );
    assert_eq!((session.native_id.as_deref(), session.sends), (Some(ID), 2));
    // Nothing is remembered by the CLI.
    assert_eq!(bench.args(), arguments(&bench, ["--resume", ID], &system));
    assert_eq!(bench.recorded("system"), "You are the builder.");
    assert_eq!(
        sent.report.usage.unwrap().cost_usd,
        Some(0.0),
        "the total did not grow"
    );
}

#[tokio::test]
async fn the_environment_is_the_requests_and_the_switches() {
    let bench = bench(ANSWER);
    send(&bench, &mut Session::new("s")).await;
    let names = bench.variables();
    assert_eq!(
        names,
        [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_AUTOUPDATER",
            "DISABLE_ERROR_REPORTING",
            "DISABLE_TELEMETRY",
            "HOME",
            "IS_SANDBOX",
            "ONLY",
            "PATH",
            "PWD",
        ]
    );
}

#[tokio::test]
async fn what_was_asked_for_is_on_the_command_line_of_both_shapes() {
    let bench = bench(ANSWER);
    let schema = structured::envelope_schema().to_string();
    let asked = [
        "--effort",
        "high",
        "--max-budget-usd",
        "1.5",
        "--system-prompt-file",
        "SYSTEM",
        "--json-schema",
        &schema,
        "--tools",
        "Read",
    ];
    let mut session = Session::new("s");
    for conversation in [["--session-id", ID], ["--resume", ID]] {
        let request = SendRequest {
            effort: Some(Effort::High),
            budget_usd: Some(1.50),
            tools: Some(vec!["Read".into()]),
            output: OutputMode::Structured,
            ..bench.request()
        };
        send_as(&bench, &mut session, request).await;
        assert_eq!(bench.args(), arguments(&bench, conversation, &asked));
    }
}

#[tokio::test]
async fn a_resume_that_another_session_answers_is_a_discontinuity() {
    let bench = bench(&format!("ID=${{OTHER:-other}}\n{ANSWER}"));
    let mut session = Session::new("s");
    session.native_id = Some(ID.to_owned());
    session.sends = 1;
    let sent = send(&bench, &mut session).await;
    let SendEnd::Failed { class, message, .. } = &sent.report.end else {
        panic!("{:?}", sent.report)
    };
    assert_eq!(*class, FailureClass::Discontinuity);
    assert!(
        message.contains(ID) && message.contains("other"),
        "{message}"
    );
}

#[tokio::test]
async fn what_the_cli_reports_and_how_it_ends() {
    let error = |status: u32, code: u32| {
        format!(
            r#"echo '{{"type":"result","subtype":"success","is_error":true,"api_error_status":{status},"result":"said {status}","usage":{{"input_tokens":7}}}}'; exit {code}"#
        )
    };
    for (act, class, named, code) in [
        (
            error(429, 1),
            FailureClass::RateLimited,
            "said 429",
            Some(1),
        ),
        (error(529, 0), FailureClass::Overloaded, "said 529", Some(0)),
        (error(401, 1), FailureClass::Auth, "said 401", Some(1)),
        (
            "exit 0".to_owned(),
            FailureClass::Crashed,
            "without a result",
            Some(0),
        ),
        (
            "echo oops >&2; exit 9".to_owned(),
            FailureClass::Crashed,
            "oops",
            Some(9),
        ),
        (
            "echo \"error: unknown option '--x'\" >&2; exit 1".to_owned(),
            FailureClass::UnsupportedOption,
            "--x",
            Some(1),
        ),
        (
            "kill -9 $$".to_owned(),
            FailureClass::Crashed,
            "signal 9",
            None,
        ),
    ] {
        let bench = bench(&act);
        let sent = send(&bench, &mut Session::new("s")).await;
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
        let metered = act.contains("usage");
        assert_eq!(
            sent.report.usage.is_some(),
            metered,
            "usage survives errors: {act}"
        );
    }
}

#[tokio::test]
async fn a_first_send_that_failed_is_continued_by_its_id() {
    let bench = bench("echo busy >&2; exit 1");
    let mut session = Session::new("s");
    send(&bench, &mut session).await;
    let system = ["--system-prompt-file", "SYSTEM"];
    assert_eq!(
        bench.args(),
        arguments(&bench, ["--session-id", ID], &system)
    );
    send(&bench, &mut session).await;
    // An id that was used once is taken.
    assert_eq!(bench.args(), arguments(&bench, ["--resume", ID], &system));
}

#[tokio::test]
async fn a_send_that_did_not_start_used_no_id() {
    let bench = bench("");
    std::fs::remove_file(bench.program()).unwrap();
    let mut session = Session::new("s");
    let sent = send(&bench, &mut session).await;
    assert!(matches!(sent.report.end, SendEnd::NotStarted { .. }));
    assert_eq!(session.sends, 0);
}

#[tokio::test]
async fn a_cancelled_send_keeps_what_it_said() {
    let mut bench = bench(
        r#"echo '{"type":"assistant","message":{"content":[{"type":"text","text":"working"}]}}'; touch up; sleep 600"#,
    );
    let cancel = StopSignal::new();
    bench.deadline = bench.deadline.clone().and_signal(&cancel);
    let up = bench.dir().join("tree/up");
    let mut session = Session::new("s");
    let cancelling = async {
        jig_testkit::wait_until_async("the stub", || up.exists()).await;
        cancel.raise(StopReason::Cancelled);
    };
    let (sent, ()) = tokio::join!(send(&bench, &mut session), cancelling);
    assert_eq!(sent.report.end, SendEnd::Stopped(Stopped::Cancelled));
    assert_eq!(sent.report.usage, None);
    assert!(sent.events.contains(&RuntimeEvent::Text {
        text: "working".into()
    }));
}

#[tokio::test]
async fn probes() {
    let bench = bench("");
    let found = runtime(&bench).probe().await.unwrap();
    assert_eq!(found.version, "2.1.332");
    assert!(
        found.can_resume
            && found.reports_cost
            && found.supports_effort
            && found.supports_structured
    );
    assert!(found.warnings.is_empty());

    bench.install("#!/bin/sh\necho 2.1.279\n");
    let error = runtime(&bench).probe().await.unwrap_err();
    assert!(
        matches!(&error, ProbeError::Unsupported { detail, .. } if detail.contains("2.1.280")),
        "{error}"
    );

    bench.install("#!/bin/sh\n[ $1 = --version ] && echo 2.1.300 || echo --print --resume\n");
    let error = runtime(&bench).probe().await.unwrap_err();
    assert!(error.to_string().contains("--setting-sources"), "{error}");

    bench.install(&format!(
        "#!/bin/sh\n[ $1 = --version ] && echo nightly || echo '{HELP}'\n"
    ));
    assert_eq!(runtime(&bench).probe().await.unwrap().warnings.len(), 1);

    for broken in [
        "#!/bin/sh\n",
        "#!/bin/sh\necho 2.1.300; echo broken >&2; exit 3\n",
    ] {
        bench.install(broken);
        let error = runtime(&bench).probe().await.unwrap_err();
        assert!(matches!(error, ProbeError::Unusable { .. }), "{error}");
    }

    std::fs::remove_file(bench.program()).unwrap();
    assert!(matches!(
        runtime(&bench).probe().await,
        Err(ProbeError::NotFound { .. })
    ));
}

#[tokio::test]
async fn a_probe_that_hangs_is_ended() {
    let bench = bench("");
    bench.install("#!/bin/sh\nsleep 600\n");
    let mut asker = bench.asker();
    asker.bound = Duration::from_millis(50);
    let error = asker
        .ask(&bench.program(), ["--version"])
        .await
        .unwrap_err();
    assert!(matches!(error, ProbeError::Unusable { .. }), "{error}");
    asker.bound = Duration::ZERO;
    assert!(asker.ask(&bench.program(), ["--version"]).await.is_err());
}
