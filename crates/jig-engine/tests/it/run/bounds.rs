//! The worst case that a definition announces is the worst case that happens.

use jig_protocol::definition::bounds::{bounds, sends_per_run};
use jig_protocol::event::EventKind;
use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::limits;
use jig_protocol::outcome::{AttemptEnd, FailureClass};
use jig_runtime::{SendReport, SendRequest};

use super::world::{Fake, World, answered, failed};

const ROSTER: &str = "
roster:
  dev: {model: m, system_prompt: s, user_prompt: u, writes: [src/**]}
";

/// Plays a run of a phase as badly as it can be played without failing: `gates`
/// says whether rounds can fail, `budget` is its correction budget.
fn worst(number: usize, gates: bool, budget: usize) -> SendReport {
    let rounds = if gates { budget + 1 } else { 1 };
    let per_entry = rounds * 4;
    let per_run = 5 + per_entry * (budget + 1);
    let at = number % per_run;
    if at < 5 {
        return failed(FailureClass::Overloaded);
    }
    let (entry, place) = ((at - 5) / per_entry, (at - 5) % per_entry);
    let (last_entry, last_send) = (entry == budget, place == per_entry - 1);
    match (last_send, last_entry, place % 4) {
        (true, false, _) => failed(FailureClass::Crashed),
        (true, true, _) => answered(
            r#"{"status": "success", "summary": "x", "artifacts": []}"#,
            0.0,
        ),
        (false, _, 3) => answered(
            r#"{"status": "success", "summary": "x", "artifacts": ["no"]}"#,
            0.0,
        ),
        _ => answered("not yet", 0.0),
    }
}

/// A definition, and how its only role's phases are played.
const SMALL: [(&str, bool, usize); 4] = [
    ("  - {name: one, kind: agent, owner: dev}\n", false, 2),
    (
        "  - {name: one, kind: agent, owner: dev, gates: [{name: artifacts_exist, budget: 1}]}\n",
        true,
        1,
    ),
    (
        "  - {name: one, kind: agent, owner: dev, gates: [{name: artifacts_exist, budget: 1}]}\n  - {name: two, kind: agent, owner: dev, gates: [{name: artifacts_exist, budget: 1}]}\n",
        true,
        1,
    ),
    (
        "  - {name: one, kind: agent, owner: dev, gates: [{name: artifacts_exist, budget: 1}]}\n  - {name: test, kind: code, command: 'test -e \"$JIG_HANDOFF/again\" || { : > \"$JIG_HANDOFF/again\"; false; }', on_fail: {run: one, then: rerun-chain, budget: 1}}\n",
        true,
        1,
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_reaches_the_announced_worst_case_exactly() {
    for (phases, gates, budget) in SMALL {
        let text = format!("name: worst\n{ROSTER}\nphases:\n{phases}");
        let runtime = || Fake::new(move |number, _: &SendRequest| worst(number, gates, budget));
        let world = World::with_runtime(&[("src/a", "1\n")], &text, runtime());
        let bounds = bounds(&world.parsed());
        assert!(!bounds.capped, "{phases}");
        let ran = world.run().await;
        assert_eq!(
            ran.outcome.state,
            AttemptState::AcceptedUnpublished,
            "{}",
            ran.error()
        );
        assert_eq!(
            ran.outcome.result.spend.sends, bounds.worst_case_sends,
            "{phases}"
        );

        // One send less is one too few, so that nothing was left over.
        let mut world = World::with_runtime(&[("src/a", "1\n")], &text, runtime());
        world.max_sends = Some(bounds.worst_case_sends - 1);
        let ran = world.run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::SendBudget, "{phases}");
        assert_eq!(ran.outcome.result.spend.sends, bounds.worst_case_sends - 1);
    }
}

#[test]
fn the_arithmetic_of_this_file_is_that_of_the_bounds() {
    for (phases, gates, budget) in SMALL {
        let text = format!("name: worst\n{ROSTER}\nphases:\n{phases}");
        let parsed = jig_protocol::definition::parse(&text);
        let phase = &parsed.definition.unwrap().phases[0];
        let rounds = if gates { budget + 1 } else { 1 };
        assert_eq!(sends_per_run(phase), (5 + rounds * 4 * (budget + 1)) as u64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_product_of_all_ladders_stops_at_the_cap() {
    let text = format!(
        "name: wide\n{ROSTER}\nphases:\n  - {{name: one, kind: agent, owner: dev, gates: [{{name: artifacts_exist, budget: 4}}]}}\n"
    );
    let world = World::with_runtime(
        &[("src/a", "1\n")],
        &text,
        Fake::new(|number, _: &SendRequest| worst(number, true, 4)),
    );
    assert!(bounds(&world.parsed()).capped);
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::SendBudget);
    assert_eq!(ran.outcome.result.spend.sends, 64);
    assert_eq!(world.runtime.calls().len(), 64);
    let told = ran.named("attempt_send_budget_exhausted")[0]
        .payload
        .clone()
        .unwrap();
    assert_eq!(told, serde_json::json!({"max_sends": 64, "sends": 64}));
}

/// The pipe that the agent talks into can be opened by name on Linux.
#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn a_flood_of_an_agent_is_counted_and_not_kept() {
    let script = r#"
roles:
  dev:
    - run: |
        exec > /proc/$PPID/fd/1
        yes junk | head -n 3000
        yes '{"type":"tool","name":"Read","input":{}}' | head -n 11000
      emit: {status: success, summary: x}
"#;
    let definition =
        format!("name: one\n{ROSTER}\nphases:\n  - {{name: build, kind: agent, owner: dev}}\n");
    let world = World::new(&[("src/a", "1\n")], &definition, script);
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Completed, "{}", ran.error());
    assert_eq!(ran.named("unparsed_line").len(), limits::SEND_LOGS as usize);
    let tools = ran.of(EventKind::ToolCall).len();
    assert_eq!(tools, limits::SEND_EVENTS as usize);
    // One more is what the step says of its own command.
    let left = ran.named("left_out")[0].payload.as_ref().unwrap();
    let text = left["text"].as_str().unwrap();
    assert!(
        text.starts_with("2801 log entries and 1000 other events"),
        "{text}"
    );
}
