//! What reaches the program, and what it does not listen to.

use jig_protocol::definition::{Effort, OutputMode};
use jig_runtime::{AgentRuntime as _, RuntimeEvent, SendRequest, Session, structured};
use jig_testkit::model::{Step, Usage, Vendor};
use serde_json::{Value, json};

use super::lab::{lab, request};

fn used(step: Step, input: u64, output: u64) -> Step {
    step.usage(Usage {
        input,
        output,
        ..Usage::default()
    })
}

#[tokio::test]
async fn every_option_reaches_the_model_on_the_first_send_and_on_a_later_one() {
    let run = Step::tool("exec_command", json!({"cmd": "echo made > made.txt"}));
    let Some(lab) = lab([
        used(run, 1_000, 50),
        used(Step::text("one"), 2_000, 60),
        used(Step::text("two"), 4_000, 70),
    ]) else {
        return;
    };
    let mut session = Session::new("attempt-builder");
    let mut figures = Vec::new();
    for (send, said) in ["one", "two"].into_iter().enumerate() {
        let request = SendRequest {
            prompt: format!("prompt {send}"),
            system_prompt: "You are the \"builder\" of jig.\n".into(),
            effort: Some(Effort::Max),
            ..request(&lab)
        };
        let sent = lab.send_as(&mut session, request).await;
        assert_eq!(sent.answer(), said);
        let turn = lab.server.turns().pop().unwrap();
        assert_eq!(turn.model(), Some("gpt-5.5"));
        assert_eq!(turn.body.as_ref().unwrap()["reasoning"]["effort"], "xhigh");
        assert!(
            turn.contains("You are the \"builder\" of jig."),
            "{turn:#?}"
        );
        assert!(turn.last_user_text().contains(&format!("prompt {send}")));
        let usage = sent.report.usage.unwrap();
        figures.push((usage.input_tokens, usage.output_tokens));
        let threads: Vec<_> = sent
            .events
            .iter()
            .filter_map(|event| match event {
                RuntimeEvent::Log { log, text, .. } if log == "thread_started" => Some(text),
                _ => None,
            })
            .collect();
        assert_eq!(threads, [session.native_id.as_ref().unwrap()]);
    }
    assert_eq!(figures, [(3_000, 110), (4_000, 70)]);
    let served = lab.server.usage_served(Vendor::OpenAi);
    assert_eq!((served.input, served.output), (7_000, 180));
    // The second one has the first before it.
    let last = lab.server.turns().pop().unwrap();
    assert!(last.contains("prompt 0") && last.contains("one"));
    let made = std::fs::read_to_string(lab.stub.dir().join("tree/made.txt"));
    assert_eq!(made.unwrap(), "made\n");
    let home = lab.stub.dir().join("home/.codex");
    for private in ["config.toml", "AGENTS.md", "AGENTS.override.md"] {
        assert!(!home.join(private).exists(), "{private} stayed");
    }
    lab.assert_nobody_left();
}

/// What a work tree and a home hold for agents has no say: no text of it is
/// sent, no program of it runs.
#[tokio::test]
async fn the_work_tree_and_the_home_steer_nothing() {
    let Some(lab) = lab([Step::text("one"), Step::text("two")]) else {
        return;
    };
    let ran = lab.stub.dir().join("was-run");
    let touch = format!("touch {}", ran.display());
    let hooks =
        json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": touch}]}]}});
    let config = format!(
        "model = \"another\"\ndeveloper_instructions = \"STEERING-TEXT\"\n\
         notify = [\"touch\", {ran:?}]\n[mcp_servers.x]\ncommand = \"touch\"\nargs = [{ran:?}]\n"
    );
    let skill = "---\nname: evil\ndescription: STEERING-TEXT\n---\nSTEERING-TEXT\n";
    for dir in ["tree", "home"].map(|name| lab.stub.dir().join(name)) {
        for skills in [".agents/skills/evil", ".codex/skills/evil"] {
            std::fs::create_dir_all(dir.join(skills)).unwrap();
            std::fs::write(dir.join(skills).join("SKILL.md"), skill).unwrap();
        }
        std::fs::write(dir.join(".codex/config.toml"), &config).unwrap();
        std::fs::write(dir.join(".codex/hooks.json"), hooks.to_string()).unwrap();
        for name in ["AGENTS.md", "AGENTS.override.md", ".codex/AGENTS.md"] {
            std::fs::write(dir.join(name), "STEERING-TEXT").unwrap();
        }
    }
    let mut session = Session::new("s");
    for said in ["one", "two"] {
        let sent = lab.send_as(&mut session, request(&lab)).await;
        assert_eq!(sent.answer(), said);
        let turn = lab.server.turns().pop().unwrap();
        assert!(!turn.contains("STEERING-TEXT"), "{turn:#?}");
        assert_eq!(turn.model(), Some("gpt-5.5"));
        assert!(!ran.exists(), "a planted program was run");
    }
    // Of the tree nothing was changed.
    let kept = std::fs::read_to_string(lab.stub.dir().join("tree/.codex/config.toml"));
    assert_eq!(kept.unwrap(), config);
}

/// The schema is sent in the vendor's strict form, and the answer is the
/// envelope that it means; words instead of it go to the parse ladder.
#[tokio::test]
async fn structured_answers() {
    let strict = json!({"status": "success", "summary": "did it", "artifacts": [],
        "notes_for_next_agent": "", "further_fields": [{"name": "approved", "value": true}]});
    let Some(lab) = lab([Step::text(strict.to_string()), Step::text("I am done.")]) else {
        return;
    };
    let mut session = Session::new("s");
    let structured = || SendRequest {
        output: OutputMode::Structured,
        ..request(&lab)
    };
    let sent = lab.send_as(&mut session, structured()).await;
    let said: Value = serde_json::from_str(sent.answer()).unwrap();
    let expected = json!({"status": "success", "summary": "did it", "artifacts": [],
        "notes_for_next_agent": "", "approved": true});
    assert_eq!(said, expected);
    assert_eq!(
        lab.send_as(&mut session, structured()).await.answer(),
        "I am done."
    );
    for turn in lab.server.turns() {
        let format = &turn.body.as_ref().unwrap()["text"]["format"];
        assert_eq!(
            (&format["type"], &format["strict"]),
            (&json!("json_schema"), &json!(true))
        );
        assert_eq!(format["schema"], structured::strict_envelope_schema());
    }
}

#[tokio::test]
async fn the_installed_program_has_all_that_is_used() {
    let Some(lab) = lab([]) else { return };
    let found = lab.runtime.probe().await.unwrap();
    assert_eq!(found.version, "0.171.0");
    assert!(found.can_resume && found.supports_effort && found.supports_structured);
    assert!(!found.reports_cost && !found.supports_tools && !found.supports_budget);
    assert_eq!(found.warnings, Vec::<String>::new());
}

/// Eight at once, each in its own HOME.
#[tokio::test(flavor = "multi_thread")]
async fn eight_at_once_do_not_meet() {
    let sends: Vec<_> = (0..8)
        .map(|n| {
            tokio::spawn(async move {
                let Some(lab) = lab([Step::text(format!("answer {n}"))]) else {
                    return;
                };
                let mut session = Session::new(format!("s{n}"));
                let sent = lab.send_as(&mut session, request(&lab)).await;
                assert_eq!(sent.answer(), format!("answer {n}"));
                assert!(session.native_id.is_some());
            })
        })
        .collect();
    for send in sends {
        send.await.unwrap();
    }
}
