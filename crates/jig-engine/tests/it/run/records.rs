//! Acceptance, the result document, exact sequences of events, spend.

use std::sync::{Arc, Mutex};

use jig_protocol::event::EventKind;
use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::limits;
use jig_protocol::outcome::{AttemptEnd, Cause, FailureClass};
use serde_json::json;

use super::world::{DEV, Fake, Watch, World, answered, failed};

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_gate_of_a_skipped_phase_never_ran() {
    let world = World::new(
        &[("src/a", "1\n")],
        &format!(
            "
name: skip
{DEV}
phases:
  - {{name: one, kind: agent, owner: dev}}
  - {{name: two, kind: agent, owner: dev, if: never, gates: [{{name: artifacts_exist}}]}}
acceptance: [artifacts_exist]
"
        ),
        "roles: {dev: [{emit: {status: success, summary: x}}]}",
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Completed);
    assert_eq!(ran.outcome.state, AttemptState::Failed);
    assert_eq!(ran.outcome.cause, Some(Cause::Acceptance));
    assert!(
        ran.error().starts_with("acceptance does not hold"),
        "{}",
        ran.error()
    );
    assert!(ran.error().contains("artifacts_exist: never ran"));
    let checks = &ran.outcome.result.acceptance.as_ref().unwrap().checks;
    assert_eq!(checks[0].item, "all_phases_passed");
    assert!(checks[0].ok);
    assert_eq!(ran.named("acceptance").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn twelve_large_envelopes_fit_the_result() {
    let phases: String = (0..12)
        .map(|n| format!("  - {{name: p{n}, kind: agent, owner: dev}}\n"))
        .collect();
    let world = World::with_runtime(
        &[("src/a", "1\n")],
        &format!("name: wide\n{DEV}\nphases:\n{phases}"),
        Fake::new(|_, request: &jig_runtime::SendRequest| {
            std::fs::write(request.work_tree.join("src/b"), "x").unwrap();
            let pad = "é".repeat(6 * 1024);
            answered(&json!({"status": "success", "pad": pad}).to_string(), 0.0)
        }),
    );
    let ran = world.run().await;
    let result = &ran.outcome.result;
    assert_eq!(ran.outcome.state, AttemptState::AcceptedUnpublished);
    assert!(serde_json::to_vec(result).unwrap().len() <= limits::RESULT_BYTES);
    assert!(result.truncation.is_some() && result.acceptance.is_some());
    assert_eq!(result.changed_paths.len(), 1);
    assert_eq!(result.phases.len(), 12);
}

const REPAIRED: &str = r#"
roles:
  dev:
    - tools: [{name: Read, input: {file: src/a}}]
      write: {src/b: "1\n"}
      emit: {status: success, summary: x, artifacts: [src/b]}
    - write: {src/a: "good\n"}
      emit: {status: success, summary: x, artifacts: [src/a]}
    - emit: {status: success, summary: x}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_one_repair() {
    let world = World::new(
        &[("src/a", "bad\n")],
        &format!(
            "
name: road
{DEV}
phases:
  - {{name: plan, kind: agent, owner: dev, gates: [{{name: artifacts_exist}}]}}
  - {{name: test, kind: code, command: grep -q good src/a, on_fail: {{run: plan, then: rerun-self, budget: 1}}}}
  - {{name: report, kind: agent, owner: dev}}
"
        ),
        REPAIRED,
    );
    let ran = world.run().await;
    insta::assert_snapshot!(ran.shape(), @r"
    - log attempt_start
    - log sandbox
    plan phase_start
    plan agent_start dev
    plan tool_call Read
    plan gate_pass artifacts_exist
    plan log paths_touched
    plan handoff dev
    plan agent_end dev (passed)
    plan phase_end
    plan log checkpoint
    test phase_start
    test log command_result
    test phase_end
    test log repair_edge
    plan phase_start
    plan agent_start dev
    plan gate_pass artifacts_exist
    plan log paths_touched
    plan handoff dev
    plan agent_end dev (passed)
    plan phase_end
    plan log checkpoint
    test phase_start
    test log command_result
    test phase_end
    test log checkpoint
    report phase_start
    report agent_start dev
    report handoff dev
    report agent_end dev (passed)
    report phase_end
    report log checkpoint
    - log acceptance
    - attempt_end (accepted)
    ");
    let ends = ran.of(EventKind::AgentEnd);
    for end in ends {
        let payload = end.payload.as_ref().unwrap();
        assert_eq!(
            (&payload["outcome"], &payload["sends"]),
            (&json!("passed"), &json!(1))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_a_death_and_a_refused_send() {
    let mut world = World::with_runtime(
        &[("src/a", "1\n")],
        &format!(
            "name: two\n{DEV}\nphases:\n  - {{name: one, kind: agent, owner: dev}}\n  - {{name: two, kind: agent, owner: dev}}\n"
        ),
        Fake::new(|number, _: &_| match number {
            0 => failed(FailureClass::Crashed),
            _ => answered(r#"{"status": "success"}"#, 0.5),
        }),
    );
    world.max_sends = Some(2);
    let ran = world.run().await;
    insta::assert_snapshot!(ran.shape(), @r"
    - log attempt_start
    - log sandbox
    one phase_start
    one agent_start dev
    one agent_end dev (died)
    one phase_death dev
    one phase_start
    one agent_start dev
    one handoff dev
    one agent_end dev (passed)
    one phase_end
    one log checkpoint
    two phase_start
    two agent_start dev
    two agent_end dev (send_budget)
    two phase_end
    - error attempt_send_budget_exhausted
    - attempt_end (rejected)
    ");
    let figures: Vec<_> = ran
        .of(EventKind::AgentEnd)
        .iter()
        .map(|event| {
            let payload = event.payload.as_ref().unwrap();
            (payload["sends"].clone(), payload["unmetered_sends"].clone())
        })
        .collect();
    assert_eq!(
        figures,
        [
            (json!(1), json!(1)),
            (json!(1), json!(0)),
            (json!(0), json!(0))
        ]
    );
    assert_eq!(ran.outcome.end, AttemptEnd::SendBudget);
    assert_eq!(ran.outcome.cause, Some(Cause::SendBudget));
}

#[tokio::test(flavor = "multi_thread")]
async fn spend_adds_up_over_every_kind_of_send() {
    let world = World::with_runtime(
        &[("src/a", "1\n")],
        &format!("name: one\n{DEV}\nphases:\n  - {{name: one, kind: agent, owner: dev}}\n"),
        Fake::new(|number, _: &_| match number {
            0 => failed(FailureClass::Crashed),
            1 => answered("nothing", 0.5),
            2 => answered("nothing again", 0.25),
            _ => {
                let mut report = failed(FailureClass::Other);
                report.usage = answered("", 0.125).usage;
                report
            }
        }),
    );
    let ran = world.run().await;
    let ends = ran.of(EventKind::AgentEnd);
    let sum = |field: &str| -> f64 {
        ends.iter()
            .map(|end| end.payload.as_ref().unwrap()[field].as_f64().unwrap())
            .sum()
    };
    assert_eq!(sum("cost"), 0.875);
    assert_eq!(sum("tokens"), 9.0);
    assert_eq!(sum("unmetered_sends"), 1.0);
    assert_eq!(sum("sends"), 4.0);
    let spend = ran.outcome.result.spend;
    assert_eq!(
        (spend.cost_usd, spend.sends, spend.unmetered_sends),
        (0.875, 4, 1)
    );
    assert_eq!(spend.input_tokens + spend.output_tokens, 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sink_sees_what_the_file_holds_before_the_engine_returns() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut world = World::new(
        &[("src/a", "1\n")],
        &format!("name: one\n{DEV}\nphases:\n  - {{name: one, kind: agent, owner: dev}}\n"),
        "roles: {dev: [{write: {src/b: x}, text: hello, emit: {status: success, summary: x}}]}",
    );
    let events = Arc::clone(&seen);
    world.sink = Arc::new(Watch(move |event: &jig_protocol::event::Event| {
        events.lock().unwrap().push(event.clone());
    }));
    let ran = world.run().await;
    assert_eq!(*seen.lock().unwrap(), ran.events);
    let checkpoint = ran.named("checkpoint")[0].payload.clone().unwrap();
    let shown = std::process::Command::new("git")
        .arg("--git-dir")
        .arg(ran.outcome.prepared.dirs.git())
        .args([
            "show",
            "--format=",
            "--name-only",
            "refs/jig/checkpoints/one-1",
        ])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&shown.stdout), "src/b\n");
    assert_eq!(checkpoint["phase"], json!("one"));
}
