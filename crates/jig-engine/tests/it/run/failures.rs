//! The classes of failure, and what each of them means.

use std::time::Duration;

use jig_protocol::event::EventKind;
use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::outcome::{AttemptEnd, Cause, FailureClass};
use jig_runtime::{SendEnd, SendReport};
use serde_json::json;

use super::world::{DEV, Fake, World, answered, failed};

const OK: &str = r#"{"status": "success", "summary": "x"}"#;

fn one_phase(rest: &str) -> String {
    format!("name: one\n{DEV}\nphases:\n  - {{name: build, kind: agent, owner: dev}}\n{rest}")
}

fn world(plays: impl Fn(usize) -> SendReport + Send + Sync + 'static) -> World {
    World::with_runtime(
        &[("src/a", "1\n")],
        &one_phase(""),
        Fake::new(move |number, _: &_| plays(number)),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overloaded_vendor_is_asked_again_and_costs_no_death() {
    let world = world(|number| match number {
        0..5 => failed(if number % 2 == 0 {
            FailureClass::Overloaded
        } else {
            FailureClass::RateLimited
        }),
        _ => answered(OK, 0.1),
    });
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(ran.named("rate_limited").len(), 5);
    assert_eq!(ran.of(EventKind::PhaseStart).len(), 1);
    assert_eq!(ran.outcome.result.budgets.deaths, 0);
    let spend = &ran.outcome.result.spend;
    assert_eq!((spend.sends, spend.unmetered_sends), (6, 5));
    let sessions: Vec<_> = world
        .runtime
        .calls()
        .iter()
        .map(|c| c.session.clone())
        .collect();
    assert!(sessions.iter().all(|session| *session == sessions[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sixth_refusal_fails_the_phase_with_its_class() {
    let world = world(|_| failed(FailureClass::RateLimited));
    let ran = world.run().await;
    assert_eq!(ran.outcome.cause, Some(Cause::RateLimited));
    assert_eq!(ran.outcome.end, AttemptEnd::Failed);
    assert_eq!(world.runtime.calls().len(), 6);
    assert_eq!(
        ran.payload(0, EventKind::AgentEnd)["class"],
        json!("rate_limited")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stated_wait_is_the_wait_and_stays_within_the_clocks() {
    let mut world = world(|_| {
        let mut report = failed(FailureClass::RateLimited);
        if let SendEnd::Failed { retry_after, .. } = &mut report.end {
            *retry_after = Some(Duration::from_secs(3600));
        }
        report
    });
    let clock = jig_testkit::ManualClock::new();
    world.clock = std::sync::Arc::new(clock.clone());
    let input = world.input().await;
    let mut config = world.engine().config().clone();
    config.wait_scale = 1.0;
    let engine = jig_engine::Engine::new(config);
    let running = tokio::spawn(async move { engine.run(input).await });
    // The wait and the entry's clock.
    clock.wait_for_sleepers(2).await;
    clock.advance(Duration::from_secs(30 * 60));
    let ran = super::world::Ran::read(running.await.unwrap());
    assert_eq!(
        ran.outcome.cause,
        Some(Cause::RateLimited),
        "{}",
        ran.error()
    );
    let told = ran.named("rate_limited")[0].payload.clone().unwrap();
    assert_eq!(told["wait_ms"], json!(3_600_000));
    assert_eq!(world.runtime.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn fatal_classes_end_the_attempt_at_once_with_a_hint() {
    for (class, cause, no_verdict) in [
        (FailureClass::Auth, Cause::Auth, true),
        (FailureClass::SpendCap, Cause::SpendCap, true),
        (
            FailureClass::UnsupportedOption,
            Cause::UnsupportedOption,
            true,
        ),
        (FailureClass::Script, Cause::Script, true),
        (FailureClass::Refused, Cause::Refused, false),
    ] {
        let world = world(move |_| failed(class));
        let ran = world.run().await;
        assert_eq!(ran.outcome.cause, Some(cause));
        assert_eq!(ran.outcome.end, AttemptEnd::Failed);
        assert_eq!(world.runtime.calls().len(), 1, "{class:?}");
        assert!(ran.error().contains("the hint"), "{}", ran.error());
        let end = ran.payload(0, EventKind::AttemptEnd);
        let word = if no_verdict { "none" } else { "rejected" };
        assert_eq!(end["outcome"], json!(word), "{class:?}");
        assert_eq!(end["cause"], json!(class.as_str()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_errors_fail_the_phase_in_one_send() {
    for class in [FailureClass::Other, FailureClass::MaxTurns] {
        let world = World::with_runtime(
            &[("src/a", "1\n")],
            &format!(
                "name: one\n{DEV}\nphases:\n  - {{name: build, kind: agent, owner: dev, on_fail: {{when: status == fail, run: fix, then: rerun-self, budget: 1}}}}\n  - {{name: fix, kind: agent, owner: dev}}\n"
            ),
            Fake::new(move |_, _: &_| SendReport {
                usage: answered("", 0.75).usage,
                ..failed(class)
            }),
        );
        let ran = world.run().await;
        assert_eq!(ran.outcome.cause, Some(class.into()));
        assert!(ran.error().contains("it was"), "{}", ran.error());
        assert_eq!(
            world.runtime.calls().len(),
            1,
            "no edge fires without an envelope"
        );
        assert!(ran.named("invalid_envelope").is_empty());
        assert!(ran.of(EventKind::PhaseDeath).is_empty());
        assert_eq!(ran.payload(0, EventKind::AgentEnd)["cost"], json!(0.75));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_session_is_replaced() {
    let world = world(|number| match number {
        0 => failed(FailureClass::Discontinuity),
        _ => answered(OK, 0.1),
    });
    let ran = world.run().await;
    assert_eq!(ran.outcome.state, AttemptState::AcceptedUnpublished);
    let calls = world.runtime.calls();
    assert_ne!(calls[0].session, calls[1].session);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_that_could_not_start_gives_its_slot_back() {
    let world = world(|_| SendReport::not_started(FailureClass::Other, "no such program"));
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Infrastructure);
    assert_eq!(ran.outcome.result.spend.sends, 0);
    assert_eq!(world.runtime.calls().len(), 1);
    assert!(ran.error().contains("no such program"));

    let script = World::new(&[("src/a", "1\n")], &one_phase(""), "roles: {dev: []}");
    let ran = script.run().await;
    assert_eq!(ran.outcome.cause, Some(Cause::Script), "{}", ran.error());
    assert_eq!(
        ran.payload(0, EventKind::AttemptEnd)["outcome"],
        json!("none")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_checked_before_every_send() {
    let world = World::with_runtime(
        &[("src/a", "1\n")],
        &one_phase("budget_usd: 1"),
        Fake::new(|_, _: &_| answered("nothing", 0.6)),
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::SpendCeiling);
    assert_eq!(ran.outcome.cause, Some(Cause::SpendCeiling));
    assert_eq!(world.runtime.calls().len(), 2);
    let told = ran.named("attempt_spend_ceiling_reached")[0]
        .payload
        .clone()
        .unwrap();
    assert_eq!(told, json!({"budget_usd": 1.0, "spent_usd": 1.2}));
    assert_eq!(
        ran.payload(0, EventKind::AgentEnd)["outcome"],
        json!("spend_ceiling")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_runtime_cannot_enforce_is_refused_before_it_is_asked() {
    let roster = "
roster:
  dev: {model: m, system_prompt: s, user_prompt: u, writes: [], tools: [Read]}
";
    let world = World::with_runtime(
        &[("src/a", "1\n")],
        &format!("name: one\n{roster}\nphases:\n  - {{name: build, kind: agent, owner: dev}}\n"),
        Fake::new(|_, _: &_| answered(OK, 0.1)),
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.cause, Some(Cause::UnsupportedOption));
    assert!(ran.error().contains("tools"), "{}", ran.error());
    assert!(world.runtime.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_stopped_leaves_the_tree_alone() {
    let world = World::with_runtime(
        &[("src/a", "1\n")],
        &one_phase(""),
        Fake::new(|_, request: &jig_runtime::SendRequest| {
            std::fs::write(request.work_tree.join("stray"), "x").unwrap();
            SendReport {
                survivors: vec!["stubborn --daemon".into()],
                ..answered(OK, 0.1)
            }
        }),
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Infrastructure);
    assert!(ran.error().contains("stubborn --daemon"), "{}", ran.error());
    assert_eq!(ran.file("stray").as_deref(), Some("x"));
    assert!(ran.named("write_boundary_breach").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_an_adapter_stops_at_the_attempt() {
    let world = World::with_runtime(
        &[("src/a", "1\n")],
        &one_phase(""),
        Fake::new(|_, request: &jig_runtime::SendRequest| {
            std::fs::write(request.work_tree.join("stray"), "x").unwrap();
            panic!("an adapter's bug")
        }),
    );
    let ran = world.run().await;
    // What it wrote outranks how it ended.
    assert_eq!(ran.outcome.end, AttemptEnd::Breach, "{}", ran.error());
    assert!(ran.error().contains("an adapter's bug"), "{}", ran.error());
    assert_eq!(ran.file("stray"), None);
    assert_eq!(
        ran.payload(0, EventKind::AgentEnd)["unmetered_sends"],
        json!(1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_does_not_parse_ends_before_it_begins() {
    let world = world(|_| answered(OK, 0.1));
    let mut input = world.input().await;
    input.snapshot =
        "name: one\nphases: [{name: x, kind: agent, owner: nobody}]\npublish: {hold_when: 'a ='}\n"
            .into();
    let ran = super::world::Ran::read(world.engine().run(input).await);
    assert_eq!(ran.outcome.end, AttemptEnd::Infrastructure);
    assert_eq!(ran.outcome.cause, Some(Cause::Configuration));
    assert_eq!(ran.shape(), "- error engine_error\n- attempt_end (none)\n");
    assert!(world.runtime.calls().is_empty());
    assert_eq!(ran.outcome.result.phases, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_refused_by_name() {
    let world = world(|_| answered(OK, 0.1));
    let mut input = world.input().await;
    input.snapshot = "
name: group
roster:
  a: {model: m, system_prompt: s, user_prompt: u, writes: []}
  b: {model: m, system_prompt: s, user_prompt: u, writes: []}
phases:
  - {name: one, kind: agent, owner: a}
  - {name: two, kind: agent, owner: b}
parallel: [one, two]
"
    .into();
    let ran = super::world::Ran::read(world.engine().run(input).await);
    assert_eq!(ran.outcome.cause, Some(Cause::Configuration));
    assert!(ran.error().contains("parallel"), "{}", ran.error());
    assert!(world.runtime.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_is_not_there_is_named() {
    let world = world(|_| answered(OK, 0.1));
    let mut input = world.input().await;
    input.runtime_override = None;
    let ran = super::world::Ran::read(world.engine().run(input).await);
    assert_eq!(ran.outcome.cause, Some(Cause::Configuration));
    assert!(ran.error().contains("claude-code"), "{}", ran.error());
}
