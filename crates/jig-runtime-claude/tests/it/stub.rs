//! The adapter against a stub program that records how it was started and
//! plays a stream back.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jig_protocol::definition::{Effort, OutputMode};
use jig_protocol::outcome::FailureClass;
use jig_runtime::probe::Asker;
use jig_runtime::{
    AgentRuntime, Confinement, Deadline, Environment, ProbeError, RuntimeEvent, SendControl,
    SendEnd, SendReport, SendRequest, Session, StopReason, StopSignal, Stopped, SystemClock,
};
use jig_runtime_claude::{ClaudeConfig, ClaudeRuntime};
use tokio::sync::mpsc;

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

struct Bench {
    dir: tempfile::TempDir,
    deadline: Deadline,
}

struct Sent {
    report: SendReport,
    events: Vec<RuntimeEvent>,
}

impl Bench {
    /// A stub that answers probes and does `act` for a send, with `$ID` and the
    /// recorded `args`, `env` and `stdin` beside it.
    fn new(act: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "tree"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let here = dir.path().display();
        let script = format!(
            r#"#!/bin/sh
case "$1" in
--version) echo "2.1.332 (Claude Code)"; exit 0;;
--help) echo "{HELP}"; exit 0;;
esac
env > {here}/env
for word in "$@"; do printf '%s\n' "$word"; done > {here}/args
for word in "$@"; do
  case "$before" in --session-id|--resume) ID=$word;; --system-prompt-file) cat "$word" > {here}/system;; esac
  before=$word
done
cat > {here}/stdin
{act}
"#
        );
        let bench = Self {
            dir,
            deadline: Deadline::new(Arc::new(SystemClock::new())),
        };
        bench.install(&script);
        bench
    }

    fn program(&self) -> PathBuf {
        self.dir.path().join("claude")
    }

    fn install(&self, script: &str) {
        // Written beside and renamed: an open script cannot be executed.
        let beside = self.dir.path().join("claude.new");
        std::fs::write(&beside, script).unwrap();
        std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(beside, self.program()).unwrap();
    }

    fn recorded(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap()
    }

    fn args(&self) -> Vec<String> {
        self.recorded("args").lines().map(str::to_owned).collect()
    }

    /// The word after a flag.
    fn flag(&self, name: &str) -> Option<String> {
        let args = self.args();
        let at = args.iter().position(|word| word == name)?;
        args.get(at + 1).cloned()
    }

    fn runtime(&self) -> ClaudeRuntime {
        let env = Environment::empty()
            .with("PATH", "/usr/bin:/bin")
            .with("HOME", self.dir.path().join("home"));
        ClaudeRuntime::new(ClaudeConfig {
            program: self.program(),
            asker: Asker {
                host: jig_testkit::host(),
                clock: Arc::new(SystemClock::new()),
                dir: self.dir.path().join("tree"),
                env,
                bound: jig_testkit::BOUND,
            },
            random: Arc::new(|| *b"0123456789abcdef"),
        })
    }

    fn request(&self) -> SendRequest {
        let home = self.dir.path().join("home");
        SendRequest {
            role: "builder".into(),
            prompt: "do \"it\"\n".into(),
            system_prompt: "You are the builder.".into(),
            model: "sonnet".into(),
            effort: None,
            budget_usd: None,
            tools: None,
            output: OutputMode::Text,
            work_tree: self.dir.path().join("tree"),
            env: Environment::empty()
                .with("PATH", "/usr/bin:/bin")
                .with("HOME", &home)
                .with("ONLY", "this"),
            home,
            remove_at_end: Vec::new(),
            confinement: Confinement::None,
        }
    }

    async fn send(&self, session: &mut Session) -> Sent {
        self.send_as(session, self.request()).await
    }

    async fn send_as(&self, session: &mut Session, request: SendRequest) -> Sent {
        let (sender, mut receiver) = mpsc::channel(4);
        let control = SendControl {
            deadline: self.deadline.clone(),
            silence: Duration::from_secs(300),
            events: sender,
            live: None,
            stderr_filter: None,
        };
        let runtime = self.runtime();
        let taking = async {
            let mut events = Vec::new();
            while let Some(event) = receiver.recv().await {
                events.push(event);
            }
            events
        };
        let both = async { tokio::join!(runtime.send(session, request, control), taking) };
        let (report, events) = tokio::time::timeout(jig_testkit::BOUND, both)
            .await
            .expect("the end");
        Sent { report, events }
    }
}

const ID: &str = "30313233-3435-4637-b839-616263646566";

#[tokio::test]
async fn the_first_send_makes_a_session_and_the_second_continues_it() {
    let bench = Bench::new(ANSWER);
    let mut session = Session::new("attempt-builder");
    let sent = bench.send(&mut session).await;
    assert_eq!(
        sent.report.end,
        SendEnd::Answered {
            text: "the answer".into()
        }
    );
    assert_eq!((session.native_id.as_deref(), session.sends), (Some(ID), 1));
    assert_eq!(bench.flag("--session-id").as_deref(), Some(ID));
    assert_eq!(bench.flag("--resume"), None);
    assert_eq!(bench.flag("--model").as_deref(), Some("sonnet"));
    assert_eq!(
        bench.flag("--permission-mode").as_deref(),
        Some("bypassPermissions")
    );
    assert_eq!(bench.recorded("stdin"), "do \"it\"\n");
    assert_eq!(bench.recorded("system"), "You are the builder.");
    assert!(!bench.recorded("args").contains("You are"));
    assert_eq!(
        std::fs::read_dir(bench.dir.path().join("home"))
            .unwrap()
            .count(),
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

    let sent = bench.send(&mut session).await;
    assert_eq!(
        sent.report.end,
        SendEnd::Answered {
            text: "the answer".into()
        }
    );
    assert_eq!((session.native_id.as_deref(), session.sends), (Some(ID), 2));
    assert_eq!(bench.flag("--resume").as_deref(), Some(ID));
    assert_eq!(bench.flag("--session-id"), None);
    assert_eq!(
        bench.flag("--model").as_deref(),
        Some("sonnet"),
        "nothing is remembered by the CLI"
    );
    assert_eq!(bench.recorded("system"), "You are the builder.");
    assert_eq!(
        sent.report.usage.unwrap().cost_usd,
        Some(0.0),
        "the total did not grow"
    );
}

#[tokio::test]
async fn the_environment_is_the_requests_and_the_switches() {
    let bench = Bench::new(ANSWER);
    bench.send(&mut Session::new("s")).await;
    let env = bench.recorded("env");
    let mut names: Vec<_> = env
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    names.sort_unstable();
    // What the shell itself sets is not ours.
    names.retain(|name| !["_", "SHLVL", "OLDPWD"].contains(name));
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
async fn optional_flags_are_only_set_when_asked_for() {
    let bench = Bench::new(ANSWER);
    bench.send(&mut Session::new("s")).await;
    for flag in ["--effort", "--max-budget-usd", "--tools", "--json-schema"] {
        assert_eq!(bench.flag(flag), None, "{flag}");
    }
    let request = SendRequest {
        effort: Some(Effort::High),
        budget_usd: Some(1.50),
        tools: Some(vec!["Read".into()]),
        output: OutputMode::Structured,
        ..bench.request()
    };
    bench.send_as(&mut Session::new("s"), request).await;
    assert_eq!(bench.flag("--effort").as_deref(), Some("high"));
    assert_eq!(bench.flag("--max-budget-usd").as_deref(), Some("1.5"));
    assert_eq!(bench.flag("--tools").as_deref(), Some("Read"));
    assert!(bench.flag("--json-schema").is_some());
}

#[tokio::test]
async fn a_resume_that_another_session_answers_is_a_discontinuity() {
    let bench = Bench::new(&format!("ID=${{OTHER:-other}}\n{ANSWER}"));
    let mut session = Session::new("s");
    session.native_id = Some(ID.to_owned());
    session.sends = 1;
    let sent = bench.send(&mut session).await;
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
        let bench = Bench::new(&act);
        let sent = bench.send(&mut Session::new("s")).await;
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
    let bench = Bench::new("echo busy >&2; exit 1");
    let mut session = Session::new("s");
    bench.send(&mut session).await;
    assert_eq!(bench.flag("--session-id").as_deref(), Some(ID));
    bench.send(&mut session).await;
    assert_eq!(
        bench.flag("--resume").as_deref(),
        Some(ID),
        "an id that was used once is taken"
    );
}

#[tokio::test]
async fn a_send_that_did_not_start_used_no_id() {
    let bench = Bench::new("");
    std::fs::remove_file(bench.program()).unwrap();
    let mut session = Session::new("s");
    let sent = bench.send(&mut session).await;
    assert!(matches!(sent.report.end, SendEnd::NotStarted { .. }));
    assert_eq!(session.sends, 0);
}

#[tokio::test]
async fn a_cancelled_send_keeps_what_it_said() {
    let mut bench = Bench::new(
        r#"echo '{"type":"assistant","message":{"content":[{"type":"text","text":"working"}]}}'; touch up; sleep 600"#,
    );
    let cancel = StopSignal::new();
    bench.deadline = bench.deadline.and_signal(&cancel);
    let up = bench.dir.path().join("tree/up");
    let mut session = Session::new("s");
    let cancelling = async {
        jig_testkit::wait_until_async("the stub", || up.exists()).await;
        cancel.raise(StopReason::Cancelled);
    };
    let (sent, ()) = tokio::join!(bench.send(&mut session), cancelling);
    assert_eq!(sent.report.end, SendEnd::Stopped(Stopped::Cancelled));
    assert_eq!(sent.report.usage, None);
    assert!(sent.events.contains(&RuntimeEvent::Text {
        text: "working".into()
    }));
}

#[tokio::test]
async fn probes() {
    let bench = Bench::new("");
    let found = bench.runtime().probe().await.unwrap();
    assert_eq!(found.version, "2.1.332");
    assert!(
        found.can_resume
            && found.reports_cost
            && found.supports_effort
            && found.supports_structured
    );
    assert!(found.warnings.is_empty());

    bench.install("#!/bin/sh\necho 2.1.279\n");
    let error = bench.runtime().probe().await.unwrap_err();
    assert!(
        matches!(&error, ProbeError::Unsupported { detail, .. } if detail.contains("2.1.280")),
        "{error}"
    );

    bench.install("#!/bin/sh\n[ $1 = --version ] && echo 2.1.300 || echo --print --resume\n");
    let error = bench.runtime().probe().await.unwrap_err();
    assert!(error.to_string().contains("--setting-sources"), "{error}");

    bench.install(&format!(
        "#!/bin/sh\n[ $1 = --version ] && echo nightly || echo '{HELP}'\n"
    ));
    assert_eq!(bench.runtime().probe().await.unwrap().warnings.len(), 1);

    for broken in [
        "#!/bin/sh\n",
        "#!/bin/sh\necho 2.1.300; echo broken >&2; exit 3\n",
    ] {
        bench.install(broken);
        let error = bench.runtime().probe().await.unwrap_err();
        assert!(matches!(error, ProbeError::Unusable { .. }), "{error}");
    }

    std::fs::remove_file(bench.program()).unwrap();
    assert!(matches!(
        bench.runtime().probe().await,
        Err(ProbeError::NotFound { .. })
    ));
}

#[tokio::test]
async fn a_probe_that_hangs_is_ended() {
    let bench = Bench::new("");
    bench.install("#!/bin/sh\nsleep 600\n");
    let mut asker = Asker {
        host: jig_testkit::host(),
        clock: Arc::new(SystemClock::new()),
        dir: bench.dir.path().to_owned(),
        env: Environment::empty().with("PATH", "/usr/bin:/bin"),
        bound: Duration::from_millis(50),
    };
    let error = asker
        .ask(&bench.program(), ["--version"])
        .await
        .unwrap_err();
    assert!(matches!(error, ProbeError::Unusable { .. }), "{error}");
    asker.bound = Duration::ZERO;
    assert!(asker.ask(&bench.program(), ["--version"]).await.is_err());
}
