//! What reaches the program, and what it does not listen to.

use jig_protocol::definition::{Effort, OutputMode};
use jig_runtime::{AgentRuntime as _, RuntimeEvent, SendRequest, Session};
use jig_testkit::model::Step;
use serde_json::json;

use super::lab::lab;

#[tokio::test]
async fn every_option_reaches_the_model_on_the_first_send_and_on_a_later_one() {
    let Some(lab) = lab([Step::text("one"), Step::text("two")]) else {
        return;
    };
    let mut session = Session::new("attempt-builder");
    for (send, said) in ["one", "two"].into_iter().enumerate() {
        let request = SendRequest {
            prompt: format!("prompt {send}"),
            system_prompt: "You are the builder of jig.".into(),
            effort: Some(Effort::High),
            budget_usd: Some(5.0),
            tools: Some(vec!["Read".into(), "Bash".into()]),
            ..lab.request()
        };
        let sent = lab.send_as(&mut session, request).await;
        assert_eq!(sent.answer(), said);
        let turn = lab.server.turns().pop().unwrap();
        let body = turn.body.as_ref().unwrap();
        assert!(
            turn.model().unwrap().contains("sonnet"),
            "{:?}",
            turn.model()
        );
        assert_eq!(body["output_config"]["effort"], "high");
        let mut tools = turn.tools();
        // Stands for tools that are there on demand: none of them.
        tools.retain(|tool| *tool != "DeferredToolPlaceholder");
        tools.sort_unstable();
        assert_eq!(tools, ["Bash", "Read"]);
        assert!(turn.system().contains("You are the builder of jig."));
        assert!(turn.last_user_text().contains(&format!("prompt {send}")));
        let log = sent.events.iter().find_map(|event| match event {
            RuntimeEvent::Log { log, detail, .. } if log == "system:init" => detail.clone(),
            _ => None,
        });
        let init = log.unwrap();
        assert_eq!(init["session_id"], json!(session.native_id));
        assert_eq!(init["claude_code_version"], "2.1.332");
        assert_eq!(init["apiKeySource"], "ANTHROPIC_API_KEY");
    }
    // The second one has the first before it.
    let last = lab.server.turns().pop().unwrap();
    assert!(last.contains("prompt 0") && last.contains("one"));
    assert_eq!(session.sends, 2);
    let home = lab.stub.dir().join("home");
    assert!(!home.join(".jig-system-prompt").exists());
}

/// What a work tree holds for agents has no say: no text of it is sent, no
/// program of it runs.
#[tokio::test]
async fn the_work_tree_and_the_home_steer_nothing() {
    let Some(lab) = lab([Step::text("one")]) else {
        return;
    };
    let ran = lab.stub.dir().join("was-run");
    let touch = format!("touch {}", ran.display());
    let hook = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": touch}]}]},
        "model": "opus", "env": {"FROM_SETTINGS": "1"}});
    let server = json!({"mcpServers": {"x": {"command": "touch", "args": [ran]}}});
    for place in ["tree", "home"] {
        let dir = lab.stub.dir().join(place);
        std::fs::create_dir_all(dir.join(".claude/skills/evil")).unwrap();
        std::fs::write(dir.join(".claude/settings.json"), hook.to_string()).unwrap();
        std::fs::write(dir.join(".claude/settings.local.json"), hook.to_string()).unwrap();
        std::fs::write(dir.join(".mcp.json"), server.to_string()).unwrap();
        std::fs::write(dir.join("CLAUDE.md"), "STEERING-TEXT").unwrap();
        std::fs::write(dir.join(".claude/CLAUDE.md"), "STEERING-TEXT").unwrap();
        let skill = "---\nname: evil\ndescription: STEERING-TEXT\n---\nSTEERING-TEXT\n";
        std::fs::write(dir.join(".claude/skills/evil/SKILL.md"), skill).unwrap();
    }
    let sent = lab.send(&mut Session::new("s")).await;
    assert_eq!(sent.answer(), "one");
    let turn = lab.server.turns().pop().unwrap();
    assert!(!turn.contains("STEERING-TEXT"), "{turn:#?}");
    assert!(turn.model().unwrap().contains("sonnet"));
    assert!(!ran.exists(), "a planted program was run");
}

/// The object that the tool was called with is the answer; a wrong call is
/// bounced by the program itself; without a call the words are the answer, for
/// the parse ladder.
#[tokio::test]
async fn structured_answers() {
    let envelope = json!({"status": "success", "summary": "did it", "artifacts": [],
        "notes_for_next_agent": "", "approved": true});
    let calls = |input| Step::tool("StructuredOutput", input);
    let Some(lab) = lab([
        calls(envelope.clone()),
        Step::text("ok"),
        calls(json!({"status": "perhaps"})),
        calls(envelope.clone()),
        Step::text("ok"),
        Step::text("I am done."),
        Step::text("I am really done."),
    ]) else {
        return;
    };
    let mut session = Session::new("s");
    let structured = || SendRequest {
        output: OutputMode::Structured,
        ..lab.request()
    };
    for _ in 0..2 {
        let sent = lab.send_as(&mut session, structured()).await;
        let said: serde_json::Value = serde_json::from_str(sent.answer()).unwrap();
        assert_eq!(said, envelope);
    }
    let sent = lab.send_as(&mut session, structured()).await;
    assert!(sent.answer().contains("done"), "{}", sent.answer());
    assert!(lab.server.turns()[0].tools().contains(&"StructuredOutput"));
}

/// Every option that a send uses is one that the probe asks for, and the
/// installed program has them all.
#[tokio::test]
async fn the_installed_program_has_all_that_is_used() {
    let Some(lab) = lab([]) else { return };
    let found = lab.runtime.probe().await.unwrap();
    assert_eq!(found.version, "2.1.332");
    assert!(found.can_resume && found.reports_cost && found.supports_tools);
    assert!(found.supports_budget && found.supports_effort && found.supports_structured);
    assert_eq!(found.warnings, Vec::<String>::new());
}
