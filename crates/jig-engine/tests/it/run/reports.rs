//! Reports of code phases, protection, hold, what commands are told.

use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::outcome::{AttemptEnd, Cause, PublishMarker};
use serde_json::json;

use super::world::{DEV, World};

fn chain(rest: &str) -> String {
    format!("name: chain\n{DEV}\nphases:\n{rest}")
}

fn risky(command: &str) -> String {
    chain(&format!(
        "
  - {{name: risk, kind: code, command: '{command}', reports_fields: true}}
  - {{name: review, kind: agent, owner: dev, if: \"risk == high\"}}
publish: {{hold_when: \"risk == high\"}}
"
    ))
}

const NOBODY: &str = "roles: {dev: []}";

#[tokio::test(flavor = "multi_thread")]
async fn a_high_risk_is_reviewed_and_held() {
    let world = World::new(
        &[("src/a", "1\n")],
        &risky("echo noise; echo \"{\\\"risk\\\": \\\"high\\\"}\""),
        "roles: {dev: [{emit: {status: success, summary: looked}}]}",
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(ran.outcome.cause, Some(Cause::Held));
    assert_eq!(ran.entries(), ["risk", "review"]);
    let hold = ran.outcome.hold.clone().unwrap();
    assert!(
        hold.contains("risk == high") && hold.contains("\"high\""),
        "{hold}"
    );
    assert_eq!(ran.outcome.result.publish, PublishMarker::Held);
    assert_eq!(ran.outcome.result.publish_hold, Some(hold.clone()));
    assert_eq!(
        ran.named("publish_held")[0].payload,
        Some(json!({"reason": hold}))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_low_risk_is_neither() {
    let world = World::new(
        &[("src/a", "1\n")],
        &risky("echo \"{\\\"risk\\\": \\\"low\\\"}\""),
        NOBODY,
    );
    let ran = world.run().await;
    assert_eq!(ran.entries(), ["risk", "review/skipped"]);
    assert_eq!(ran.outcome.hold, None);
    assert_eq!(ran.outcome.result.publish, PublishMarker::NothingToPublish);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_that_cannot_be_read_fail_the_phase() {
    let long = format!(
        "printf \"%040000d\" 0 >/dev/null; head -c {} /dev/zero | tr \"\\0\" x",
        40_000
    );
    for (command, expected) in [
        ("echo done", "no JSON object"),
        ("true", "no line"),
        ("echo \"{\\\"passed\\\": true}\"", "reserved"),
        (long.as_str(), "longer than 32768 bytes"),
        // stderr is not where reports are read.
        ("echo \"{\\\"risk\\\": 1}\" >&2", "no line"),
    ] {
        let world = World::new(&[("src/a", "1\n")], &risky(command), NOBODY);
        let ran = world.run().await;
        assert_eq!(ran.outcome.cause, Some(Cause::Command), "{command}");
        assert!(
            ran.error().contains("reports_fields") && ran.error().contains(expected),
            "{command}: {}",
            ran.error()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_unterminated_report_line_is_read_whole() {
    let world = World::new(
        &[("src/a", "1\n")],
        &risky("printf \"{\\\"pad\\\": \\\"%09000d\\\", \\\"risk\\\": \\\"high\\\"}\" 0"),
        "roles: {dev: [{emit: {status: success, summary: looked}}]}",
    );
    let ran = world.run().await;
    assert_eq!(ran.entries(), ["risk", "review"], "{}", ran.error());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_talk_a_reported_risk_down() {
    let world = World::new(
        &[("src/a", "1\n")],
        &risky("echo \"{\\\"risk\\\": \\\"high\\\"}\""),
        "roles: {dev: [{emit: {status: success, summary: fine, risk: low}}]}",
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.cause, Some(Cause::Held));
    assert_eq!(
        ran.named("reported_field_protected")[0].payload,
        Some(json!({
            "role": "dev", "field": "risk", "reported_by": "risk",
            "kept": "high", "ignored": "low",
        }))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inequality_over_a_field_nobody_reported_holds() {
    let world = World::new(
        &[("src/a", "1\n")],
        &chain(
            "
  - {name: build, kind: agent, owner: dev}
publish: {hold_when: \"reviewed != true\"}
",
        ),
        "roles: {dev: [{emit: {status: success, summary: x}}]}",
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.state, AttemptState::AcceptedUnpublished);
    assert!(ran.outcome.hold.unwrap().contains("nobody reported it"));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_know_where_they_stand_and_what_changed() {
    let world = World::new(
        &[("src/a", "1\n")],
        &chain(
            r#"
  - {name: build, kind: agent, owner: dev}
  - name: look
    kind: code
    command: |
      test "$JIG_PHASE" = look && test -d "$JIG_HANDOFF" && test -n "$JIG_ATTEMPT_ID" &&
      test "$JIG_BASE_SHA" != "$JIG_HEAD_SHA" &&
      test "$(git diff --name-only "$JIG_BASE_SHA" "$JIG_HEAD_SHA")" = src/new
"#,
        ),
        "roles: {dev: [{write: {src/new: \"x\\n\"}, emit: {status: success, summary: x}}]}",
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Completed, "{}", ran.error());
    assert_eq!(ran.outcome.state, AttemptState::AcceptedUnpublished);
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_command_failed_is_told_apart() {
    for (command, exit, words) in [
        ("exit 3", json!(3), "exit 3"),
        ("kill -9 $$", json!(-1), "signal 9"),
        ("no-such-program-here", json!(127), "exit 127"),
        ("sleep 600", json!(-1), "timed out after 300 ms"),
    ] {
        let text = chain(&format!(
            "  - {{name: go, kind: code, command: '{command}'}}\n"
        ));
        let world = World::new(
            &[("src/a", "1\n")],
            &if command.starts_with("sleep") {
                format!("{text}limits: {{phase_timeout: 300ms}}\n")
            } else {
                text
            },
            NOBODY,
        );
        let ran = world.run().await;
        assert_eq!(ran.outcome.cause, Some(Cause::Command), "{command}");
        let result = ran.named("command_result")[0].payload.clone().unwrap();
        assert_eq!(result["exit_code"], exit, "{command}");
        assert_eq!(result["timed_out"], json!(command == "sleep 600"));
        assert!(ran.error().contains(words), "{command}: {}", ran.error());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_kept_apart() {
    let world = World::new(
        &[("src/a", "1\n")],
        &chain("  - {name: go, kind: code, command: 'echo out; echo err >&2'}\n"),
        NOBODY,
    );
    let ran = world.run().await;
    let result = ran.named("command_result")[0].payload.clone().unwrap();
    assert_eq!(result["output_tail"], json!("out\n"));
    assert_eq!(result["stderr_tail"], json!("err\n"));
}
