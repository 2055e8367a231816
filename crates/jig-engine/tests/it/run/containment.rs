//! What an entry wrote where it may not, prompts, HOMEs, environments.

use jig_protocol::event::EventKind;
use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::outcome::{AttemptEnd, Cause};
use serde_json::json;

use super::world::{DEV, Watch, World};
use std::sync::Arc;

fn one_phase() -> String {
    format!("name: one\n{DEV}\nphases:\n  - {{name: build, kind: agent, owner: dev}}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_outside_is_undone_named_and_not_retried() {
    let world = World::new(
        &[("src/a", "1\n"), ("README", "mine\n")],
        &one_phase(),
        r#"
roles:
  dev:
    - write: {src/ok: "x\n", stray: "x\n", README: "theirs\n"}
      emit: {status: success, summary: x}
      usage: {input_tokens: 1, output_tokens: 1, cost_usd: 0.5}
"#,
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Breach);
    assert_eq!(ran.outcome.cause, Some(Cause::Breach));
    assert_eq!(ran.outcome.state, AttemptState::Failed);
    for part in ["2 paths", "stray", "README"] {
        assert!(ran.error().contains(part), "{part}: {}", ran.error());
    }
    assert_eq!(ran.file("stray"), None);
    assert_eq!(ran.file("README").as_deref(), Some("mine\n"));
    assert_eq!(ran.file("src/ok").as_deref(), Some("x\n"));
    assert_eq!(ran.of(EventKind::PhaseStart).len(), 1);
    let end = ran.payload(0, EventKind::AgentEnd);
    assert_eq!(
        (&end["outcome"], &end["cost"]),
        (&json!("aborted"), &json!(0.5))
    );
    let breach = ran.named("write_boundary_breach")[0]
        .payload
        .clone()
        .unwrap();
    assert_eq!(breach["total"], json!(2));
    let list = std::fs::read_to_string(breach["list"].as_str().unwrap()).unwrap();
    assert_eq!(list.lines().count(), 2, "{list}");
    assert_eq!(ran.payload(0, EventKind::PhaseEnd)["status"], json!("fail"));
    assert!(ran.named("paths_touched").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_paths_are_shown_and_all_are_listed() {
    let writes: String = (0..25).map(|n| format!("stray/{n:02}: x, ")).collect();
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase(),
        &format!(
            "roles: {{dev: [{{write: {{{}}}, emit: {{status: success, summary: x}}}}]}}",
            writes.trim_end_matches(", ")
        ),
    );
    let ran = world.run().await;
    let breach = ran.named("write_boundary_breach")[0]
        .payload
        .clone()
        .unwrap();
    assert_eq!(breach["breaches"].as_array().unwrap().len(), 20);
    assert_eq!(breach["total"], json!(25));
    let list = std::fs::read_to_string(breach["list"].as_str().unwrap()).unwrap();
    assert_eq!(list.lines().count(), 25);
    assert!(ran.error().contains("and 5 more"), "{}", ran.error());
    assert!(!ran.tree().join("stray").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_breach_outranks_a_failed_phase_and_both_are_told() {
    let bad = "{write: {stray: x}, emit: nothing}";
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase(),
        &format!("roles: {{dev: [{bad}, {bad}, {bad}, {bad}]}}"),
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Breach);
    assert!(ran.error().contains("stray") && ran.error().contains("no valid envelope"));
    assert_eq!(ran.file("stray"), None);
    let end = ran.payload(0, EventKind::AgentEnd);
    assert_eq!(
        (&end["outcome"], &end["sends"]),
        (&json!("aborted"), &json!(4))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_entry_is_judged_and_its_breach_outranks() {
    for (write, expected) in [
        ("{src/ok: x, stray: x}", AttemptEnd::Breach),
        ("{src/ok: x}", AttemptEnd::Cancelled),
    ] {
        let mut world = World::new(
            &[("src/a", "1\n")],
            &one_phase(),
            &format!("roles: {{dev: [{{write: {write}, text: wrote, end: hang}}]}}"),
        );
        let cancel = world.cancel.clone();
        world.sink = Arc::new(Watch(move |event| {
            if event.name.as_deref() == Some("agent_text") {
                cancel.raise(jig_process::StopReason::Cancelled);
            }
        }));
        let ran = world.run().await;
        assert_eq!(ran.outcome.end, expected, "{}", ran.error());
        assert!(ran.error().contains("cancelled"), "{}", ran.error());
        assert_eq!(ran.file("stray"), None);
        assert_eq!(ran.file("src/ok").as_deref(), Some("x"));
        let end = ran.payload(0, EventKind::AgentEnd);
        assert_eq!(end["unmetered_sends"], json!(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fatal_class_still_judges_the_entry() {
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase(),
        "roles: {dev: [{write: {stray: x}, end: error, error_class: auth, emit: log in}]}",
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Breach, "{}", ran.error());
    assert_eq!(ran.file("stray"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_and_commands_have_homes_and_environments_of_their_own() {
    let mut world = World::new(
        &[("src/a", "1\n")],
        "
name: homes
roster:
  one: {model: m, system_prompt: s, user_prompt: u, writes: [], env: [SHOWN]}
  two: {model: m, system_prompt: s, user_prompt: u, writes: []}
phases:
  - {name: first, kind: agent, owner: one}
  - name: look
    kind: code
    owner: one
    command: 'test ! -e ~/.planted && test ! -e ~/.login && test \"$SHOWN\" = yes && test -z \"$HIDDEN\"'
  - name: second
    kind: agent
    owner: two
    gates: [{name: tests_pass, command: 'test -z \"$SHOWN$HIDDEN\" && env > src-env.txt; mv src-env.txt \"$JIG_HANDOFF/\"'}]
",
        r#"
roles:
  one:
    - write: {"~/.planted": "x"}
      run: test -e ~/.login && test "$SHOWN" = yes && test -z "$HIDDEN"
      run_must_succeed: true
      emit: {status: success, summary: x}
  two:
    - run: test ! -e ~/.planted && test -z "$SHOWN"
      run_must_succeed: true
      emit: {status: success, summary: x}
"#,
    );
    world.operator_env.insert("SHOWN".into(), "yes".into());
    world.operator_env.insert("HIDDEN".into(), "secret".into());
    world.runtime.give_login(".login", "token");
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    let calls = world.runtime.calls();
    assert_ne!(calls[0].env["HOME"], calls[1].env["HOME"]);
    assert!(!calls[0].env.contains_key("HIDDEN"));
    // The login is gone as soon as nobody needs it.
    let home = std::path::PathBuf::from(&calls[0].env["HOME"]);
    assert!(!home.join(".login").exists());
    let env = std::fs::read_to_string(ran.outcome.prepared.dirs.handoff().join("src-env.txt"));
    let env = env.unwrap();
    assert!(
        !env.contains("secret") && env.contains("JIG_BASE_SHA="),
        "{env}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_come_from_the_base_commit_whatever_an_agent_writes() {
    let world = World::new(
        &[(
            "prompts/user.md",
            "The real one: {{prompt}} at {{base_sha}}",
        )],
        "
name: prompts
roster:
  dev: {model: m, system_prompt: s, user_prompt_path: prompts/user.md, writes: ['**']}
phases:
  - {name: one, kind: agent, owner: dev}
  - {name: two, kind: agent, owner: dev}
",
        r#"
roles:
  dev:
    - write: {prompts/user.md: "forged"}
      emit: {status: success, summary: x}
    - expect: ["The real one: Do it."]
      expect_absent: [forged]
      emit: {status: success, summary: x}
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    let prompts = &ran.events[0].payload.as_ref().unwrap()["prompts"];
    assert_eq!(prompts[0]["path"], json!("prompts/user.md"));
    assert!(world.runtime.calls()[0].prompt.contains(&world.repo.head()));
}
