//! Guards and repair edges.

use jig_protocol::event::EventKind;
use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::outcome::Cause;
use serde_json::json;

use super::world::World;

const ROSTER: &str = "
roster:
  planner: {model: m, system_prompt: s, user_prompt: \"plan {{previous_envelope}}\", writes: []}
  builder: {model: m, system_prompt: s, user_prompt: \"build {{previous_envelope}}\", writes: [\"src/**\"]}
  reviewer: {model: m, system_prompt: s, user_prompt: \"review {{previous_envelope}}\", writes: []}
";

fn chain(rest: &str) -> String {
    format!("name: chain\n{ROSTER}\nphases:\n{rest}")
}

const PLAN_BUILD_TEST: &str = "
  - {name: plan, kind: agent, owner: planner}
  - {name: build, kind: agent, owner: builder}
  - name: test
    kind: code
    command: grep -q good src/a
    on_fail: {run: plan, then: rerun-chain, budget: 1}
  - {name: after, kind: code, command: \"true\"}
";

fn started(ran: &super::world::Ran) -> Vec<String> {
    ran.of(EventKind::PhaseStart)
        .iter()
        .map(|event| event.phase.clone().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rerun_chain_runs_everything_between_again() {
    let world = World::new(
        &[("src/a", "bad\n")],
        &chain(PLAN_BUILD_TEST),
        r#"
roles:
  planner:
    - emit: {status: success, summary: p1}
    - expect: ['"exit_code":1', '"passed":false']
      emit: {status: success, summary: p2, notes_for_next_agent: try good}
  builder:
    - expect: [p1]
      emit: {status: success, summary: b1}
    - expect: [try good]
      write: {src/a: "good\n"}
      emit: {status: success, summary: b2}
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(
        started(&ran),
        ["plan", "build", "test", "plan", "build", "test", "after"]
    );
    assert_eq!(world.runtime.calls().len(), 4);
    let edge = ran.named("repair_edge")[0].payload.clone().unwrap();
    assert_eq!(edge, json!({"run": "plan", "use": 1, "budget": 1}));
    let repairs = &ran.outcome.result.budgets.repairs[0];
    assert_eq!(
        (repairs.phase.as_str(), repairs.used, repairs.budget),
        ("test", 1, 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_edge_fails_the_attempt_and_names_itself() {
    let ok = "{emit: {status: success, summary: x}}";
    let world = World::new(
        &[("src/a", "bad\n")],
        &chain(PLAN_BUILD_TEST),
        &format!("roles: {{planner: [{ok}, {ok}], builder: [{ok}, {ok}]}}"),
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.cause, Some(Cause::RepairExhausted));
    assert_eq!(ran.outcome.state, AttemptState::Failed);
    for part in ["repair budget", "phase test", "edge to plan", "1 of 1"] {
        assert!(ran.error().contains(part), "{part}: {}", ran.error());
    }
    assert_eq!(
        started(&ran),
        ["plan", "build", "test", "plan", "build", "test"]
    );
    assert_eq!(ran.named("repair_exhausted").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn proceed_goes_on_but_acceptance_still_judges() {
    let text = PLAN_BUILD_TEST.replace("budget: 1}", "budget: 1, exhausted: proceed}");
    let ok = "{emit: {status: success, summary: x}}";
    let world = World::new(
        &[("src/a", "bad\n")],
        &chain(&text),
        &format!("roles: {{planner: [{ok}, {ok}], builder: [{ok}, {ok}]}}"),
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.cause, Some(Cause::Acceptance));
    assert_eq!(started(&ran).last().unwrap(), "after");
    assert!(ran.error().contains("test failed"), "{}", ran.error());
    let exhausted = ran.named("repair_exhausted")[0].payload.clone().unwrap();
    assert_eq!(exhausted, json!({"budget": 1, "policy": "proceed"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_keeps_first_guard_decisions() {
    let world = World::new(
        &[("src/a", "bad\n")],
        &chain(
            "
  - {name: plan, kind: agent, owner: planner}
  - {name: review, kind: agent, owner: reviewer, if: deep}
  - {name: build, kind: agent, owner: builder}
  - name: test
    kind: code
    command: grep -q good src/a
    on_fail: {run: plan, then: rerun-chain, budget: 1}
",
        ),
        r#"
roles:
  planner:
    - emit: {status: success, summary: p1, deep: true}
    - emit: {status: success, summary: p2, deep: false}
  reviewer:
    - emit: {status: success, summary: r1}
    - emit: {status: success, summary: r2}
  builder:
    - emit: {status: success, summary: b1}
    - write: {src/a: "good\n"}
      emit: {status: success, summary: b2}
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(world.runtime.calls().len(), 6);
    assert_eq!(ran.named("phase_skipped").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phase_skipped_first_is_skipped_again_in_a_replay() {
    let world = World::new(
        &[("src/a", "bad\n")],
        &chain(
            "
  - {name: plan, kind: agent, owner: planner}
  - {name: review, kind: agent, owner: reviewer, if: deep}
  - name: test
    kind: code
    command: test -e src/ok
    on_fail: {run: plan, then: rerun-chain, budget: 1}
",
        ),
        r#"
roles:
  planner:
    - emit: {status: success, summary: p1}
    - emit: {status: success, summary: p2, deep: true}
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.cause,
        Some(Cause::RepairExhausted),
        "{}",
        ran.error()
    );
    assert_eq!(
        ran.entries(),
        [
            "plan",
            "review/skipped",
            "test/fail",
            "plan",
            "review/skipped",
            "test/fail"
        ]
    );
    assert_eq!(ran.named("phase_skipped").len(), 1, "told once");
}

const SDLC: &str = "
  - {name: build, kind: agent, owner: builder}
  - name: review
    kind: agent
    owner: reviewer
    on_fail: {when: \"approved == false\", run: build, then: rerun-self, budget: 2}
  - {name: retest, kind: code, command: \"true\", if: revised}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_is_repaired_and_what_it_guards_runs_then() {
    let world = World::new(
        &[("src/a", "1\n")],
        &chain(SDLC),
        r#"
roles:
  builder:
    - emit: {status: success, summary: b1}
    - expect: ["not yet"]
      emit: {status: success, summary: b2, revised: true}
  reviewer:
    - emit: {status: success, summary: not yet, approved: false}
    - expect: [b2]
      emit: {status: success, summary: fine, approved: true}
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(
        ran.entries(),
        ["build", "review", "build", "review", "retest"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_rejection_the_guarded_phase_never_starts() {
    let world = World::new(
        &[("src/a", "1\n")],
        &chain(SDLC),
        r#"
roles:
  builder: [{emit: {status: success, summary: b1}}]
  reviewer: [{emit: {status: success, summary: fine, approved: true}}]
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(ran.entries(), ["build", "review", "retest/skipped"]);
    let skipped = ran.named("phase_skipped")[0];
    assert_eq!(skipped.phase.as_deref(), Some("retest"));
    assert_eq!(skipped.payload, Some(json!({"guard": "revised"})));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_of_fail_can_fire_an_edge() {
    let text = SDLC.replace("approved == false", "status == fail");
    let world = World::new(
        &[("src/a", "1\n")],
        &chain(&text),
        r#"
roles:
  builder: [{emit: {status: success, summary: b1}}, {emit: {status: success, summary: b2}}]
  reviewer: [{emit: {status: fail, summary: nope}}, {emit: {status: success, summary: fine}}]
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(
        ran.entries()[..4],
        ["build", "review/fail", "build", "review"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_that_fails_ends_the_attempt_without_another_try() {
    let world = World::new(
        &[("src/a", "1\n")],
        &chain(SDLC),
        r#"
roles:
  builder: [{emit: {status: success, summary: b1}}, {emit: {status: fail, summary: stuck}}]
  reviewer: [{emit: {status: success, summary: nope, approved: false}}]
"#,
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.cause, Some(Cause::AgentFail));
    assert!(
        ran.error().starts_with("repair phase build failed"),
        "{}",
        ran.error()
    );
    assert!(ran.error().contains("stuck"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_gate_of_a_code_phase_fires_its_edge() {
    let world = World::new(
        &[("src/a", "1\n")],
        &chain(
            "
  - {name: plan, kind: agent, owner: planner}
  - name: check
    kind: code
    command: \"true\"
    gates: [{name: tests_pass, command: test -e src/ok}]
    on_fail: {run: build, then: rerun-self, budget: 1}
  - {name: build, kind: agent, owner: builder}
",
        ),
        r#"
roles:
  planner: [{emit: {status: success, summary: p}}]
  builder:
    - expect: ['"passed":true']
      write: {src/ok: ""}
      emit: {status: success, summary: b}
    - emit: {status: success, summary: b}
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(
        ran.entries(),
        ["plan", "check/fail", "build", "check", "build"]
    );
}
