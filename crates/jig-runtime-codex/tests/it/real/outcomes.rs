//! Every way a send of the genuine program ends, and its class.

use std::time::Duration;

use jig_protocol::outcome::FailureClass;
use jig_runtime::{RuntimeEvent, SendEnd, Session, StopReason, StopSignal, Stopped};
use jig_testkit::model::{Gate, Step, Stop};
use serde_json::json;

use super::lab::{lab, lab_with, request};

fn shell(command: &str) -> Step {
    Step::tool("exec_command", json!({ "cmd": command }))
}

#[tokio::test]
async fn what_the_vendor_says() {
    let quota = Step::error(429)
        .code("insufficient_quota")
        .kind("insufficient_quota");
    for (step, class, words, advice) in [
        (
            Step::error(400),
            FailureClass::Other,
            "cannot be served",
            false,
        ),
        (Step::error(401), FailureClass::Auth, "401", true),
        (Step::error(403), FailureClass::Auth, "403", true),
        (
            Step::error(404),
            FailureClass::UnsupportedOption,
            "does not exist",
            true,
        ),
        (Step::error(429), FailureClass::RateLimited, "429", false),
        (quota, FailureClass::SpendCap, "uota", true),
        (
            Step::error(500),
            FailureClass::Overloaded,
            "high demand",
            false,
        ),
        (
            Step::text("half").cut(),
            FailureClass::Overloaded,
            "disconnected",
            false,
        ),
        (
            Step::empty().stop(Stop::Refusal),
            FailureClass::Refused,
            "content_filter",
            true,
        ),
        (
            Step::text("half").stop(Stop::MaxTokens),
            FailureClass::Other,
            "max_output_tokens",
            false,
        ),
        (
            Step::empty().stop(Stop::ContextWindow),
            FailureClass::Other,
            "context window",
            false,
        ),
    ] {
        let Some(lab) = lab([step.repeated()]) else {
            return;
        };
        let mut session = Session::new("s");
        let sent = lab.send_as(&mut session, request(&lab)).await;
        let (found, message, advised) = sent.failure();
        assert_eq!((found, advised), (class, advice), "{words}: {message}");
        assert!(message.contains(words), "{words}: {message}");
        assert!(session.native_id.is_some(), "{words}: the thread is lost");
        assert_eq!(sent.report.usage, None);
    }
}

#[tokio::test]
async fn a_vendor_that_is_not_there_is_worth_waiting_for() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = free.local_addr().unwrap().port().to_string();
    drop(free);
    let elsewhere = |config: String| {
        let port = config.split("127.0.0.1:").nth(1).unwrap();
        let port = port.split('/').next().unwrap().to_owned();
        config.replace(&port, &gone)
    };
    let Some(lab) = lab_with([], elsewhere) else {
        return;
    };
    let sent = lab.send_as(&mut Session::new("s"), request(&lab)).await;
    assert_eq!(
        sent.failure().0,
        FailureClass::Overloaded,
        "{:?}",
        sent.report
    );
}

#[tokio::test]
async fn retries_are_told_and_a_send_that_recovers_has_its_answer() {
    let Some(lab) = lab([Step::text("half").cut(), Step::text("whole")]) else {
        return;
    };
    let sent = lab.send_as(&mut Session::new("s"), request(&lab)).await;
    assert_eq!(sent.answer(), "whole");
    let retries = sent
        .events
        .iter()
        .filter(|event| matches!(event, RuntimeEvent::Retrying { .. }));
    assert_eq!(retries.count(), 1, "{:?}", sent.events);
}

#[tokio::test]
async fn a_key_that_is_missing_asks_nobody() {
    let Some(lab) = lab([]) else { return };
    let mut request = request(&lab);
    request.env = lab.stub.request().env;
    let sent = lab.send_as(&mut Session::new("s"), request).await;
    let (class, message, advised) = sent.failure();
    assert_eq!((class, advised), (FailureClass::Auth, true), "{message}");
    assert!(message.contains("LOOPBACK_KEY"), "{message}");
    assert_eq!(lab.server.requests().len(), 0);
}

/// A command that fails is told to the model, which goes on.
#[tokio::test]
async fn a_command_that_fails_is_no_failure() {
    let Some(lab) = lab([shell("exit 3"), Step::text("went on")]) else {
        return;
    };
    let sent = lab.send_as(&mut Session::new("s"), request(&lab)).await;
    assert_eq!(sent.answer(), "went on");
    let codes: Vec<_> = sent
        .events
        .iter()
        .filter_map(|event| match event {
            RuntimeEvent::ToolCall { tool, input } if tool == "command_execution" => {
                input["exit_code"].as_i64()
            }
            _ => None,
        })
        .collect();
    assert_eq!(codes, [3]);
}

/// By a signal from outside jig: no result, and the thread goes on.
#[tokio::test]
async fn ended_by_a_signal() {
    for (signal, code) in [("TERM", None), ("KILL", None), ("INT", Some(1))] {
        let end = format!("kill -{signal} $PPID; tail -f /dev/null");
        let Some(lab) = lab([Step::text("first"), shell(&end), Step::text("back")]) else {
            return;
        };
        // What ends in its first moments may leave no thread to continue.
        let mut session = Session::new("s");
        let sent = lab.send_as(&mut session, request(&lab)).await;
        assert_eq!(sent.answer(), "first");
        let sent = lab.send_as(&mut session, request(&lab)).await;
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
        lab.assert_nobody_left();
        let thread = session.native_id.clone();
        let sent = lab.send_as(&mut session, request(&lab)).await;
        assert_eq!(sent.answer(), "back", "{signal}");
        assert_eq!(session.native_id, thread);
    }
}

/// Stopped by jig, while it waits for the vendor and in a tool.
#[tokio::test]
async fn stopped_while_it_waits_and_in_a_tool() {
    let in_tool = "touch ../up; tail -f /dev/null";
    for (waits, step) in [(true, Step::hang()), (false, shell(in_tool))] {
        let Some(mut lab) = lab([step]) else { return };
        let cancel = StopSignal::new();
        lab.stub.deadline = lab.stub.deadline.clone().and_signal(&cancel);
        let up = lab.stub.dir().join("up");
        let mut session = Session::new("s");
        let stopping = async {
            let ready = || up.exists() || (waits && !lab.server.turns().is_empty());
            jig_testkit::wait_until_async("the agent at work", ready).await;
            cancel.raise(StopReason::Cancelled);
        };
        let send = lab.send_as(&mut session, request(&lab));
        let (sent, ()) = tokio::join!(send, stopping);
        assert_eq!(sent.report.end, SendEnd::Stopped(Stopped::Cancelled));
        assert!(sent.report.survivors.is_empty());
        lab.assert_nobody_left();
    }
}

#[tokio::test]
async fn a_thread_that_is_not_there_is_a_discontinuity() {
    let Some(lab) = lab([]) else { return };
    let mut session = Session::new("s");
    session.native_id = Some("01a22e49-6317-7481-ad91-f4f22aeff366".into());
    session.sends = 1;
    let sent = lab.send_as(&mut session, request(&lab)).await;
    assert_eq!(sent.failure().0, FailureClass::Discontinuity);
    assert_eq!(lab.server.requests().len(), 0);
}

#[tokio::test]
async fn a_provider_that_is_not_described_is_told_with_what_to_do() {
    let other = |config: String| {
        config.replace("model_provider = \"loopback\"", "model_provider = \"nix\"")
    };
    let Some(lab) = lab_with([], other) else {
        return;
    };
    let sent = lab.send_as(&mut Session::new("s"), request(&lab)).await;
    let (class, message, advised) = sent.failure();
    assert_eq!((class, advised), (FailureClass::UnsupportedOption, true));
    assert!(message.contains("nix"), "{message}");
}

/// Silence ends a send whose vendor says nothing more.
#[tokio::test]
async fn silence_of_the_vendor_is_silence_of_the_send() {
    let Some(lab) = lab([Step::text("never whole").held(&Gate::new())]) else {
        return;
    };
    let mut session = Session::new("s");
    let silence = Duration::from_secs(3);
    let send = lab
        .stub
        .send_within(&lab.runtime, &mut session, request(&lab), silence);
    assert_eq!(send.await.report.end, SendEnd::Stopped(Stopped::Silence));
    lab.assert_nobody_left();
}
