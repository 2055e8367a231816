//! What a step does, and in which order.

use std::os::unix::fs::PermissionsExt;

use jig_protocol::outcome::FailureClass;
use jig_runtime::{AgentRuntime, RuntimeEvent, Session};
use jig_runtime_scripted::{Script, ScriptError};
use serde_json::json;

use crate::bench::Bench;

#[tokio::test]
async fn a_step_acts_for_real_and_reports_like_an_agent() {
    let bench = Bench::new(
        r#"
roles:
  builder:
    - expect: ["Task:", one]
      write: {src/a.txt: "one\n", "~/note": home, "{dir}/outside": out}
      delete: [old.txt, olddir]
      symlink: {link: src/a.txt}
      chmod: {src/a.txt: "640"}
      run: "cat src/a.txt link; stat -c %a src/a.txt 2>/dev/null; echo to-stderr >&2"
      tools: [{name: Edit, input: {file: src/a.txt}}]
      text: [fr, ee]
      emit: {status: success, summary: done}
      usage: {input_tokens: 10, output_tokens: 5, cost_usd: 0.25, context_tokens: 15}
"#,
    );
    std::fs::write(bench.tree().join("old.txt"), "").unwrap();
    std::fs::create_dir_all(bench.tree().join("olddir/below")).unwrap();
    let sent = bench.send("builder", "Task: one").await;
    assert_eq!(sent.answer(), r#"{"status":"success","summary":"done"}"#);
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(bench.tree().join("src/a.txt")), "one\n");
    assert_eq!(read(bench.home().join("note")), "home");
    assert_eq!(read(bench.dir.path().join("outside")), "out");
    assert!(!bench.tree().join("old.txt").exists() && !bench.tree().join("olddir").exists());
    assert_eq!(
        std::fs::read_link(bench.tree().join("link"))
            .unwrap()
            .to_str(),
        Some("src/a.txt")
    );
    let mode = std::fs::metadata(bench.tree().join("src/a.txt"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);

    let (_, detail) = sent.log("run").unwrap();
    assert_eq!(detail.unwrap()["exit_code"], 0);
    assert!(
        detail.unwrap()["stdout"]
            .as_str()
            .unwrap()
            .starts_with("one\none\n")
    );
    let rest: Vec<_> = sent
        .events
        .iter()
        .filter(|event| {
            !matches!(
                event,
                RuntimeEvent::Log { .. } | RuntimeEvent::Started { .. }
            )
        })
        .collect();
    let delta = |text: &str| RuntimeEvent::TextDelta { text: text.into() };
    assert_eq!(
        rest,
        [
            &RuntimeEvent::ToolCall {
                tool: "Edit".into(),
                input: json!({"file": "src/a.txt"})
            },
            &delta("fr"),
            &delta("ee"),
        ]
    );
    let usage = sent.report.usage.unwrap();
    assert_eq!(
        (
            usage.input_tokens,
            usage.output_tokens,
            usage.context_tokens
        ),
        (10, 5, 15)
    );
    assert_eq!(usage.cost_usd, Some(0.25));
}

#[tokio::test]
async fn each_role_plays_its_own_steps_in_order() {
    let bench =
        Bench::new("roles: {a: [{emit: a1}, {emit: a2}, {emit: a3}], b: [{emit: b1}], c: []}");
    assert_eq!(bench.send("a", "").await.answer(), "a1");
    assert_eq!(bench.send("b", "").await.answer(), "b1");
    let first = bench.send_in("a", "", Session::new("key")).await;
    assert_eq!(first.answer(), "a2");
    assert_eq!(bench.runtime.unused_steps(), [("a".to_owned(), 1)].into());
    assert_eq!(first.session.native_id.as_deref(), Some("scripted-key"));
    let second = bench.send_in("a", "", first.session).await;
    assert_eq!((second.answer(), second.session.sends), ("a3", 2));
    assert_eq!(second.session.native_id.as_deref(), Some("scripted-key"));
    assert!(bench.runtime.unused_steps().is_empty());

    for (role, named) in [
        ("a", "all 3 were played"),
        ("c", "no steps"),
        ("nobody", "no steps"),
    ] {
        let sent = bench.send(role, "").await;
        let (class, message) = sent.failure();
        assert_eq!(class, FailureClass::Script);
        assert!(
            message.contains(named) && message.contains(role),
            "{message}"
        );
        assert_eq!(sent.session.sends, 0);
        assert!(sent.events.is_empty());
    }
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_stops_the_step_before_it_acts() {
    for (step, named) in [
        (
            "{expect: [here, nowhere], write: {f: x}, emit: x}",
            "\"nowhere\"",
        ),
        ("{expect_absent: here, write: {f: x}, emit: x}", "\"here\""),
    ] {
        let bench = Bench::new(&format!("roles:\n  r: [{step}]\n"));
        let sent = bench.send("r", "it is here").await;
        let (class, message) = sent.failure();
        assert_eq!(class, FailureClass::Script);
        assert!(message.contains(named), "{message}");
        assert!(!bench.tree().join("f").exists());
    }
}

#[tokio::test]
async fn a_failing_command_is_reported_and_fatal_only_on_request() {
    let bench = Bench::new(
        r#"roles: {r: [{run: "exit 4", emit: went-on}, {run: "exit 4", run_must_succeed: true, write: {f: x}, emit: went-on}]}"#,
    );
    let sent = bench.send("r", "").await;
    assert_eq!(sent.answer(), "went-on");
    assert_eq!(sent.log("run").unwrap().1.unwrap()["exit_code"], 4);
    let sent = bench.send("r", "").await;
    let (class, message) = sent.failure();
    assert_eq!(class, FailureClass::Script);
    assert!(message.contains("exit 4"), "{message}");
}

#[tokio::test]
async fn what_the_system_refuses_is_reported_and_the_step_goes_on() {
    let bench = Bench::new(
        "roles: {r: [{write: {/proc/nope: x}, delete: [missing], chmod: {missing: \"600\"}, emit: went-on}]}",
    );
    let sent = bench.send("r", "").await;
    assert_eq!(sent.answer(), "went-on");
    for log in ["write_failed", "delete_failed", "chmod_failed"] {
        assert!(sent.log(log).is_some(), "{log}");
    }
}

#[tokio::test]
async fn it_can_do_what_real_agents_can() {
    let bench = Bench::new("can_resume: false\nroles: {}");
    let found = bench.runtime.probe().await.unwrap();
    assert!(!found.can_resume);
    assert!(found.supports_tools && found.supports_budget && found.supports_effort);
    assert!(found.reports_cost && found.supports_structured);
}

#[test]
fn roles_that_the_definition_lacks_are_all_named() {
    let definition = r#"
name: d
roster:
  builder: {model: m, system_prompt: s, user_prompt: "{{prompt}}", writes: []}
phases:
  - {name: build, kind: agent, owner: builder}
acceptance: [all_phases_passed]
"#;
    let parsed = jig_protocol::definition::parse(definition);
    let Some(definition) = &parsed.definition else {
        panic!("{parsed:?}")
    };
    let fits = Script::parse("roles: {builder: []}").unwrap();
    fits.check_roles(definition).unwrap();
    let error = Script::parse("roles: {builder: [], x: [], y: []}")
        .unwrap()
        .check_roles(definition)
        .unwrap_err();
    assert!(matches!(&error, ScriptError::UnknownRoles { unknown, .. } if unknown == &["x", "y"]));
    assert!(error.to_string().contains("`x`, `y`") && error.to_string().contains("`builder`"));
}
