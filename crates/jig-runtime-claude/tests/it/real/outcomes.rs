//! Every way a send of the genuine program ends, and its class.

use std::time::Duration;

use jig_protocol::outcome::FailureClass;
use jig_runtime::{RuntimeEvent, SendEnd, SendRequest, Session, StopReason, StopSignal, Stopped};
use jig_testkit::model::{Gate, Step, Stop};
use serde_json::json;

use super::lab::lab;

fn shell(command: &str) -> Step {
    Step::tool("Bash", json!({ "command": command }))
}

/// Errors of the vendor that end a send, with what is made of them.
#[tokio::test]
async fn what_the_vendor_says() {
    let too_long = "prompt is too long: 200001 tokens > 200000 maximum";
    for (step, class, words, advice) in [
        (
            Step::error(400).message(too_long),
            FailureClass::Other,
            "too long",
            false,
        ),
        (
            Step::error(401),
            FailureClass::Auth,
            "Invalid API key",
            true,
        ),
        (Step::error(403), FailureClass::Auth, "403", true),
        (
            Step::error(404),
            FailureClass::UnsupportedOption,
            "model",
            true,
        ),
        (Step::error(429), FailureClass::RateLimited, "429", false),
        (Step::error(500), FailureClass::Overloaded, "500", false),
        (Step::error(529), FailureClass::Overloaded, "529", false),
    ] {
        let Some(lab) = lab([step.repeated()]) else {
            return;
        };
        let sent = lab.send(&mut Session::new("s")).await;
        let (found, message, advised) = sent.failure();
        assert_eq!((found, advised), (class, advice), "{words}: {message}");
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[tokio::test]
async fn a_vendor_that_is_not_there_is_worth_waiting_for() {
    let Some(lab) = lab([]) else { return };
    let mut request = lab.request();
    // Nobody listens on a port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    request.env.set("ANTHROPIC_BASE_URL", gone);
    let sent = lab.send_as(&mut Session::new("s"), request).await;
    assert_eq!(
        sent.failure().0,
        FailureClass::Overloaded,
        "{:?}",
        sent.report
    );
}

#[tokio::test]
async fn retries_are_told_and_a_send_that_recovers_has_its_answer() {
    let Some(lab) = lab([
        Step::error(529),
        Step::error(429),
        Step::text("half").cut(),
        Step::text("whole"),
    ]) else {
        return;
    };
    let mut request = lab.request();
    request.env.set("CLAUDE_CODE_MAX_RETRIES", "5");
    let sent = lab.send_as(&mut Session::new("s"), request).await;
    assert_eq!(sent.answer(), "whole");
    let retries: Vec<_> = sent
        .events
        .iter()
        .filter_map(|event| match event {
            RuntimeEvent::Retrying { class, wait } => Some((*class, wait.is_some())),
            _ => None,
        })
        .collect();
    let expected = [
        (FailureClass::Overloaded, true),
        (FailureClass::RateLimited, true),
    ];
    assert_eq!(retries[..2], expected, "{retries:?}");
}

/// Ten retries take three minutes; the second refusal says enough.
#[tokio::test]
async fn a_login_that_is_refused_again_ends_the_send() {
    let Some(lab) = lab([Step::error(401).repeated()]) else {
        return;
    };
    let mut request = lab.request();
    request.env.set("CLAUDE_CODE_MAX_RETRIES", "10");
    let sent = lab.send_as(&mut Session::new("s"), request).await;
    let (class, message, advised) = sent.failure();
    assert_eq!((class, advised), (FailureClass::Auth, true), "{message}");
    assert!(lab.server.requests().len() <= 3, "it asked on");
    lab.assert_nobody_left();
}

#[tokio::test]
async fn no_login_asks_nobody() {
    let Some(lab) = lab([]) else { return };
    let mut request = lab.request();
    request.env.set("ANTHROPIC_API_KEY", "");
    let sent = lab.send_as(&mut Session::new("s"), request).await;
    let (class, message, advised) = sent.failure();
    assert_eq!((class, advised), (FailureClass::Auth, true), "{message}");
    assert!(message.contains("Not logged in"), "{message}");
    assert_eq!(lab.server.requests().len(), 0);
}

/// A tool that is not allowed is told to the model, which goes on.
#[tokio::test]
async fn a_tool_that_is_not_there_is_no_failure() {
    let Some(lab) = lab([shell("touch made"), Step::text("could not")]) else {
        return;
    };
    let request = SendRequest {
        tools: Some(vec!["Read".into()]),
        ..lab.request()
    };
    let sent = lab.send_as(&mut Session::new("s"), request).await;
    assert_eq!(sent.answer(), "could not");
    assert!(!lab.stub.dir().join("tree/made").exists());
}

#[tokio::test]
async fn a_model_that_declines() {
    let Some(lab) = lab([Step::empty().stop(Stop::Refusal).repeated()]) else {
        return;
    };
    let sent = lab.send(&mut Session::new("s")).await;
    let (class, _, advised) = sent.failure();
    assert_eq!((class, advised), (FailureClass::Refused, true));
}

#[tokio::test]
async fn a_budget_that_is_used_up() {
    let Some(lab) = lab([shell("true").repeated()]) else {
        return;
    };
    let request = SendRequest {
        budget_usd: Some(0.001),
        ..lab.request()
    };
    let sent = lab.send_as(&mut Session::new("s"), request).await;
    let (class, _, advised) = sent.failure();
    assert_eq!((class, advised), (FailureClass::SpendCap, true));
    // What was spent is counted all the same.
    assert!(sent.report.usage.unwrap().cost_usd.unwrap() > 0.001);
}

/// By a signal from outside jig: no result, and the conversation goes on.
#[tokio::test]
async fn ended_by_a_signal() {
    for (signal, code) in [("TERM", Some(143)), ("KILL", None), ("INT", Some(0))] {
        let end = format!("kill -{signal} $PPID; tail -f /dev/null");
        let Some(lab) = lab([Step::text("first"), shell(&end), Step::text("back")]) else {
            return;
        };
        // What ends in its first moments may leave no conversation to continue.
        let mut session = Session::new("s");
        assert_eq!(lab.send(&mut session).await.answer(), "first");
        let sent = lab.send(&mut session).await;
        let SendEnd::Failed {
            class, exit_code, ..
        } = sent.report.end
        else {
            panic!("{signal}: {:?}", sent.report)
        };
        assert_eq!(
            (class, exit_code),
            (FailureClass::Crashed, code),
            "{signal}"
        );
        // The tool's shell is in a session of its own and is ended with it.
        lab.assert_nobody_left();
        let sent = lab.send(&mut session).await;
        assert_eq!(sent.answer(), "back", "{signal}");
        assert_eq!(session.sends, 3);
    }
}

/// Stopped by jig, while it waits for the vendor and in a tool.
#[tokio::test]
async fn stopped_while_it_waits_and_in_a_tool() {
    let in_tool = "sh -c 'touch ../up; exec sleep 600'";
    for (waits, step) in [(true, Step::hang()), (false, shell(in_tool))] {
        let Some(mut lab) = lab([step]) else {
            return;
        };
        let cancel = StopSignal::new();
        lab.stub.deadline = lab.stub.deadline.clone().and_signal(&cancel);
        let up = lab.stub.dir().join("up");
        let mut session = Session::new("s");
        let stopping = async {
            let ready = || up.exists() || (waits && !lab.server.turns().is_empty());
            jig_testkit::wait_until_async("the agent at work", ready).await;
            cancel.raise(StopReason::Cancelled);
        };
        let (sent, ()) = tokio::join!(lab.send(&mut session), stopping);
        assert_eq!(sent.report.end, SendEnd::Stopped(Stopped::Cancelled));
        assert!(sent.report.survivors.is_empty());
        lab.assert_nobody_left();
    }
}

/// Conversations that are not there, and ids that are taken.
#[tokio::test]
async fn conversations_that_cannot_be_continued_or_begun() {
    let Some(lab) = lab([Step::text("one")]) else {
        return;
    };
    let mut unknown = Session::new("s");
    unknown.native_id = Some("01234567-0123-4123-8123-0123456789ab".into());
    unknown.sends = 1;
    let sent = lab.send(&mut unknown).await;
    assert_eq!(sent.failure().0, FailureClass::Discontinuity);
    assert_eq!(lab.server.requests().len(), 0);

    // The bytes that ids are made of are always the same here.
    assert_eq!(lab.send(&mut Session::new("s")).await.answer(), "one");
    let sent = lab.send(&mut Session::new("s")).await;
    let (class, message, _) = sent.failure();
    assert_eq!(class, FailureClass::Discontinuity, "{message}");
    assert!(message.contains("already in use"), "{message}");

    // What is no id never reaches the command line.
    let mut odd = Session::new("s");
    odd.native_id = Some("--version".into());
    odd.sends = 1;
    let sent = lab.send(&mut odd).await;
    assert!(
        matches!(&sent.report.end, SendEnd::NotStarted { message, .. } if message.contains("--version")),
        "{:?}",
        sent.report
    );
}

/// As root the program wants to be told that it is in a sandbox. What else it
/// refuses at its start jig never asks for; see the stub.
#[tokio::test]
async fn root_without_a_word_of_a_sandbox_is_refused() {
    let Some(lab) = lab([]) else { return };
    if !is_root() {
        return;
    }
    let mut request = lab.request();
    request.env.set("IS_SANDBOX", "0");
    let sent = lab.send_as(&mut Session::new("s"), request).await;
    let (class, message, advised) = sent.failure();
    assert_eq!((class, advised), (FailureClass::UnsupportedOption, true));
    assert!(message.contains("root"), "{message}");
    assert_eq!(lab.server.requests().len(), 0);
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|meta| {
        use std::os::unix::fs::MetadataExt as _;
        meta.uid() == 0
    })
}

/// Silence ends a send whose vendor says nothing more.
#[tokio::test]
async fn silence_of_the_vendor_is_silence_of_the_send() {
    let Some(lab) = lab([Step::text("never whole").held(&Gate::new())]) else {
        return;
    };
    let mut session = Session::new("s");
    let sent = lab
        .stub
        .send_within(
            &lab.runtime,
            &mut session,
            lab.request(),
            Duration::from_secs(3),
        )
        .await;
    assert_eq!(sent.report.end, SendEnd::Stopped(Stopped::Silence));
    lab.assert_nobody_left();
}
