//! Small inputs that break tools of this kind.

use jig_protocol::event::EventKind;
use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::outcome::{AttemptEnd, Cause};
use serde_json::json;

use super::world::{DEV, World};

fn one_phase(rest: &str) -> String {
    format!("name: one\n{DEV}\nphases:\n  - {{name: build, kind: agent, owner: dev}}\n{rest}")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_commits_is_a_breach_and_its_commit_is_gone() {
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase(""),
        r#"
roles:
  dev:
    - write: {src/b: "x\n"}
      run: git add -A && git -c user.name=x -c user.email=x commit -qm sneaky
      run_must_succeed: true
      emit: {status: success, summary: x}
"#,
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Breach, "{}", ran.error());
    let head = std::process::Command::new("git")
        .arg("--git-dir")
        .arg(ran.outcome.prepared.dirs.git())
        .args(["rev-parse", ran.outcome.prepared.branch.as_deref().unwrap()])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&head.stdout).trim(),
        world.repo.head()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_entry_that_committed_is_undone() {
    let world = World::new(
        &[("src/a", "1\n")],
        &format!(
            "name: one\n{}\nphases:\n  - {{name: build, kind: agent, owner: dev}}\n",
            DEV.replace("writes:", "commits: true, writes:")
        ),
        r#"
roles:
  dev:
    - write: {src/a: "torn\n"}
      run: git -c user.name=x -c user.email=x commit -qam torn
      run_must_succeed: true
      end: crash
    - write: {src/b: "whole\n"}
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
    assert_eq!(ran.file("src/a").as_deref(), Some("1\n"));
    let paths: Vec<String> = ran
        .outcome
        .result
        .changed_paths
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(paths, ["src/b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_an_earlier_phase_changed_is_restored_byte_for_byte() {
    let world = World::new(
        &[("src/a", "1\n")],
        &format!(
            "name: two\n{DEV}\nphases:\n  - {{name: one, kind: agent, owner: dev}}\n  - {{name: two, kind: agent, owner: dev}}\n"
        ),
        r#"
roles:
  dev:
    - write: {src/a: "by the first\n", src/new: "kept\n"}
      chmod: {src/new: "755"}
      emit: {status: success, summary: x}
    - write: {src/a: "torn", src/new: "torn"}
      delete: [src/new]
      end: crash
    - emit: {status: success, summary: z}
"#,
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(ran.file("src/a").as_deref(), Some("by the first\n"));
    assert_eq!(ran.file("src/new").as_deref(), Some("kept\n"));
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(ran.tree().join("src/new"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_result_outranks_the_exit_code() {
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase(""),
        "roles: {dev: [{emit: the model said no, end: error, error_class: other}]}",
    );
    let ran = world.run().await;
    assert_eq!(ran.outcome.cause, Some(Cause::Other), "{}", ran.error());
    assert_eq!(world.runtime.calls().len(), 1);
    assert!(ran.of(EventKind::PhaseDeath).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_descendant_that_holds_stdout_does_not_hold_the_send() {
    let world = World::new(
        &[("src/a", "1\n")],
        &one_phase(""),
        "roles: {dev: [{spawn: 'exec sleep 600', setsid: true, emit: {status: success, summary: x}}]}",
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    jig_testkit::processes::assert_none_marked(&world.data.path().to_string_lossy());
    assert_eq!(ran.named("leftovers_stopped").len(), 1, "{}", ran.shape());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_leaves_children_behind_is_over_when_it_ends() {
    for command in [
        "sleep 600 & true",
        "setsid sleep 600 >/dev/null 2>&1 & true",
    ] {
        let world = World::new(
            &[("src/a", "1\n")],
            &format!(
                "name: one\n{DEV}\nphases:\n  - {{name: go, kind: code, command: '{command}'}}\n"
            ),
            "roles: {dev: []}",
        );
        let ran = world.run().await;
        assert_eq!(
            ran.outcome.state,
            AttemptState::AcceptedUnpublished,
            "{}",
            ran.error()
        );
        jig_testkit::processes::assert_none_marked(&world.data.path().to_string_lossy());
        let told = ran.named("leftovers_stopped");
        assert_eq!(told[0].payload.as_ref().unwrap()["count"], json!(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gates_of_one_name_are_judged_apart() {
    let gates = |second: &str| {
        format!(
            "
name: twice
{DEV}
phases:
  - name: one
    kind: code
    command: 'true'
    gates: [{{name: tests_pass, command: 'true'}}]
  - name: two
    kind: code
    command: 'true'
    gates: [{{name: tests_pass, command: 'true'}}, {{name: tests_pass, command: '{second}'}}]
    on_fail: {{run: fix, then: rerun-self, budget: 1, exhausted: proceed}}
  - {{name: fix, kind: agent, owner: dev}}
acceptance: [one.tests_pass, tests_pass]
"
        )
    };
    let ok = "{emit: {status: success, summary: x}}";
    let script = format!("roles: {{dev: [{ok}, {ok}]}}");
    let ran = World::new(&[("src/a", "1\n")], &gates("true"), &script)
        .run()
        .await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    let ran = World::new(&[("src/a", "1\n")], &gates("false"), &script)
        .run()
        .await;
    assert_eq!(ran.outcome.cause, Some(Cause::Acceptance));
    let checks = &ran.outcome.result.acceptance.as_ref().unwrap().checks;
    let judged: Vec<_> = checks
        .iter()
        .map(|check| (check.item.as_str(), check.ok))
        .collect();
    assert_eq!(
        judged,
        [
            ("all_phases_passed", false),
            ("one.tests_pass", true),
            ("tests_pass", false)
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_formatter_is_part_of_the_result_and_bounded_by_its_own_grant() {
    let chain = |writes: &str| {
        format!(
            "name: fmt\n{DEV}\nphases:\n  - {{name: fmt, kind: code, command: 'echo x > src/made', writes: {writes}}}\n"
        )
    };
    let ran = World::new(
        &[("src/a", "1\n")],
        &chain("['src/**']"),
        "roles: {dev: []}",
    )
    .run()
    .await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(ran.outcome.result.changed_paths.len(), 1);
    assert_eq!(ran.named("paths_touched").len(), 1);
    let ran = World::new(&[("src/a", "1\n")], &chain("[]"), "roles: {dev: []}")
        .run()
        .await;
    assert_eq!(ran.outcome.end, AttemptEnd::Breach);
    assert_eq!(ran.file("src/made"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_a_command_changed_is_put_back_and_told() {
    let world = World::new(
        &[("src/a", "1\n")],
        &format!(
            "name: husky\n{DEV}\nphases:\n  - {{name: setup, kind: code, command: git config core.hooksPath .husky}}\n"
        ),
        "roles: {dev: []}",
    );
    let ran = world.run().await;
    assert_eq!(
        ran.outcome.state,
        AttemptState::AcceptedUnpublished,
        "{}",
        ran.error()
    );
    assert_eq!(ran.named("metadata_restored").len(), 1);
}
