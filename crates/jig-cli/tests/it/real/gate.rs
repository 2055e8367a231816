//! The exit gate: the stock two-phase definition with a genuine agent, three
//! accepted runs in a row, of which one has an answer that is none corrected
//! and one a claim that is wrong, each within the same conversation.

use jig_testkit::model::{Script, Usage};
use serde_json::{Value, json};

use super::world::{Agent, World, answer, names};
use crate::support::{branch, entries, example, of_type, sample, trace};

/// What the agent does in one of the runs.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Plain,
    NoAnswer,
    WrongClaim,
}

const NO_ANSWER: &str = "I have written the note, all is well.";
const WRONG_CLAIM: &str = "never-written.txt";

fn note(run: usize) -> String {
    format!("the note of run {run}")
}

fn script(agent: Agent, ways: &[Way]) -> Script {
    let mut steps = Vec::new();
    for (run, way) in ways.iter().enumerate() {
        steps.push(agent.writes("jig-note.txt", &note(run)));
        match way {
            Way::Plain => {}
            Way::NoAnswer => steps.push(jig_testkit::model::Step::text(NO_ANSWER)),
            Way::WrongClaim => steps.push(answer(&["jig-note.txt", WRONG_CLAIM])),
        }
        steps.push(answer(&["jig-note.txt"]));
    }
    agent.plays(Script::new(), steps)
}

/// The stock definition as a user of this agent edits it.
fn edited(agent: Agent) -> String {
    let stock = std::fs::read_to_string(example("definitions/two-phase.yaml")).unwrap();
    let mut text = stock.replace("env: [PATH]", &agent.role_env());
    assert_ne!(text, stock);
    if agent == Agent::Codex {
        // It takes models of its own vendor, and no budget.
        text = text.replace("model: haiku", &format!("model: {}", agent.model()));
        text = text.replace("    budget_usd: 1\n", "");
    }
    text
}

fn three_runs(agent: Agent) {
    let ways = [Way::Plain, Way::NoAnswer, Way::WrongClaim];
    let Some(mut world) = World::new(&[agent], &edited(agent), script(agent, &ways)) else {
        return;
    };
    world.trial.repo = sample(&world.trial.env, "sample");
    world.settle();
    let mut turns = 0;
    let mut per_turn = None;
    for (run, way) in ways.into_iter().enumerate() {
        let before = world.served();
        let done = world.run();
        let report = done.expect(0).json();
        assert_accepted(&world, &report, run);
        assert_corrected(&world, &report, way, &done.stderr);
        assert_spend(&report, before, world.served());
        let made = world.server.turns().len() - turns;
        turns += made;
        if agent == Agent::Claude {
            // The same figures cost the same in every run, however often the
            // conversation was taken up again.
            let one = report["spend"]["cost_usd"].as_f64().unwrap() / made as f64;
            assert!(one > 0.0, "{report}");
            let first = *per_turn.get_or_insert(one);
            assert!((one - first).abs() < 1e-9, "{one} and {first}");
        }
        world.assert_nothing_left();
    }
    assert_eq!(world.server.steps_left(), 0);
    world.assert_key_nowhere();
}

/// The work was delivered, exactly it, and everything else is as documented.
#[track_caller]
fn assert_accepted(world: &World, report: &Value, run: usize) {
    assert_eq!(report["state"], "accepted_unpublished");
    assert_eq!(report["outcome"], "accepted");
    assert_eq!(report["publish"], "local_branch");
    assert_eq!(report["acceptance"]["passed"], true);
    assert_eq!(report["changed_paths"], json!(["jig-note.txt"]));
    assert_eq!(entries(report), ["build:success", "verify:success"]);
    assert_eq!(report["tree"], Value::Null);

    let (env, repo) = (&world.trial.env, &world.trial.repo);
    let branch = branch(env, repo, report);
    let git = |args: &[&str]| env.git(repo, args);
    let expected = format!("{}\n", note(run));
    assert_eq!(git(&["show", &format!("{branch}:jig-note.txt")]), expected);
    let range = format!("main..{branch}");
    assert_eq!(
        git(&["diff", "--name-status", "main", &branch]),
        "A\tjig-note.txt\n"
    );
    assert_eq!(git(&["log", "--format=%an", &range]), "jig\n");

    let attempt = report["attempt_id"].as_str().unwrap();
    world.trial.assert_whole_record(attempt);
    let dir = world.trial.env.data().join("attempts").join(attempt);
    assert_eq!(names(&dir), ["git", "logs", "manifest.json", "trace.jsonl"]);
}

/// What went wrong was put right in the conversation it went wrong in.
#[track_caller]
fn assert_corrected(world: &World, report: &Value, way: Way, stderr: &str) {
    let events = trace(report);
    let count = |kind: &str, name: Option<&str>| of_type(&events, kind, name).len();
    let (parse, gate) = (way == Way::NoAnswer, way == Way::WrongClaim);
    let sends = 1 + usize::from(parse) + usize::from(gate);
    assert_eq!(report["budgets"]["parse_corrections"], usize::from(parse));
    assert_eq!(report["budgets"]["gate_corrections"], usize::from(gate));
    assert_eq!(report["budgets"]["deaths"], 0);
    assert_eq!(count("log", Some("invalid_envelope")), usize::from(parse));
    assert_eq!(
        count("gate_fail", Some("diff_matches_claims")),
        usize::from(gate)
    );
    assert_eq!(count("gate_fail", None), usize::from(gate));
    assert_eq!(count("gate_pass", None), if gate { 3 } else { 2 });
    assert_eq!(stderr.contains("answer not understood"), parse, "{stderr}");
    assert_eq!(stderr.contains(WRONG_CLAIM), gate, "{stderr}");

    // One entry and one session, which jig told the agent to take up again.
    assert_eq!(count("agent_start", None), 1);
    let end = of_type(&events, "agent_end", None);
    assert_eq!(end.len(), 1);
    assert_eq!(end[0]["payload"]["sends"], sends);
    assert_eq!(end[0]["payload"]["outcome"], "passed");
    if let Some(sessions) = sessions(&events) {
        assert_eq!(sessions.len(), sends, "{sessions:?}");
        assert!(sessions.iter().all(|id| *id == sessions[0]), "{sessions:?}");
    }
    // The model, when it was told what is wrong, still had the whole
    // conversation before it: its own answer, and the work it did.
    if sends > 1 {
        let last = world.server.turns().pop().unwrap();
        let (said, told) = match way {
            Way::NoAnswer => (NO_ANSWER, "no JSON object was found"),
            _ => (WRONG_CLAIM, "is claimed but did not change"),
        };
        for words in [said, told, "Write your result to the file jig-note.txt"] {
            assert!(last.contains(words), "{words:?} is not in {last:#?}");
        }
        assert!(last.contains("the note of run"), "{last:#?}");
    }
}

/// The conversation's id at the start of each send, as the agent names it;
/// `None` where its events do not.
fn sessions(events: &[Value]) -> Option<Vec<String>> {
    let named = of_type(events, "log", Some("system:init"));
    let ids = named.iter().map(|event| {
        let id = event["payload"]["detail"]["session_id"].as_str();
        id.unwrap().to_owned()
    });
    Some(ids.collect()).filter(|ids: &Vec<_>| !ids.is_empty())
}

/// What jig counted is what the model served, no more and no less.
#[track_caller]
fn assert_spend(report: &Value, before: Usage, after: Usage) {
    let spend = &report["spend"];
    assert_eq!(spend["input_tokens"], after.input - before.input, "{spend}");
    assert_eq!(
        spend["output_tokens"],
        after.output - before.output,
        "{spend}"
    );
    assert_eq!(spend["unmetered_sends"], 0, "{spend}");
}

#[test]
fn three_runs_with_claude_code_are_accepted_and_recover_in_their_session() {
    three_runs(Agent::Claude);
}

#[test]
fn three_runs_with_codex_are_accepted_and_recover_in_their_thread() {
    three_runs(Agent::Codex);
}
