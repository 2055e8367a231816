//! Answers, corrections and gates.

use jig_protocol::event::EventKind;
use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::outcome::{AttemptEnd, Cause};
use serde_json::json;

use super::world::{DEV, World};

fn one_phase(gates: &str) -> String {
    format!(
        "name: one\n{DEV}\nphases:\n  - {{name: build, kind: agent, owner: dev, gates: {gates}}}\n"
    )
}

const DONE: &str =
    r#"{"status": "success", "summary": "done", "artifacts": [], "notes_for_next_agent": ""}"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_is_found_in_prose_and_fences() {
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase("[]"),
        r#"
roles:
  dev:
    - emit: |
        Here it is:
        ```json
        {"status": "success", "summary": "done"}
        ```
        That was all.
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(ran.outcome.end, AttemptEnd::Completed);
    assert_eq!(ran.outcome.cause, None);
    assert_eq!(ran.entries(), ["build"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn four_answers_without_an_envelope_fail_the_phase_in_one_session() {
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase("[]"),
        "roles: {dev: [{emit: nothing}, {emit: \"{\\\"status\\\": 1}\"}, {emit: nope}, {emit: never}]}",
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.cause, Some(Cause::Parse));
    assert!(
        ran.error().contains("no valid envelope in 4 answers"),
        "{}",
        ran.error()
    );
    assert_eq!(ran.named("invalid_envelope").len(), 4);
    let calls = world.runtime.calls();
    assert_eq!(calls.len(), 4);
    assert!(calls.iter().all(|call| call.session == calls[0].session));
    // The parser's own words are in the correction.
    assert!(calls[2].prompt.contains("`status`") || calls[2].prompt.contains("status"));
    assert_eq!(ran.outcome.result.budgets.parse_corrections, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn parse_corrections_are_fresh_after_a_gate_correction() {
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase("[{name: artifacts_exist}]"),
        r#"
roles:
  dev:
    - emit: {status: success, summary: x, artifacts: [src/new]}
    - emit: broken
    - emit: broken again
    - write: {src/new: "hello\n"}
      emit: {status: success, summary: x, artifacts: [src/new]}
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(ran.named("invalid_envelope").len(), 2);
    assert_eq!(ran.of(EventKind::GateFail).len(), 1);
    assert_eq!(ran.of(EventKind::GatePass).len(), 1);
    let budgets = &ran.outcome.result.budgets;
    assert_eq!(
        (budgets.parse_corrections, budgets.gate_corrections),
        (2, 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_gate_runs_again_in_every_round_in_the_same_session() {
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase("[{name: artifacts_exist}, {name: files_non_empty}]"),
        r#"
roles:
  dev:
    - write: {src/new: ""}
      emit: {status: success, summary: x, artifacts: [src/new]}
    - expect: [validation failed, "src/new"]
      write: {src/new: "full\n"}
      emit: {status: success, summary: x, artifacts: [src/new]}
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    let gates: Vec<String> = ran
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::GatePass | EventKind::GateFail))
        .map(|event| format!("{} {}", event.kind.as_str(), event.name.as_deref().unwrap()))
        .collect();
    assert_eq!(
        gates,
        [
            "gate_pass artifacts_exist",
            "gate_fail files_non_empty",
            "gate_pass artifacts_exist",
            "gate_pass files_non_empty",
        ]
    );
    let calls = world.runtime.calls();
    assert_eq!(calls[0].session, calls[1].session);
    assert_eq!(calls[1].sends_before, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn gates_fail_the_phase_once_their_budget_is_spent() {
    let claim = "{status: success, summary: x, artifacts: [src/none]}";
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase("[{name: artifacts_exist, budget: 1}]"),
        &format!("roles: {{dev: [{{emit: {claim}}}, {{emit: {claim}}}, {{emit: {claim}}}]}}"),
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.cause, Some(Cause::Gate));
    assert_eq!(world.runtime.calls().len(), 2);
    assert!(ran.error().contains("src/none"), "{}", ran.error());
    let record = &ran.outcome.result.phases[0];
    assert_eq!(record.gates.len(), 1);
    assert!(!record.gates[0].passed);
    assert!(record.envelope.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_reports_failure_fails_with_its_own_words() {
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase("[]"),
        "roles: {dev: [{emit: {status: fail, summary: the door is locked}}]}",
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.cause, Some(Cause::AgentFail));
    assert_eq!(ran.outcome.state, AttemptState::Failed);
    assert!(
        ran.error().contains("the door is locked"),
        "{}",
        ran.error()
    );
    assert_eq!(
        ran.payload(0, EventKind::AgentEnd)["outcome"],
        json!("failed")
    );
    assert!(ran.outcome.result.phases[0].envelope.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_are_compared_with_the_real_change_both_ways() {
    let world = World::new(
        &[("src/a", "1\n"), ("src/gone", "x\n")],
        &one_phase("[{name: diff_matches_claims, budget: 4}]"),
        r#"
roles:
  dev:
    - write: {src/b: "2\n"}
      delete: [src/gone]
      emit: {status: success, summary: x}
    - expect: [changed_files]
      emit: {status: success, summary: x, changed_files: src/b}
    - emit: {status: success, summary: x, changed_files: [src/b, src/a]}
    - expect: ["src/a", "src/gone"]
      emit: {status: success, summary: x, changed_files: [src/b, src/gone]}
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(ran.of(EventKind::GateFail).len(), 3);
    let changed: Vec<String> = ran
        .outcome
        .result
        .changed_paths
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(changed, ["src/b", "src/gone"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_must_be_stated_and_supported() {
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase("[{name: verdict_consistent}]"),
        r#"
roles:
  dev:
    - emit: {status: success, summary: x}
    - expect: [missing]
      emit: {status: success, summary: x, approved: "yes"}
    - expect: ["true or false"]
      emit: {status: success, summary: x, approved: true}
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(ran.of(EventKind::GateFail).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_command_sees_the_change_and_its_own_environment() {
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase(
            "[{name: tests_pass, command: \"grep -q two src/a && test -n \\\"$JIG_BASE_SHA\\\"\"}]",
        ),
        &format!("roles: {{dev: [{{emit: {DONE}}}, {{write: {{src/a: two}}, emit: {DONE}}}]}}"),
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    let round = ran.payload(0, EventKind::GateFail);
    assert_eq!(round["attempt"], json!(1));
    assert_eq!(ran.payload(0, EventKind::GatePass)["attempt"], json!(2));
}
