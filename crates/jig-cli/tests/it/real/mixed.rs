//! Two agents of different vendors in one chain: Claude Code builds, Codex
//! reviews, and each is corrected within its own conversation.

use jig_testkit::model::{Request, Script, Step, Vendor};
use serde_json::{Value, json};

use super::world::{Agent, World, answer};
use crate::support::{branch, entries, of_type, trace};

/// `@BUILDER@` and `@REVIEWER@` stand for the lines that depend on the agents.
const MIXED: &str = "
name: mixed
roster:
  builder:
    runtime: claude-code
    model: haiku
    @BUILDER@
    writes: [jig-note.txt]
    system_prompt: You build.
    user_prompt: \"{{prompt}} Write jig-note.txt.\"
  reviewer:
    runtime: codex
    model: gpt-5.5
    @REVIEWER@
    writes: []
    system_prompt: You review what others built.
    user_prompt: \"Review it. They said: {{previous_envelope}}\"
phases:
  - name: build
    kind: agent
    owner: builder
    gates: [{name: artifacts_exist}, {name: diff_matches_claims}]
  - name: review
    kind: agent
    owner: reviewer
    gates: [{name: verdict_consistent}]
acceptance: [all_phases_passed]
";

/// What goes wrong, and is put right, in one of the runs.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Plain,
    /// The reviewer answers with what is no answer.
    NoAnswer,
    /// The builder claims what it did not do.
    WrongClaim,
}

const NO_ANSWER: &str = "It all looks fine to me.";
const WRONG_CLAIM: &str = "never-written.txt";

/// The reviewer looks at the file with its own tool, then approves what it saw.
fn review() -> [Step; 2] {
    let approves = |request: &Request| {
        assert!(request.contains("the note of run"), "it saw no note");
        let verdict = json!({
            "status": "success", "summary": "read it", "artifacts": [],
            "notes_for_next_agent": "", "approved": true, "findings": [], "blocking": [],
        });
        Step::text(verdict.to_string())
    };
    [
        Agent::Codex.runs("cat jig-note.txt"),
        Step::from_request(approves),
    ]
}

fn script(ways: &[Way]) -> Script {
    let (mut builds, mut reviews) = (Vec::new(), Vec::new());
    for (run, way) in ways.iter().enumerate() {
        builds.push(Agent::Claude.writes("jig-note.txt", &format!("the note of run {run}")));
        if *way == Way::WrongClaim {
            builds.push(answer(&["jig-note.txt", WRONG_CLAIM]));
        }
        builds.push(answer(&["jig-note.txt"]));
        let [looks, approves] = review();
        reviews.push(looks);
        if *way == Way::NoAnswer {
            reviews.push(Step::text(NO_ANSWER));
        }
        reviews.push(approves);
    }
    let script = Agent::Claude.plays(Script::new(), builds);
    Agent::Codex.plays(script, reviews)
}

#[test]
fn claude_code_builds_and_codex_reviews_and_each_recovers_in_its_conversation() {
    let ways = [Way::Plain, Way::NoAnswer, Way::WrongClaim];
    let definition = MIXED
        .replace("@BUILDER@", &Agent::Claude.role_env())
        .replace("@REVIEWER@", &Agent::Codex.role_env());
    let agents = [Agent::Claude, Agent::Codex];
    let Some(world) = World::new(&agents, &definition, script(&ways)) else {
        return;
    };
    for (run, way) in ways.into_iter().enumerate() {
        let (before, asked) = (world.served(), world.server.turns().len());
        let report = world.run().expect(0).json();
        assert_eq!(report["state"], "accepted_unpublished", "{report}");
        assert_eq!(entries(&report), ["build:success", "review:success"]);
        assert_eq!(report["changed_paths"], json!(["jig-note.txt"]));
        let (parse, gate) = (way == Way::NoAnswer, way == Way::WrongClaim);
        assert_eq!(report["budgets"]["parse_corrections"], usize::from(parse));
        assert_eq!(report["budgets"]["gate_corrections"], usize::from(gate));
        assert_eq!(report["budgets"]["deaths"], 0);
        assert_sends(&report, [1 + usize::from(gate), 1 + usize::from(parse)]);
        assert_remembered(&world, asked, way);

        let (spend, after) = (&report["spend"], world.served());
        assert_eq!(spend["input_tokens"], after.input - before.input, "{spend}");
        let written = after.output - before.output;
        assert_eq!(spend["output_tokens"], written, "{spend}");
        assert!(spend["cost_usd"].as_f64().unwrap() > 0.0, "{spend}");
        assert_eq!(spend["unmetered_sends"], 0, "{spend}");

        let branch = branch(&world.trial.env, &world.trial.repo, &report);
        let show = ["show", &format!("{branch}:jig-note.txt")];
        let note = world.trial.env.git(&world.trial.repo, &show);
        assert_eq!(note, format!("the note of run {run}\n"));
        world.assert_nothing_left();
    }
    assert_eq!(world.server.steps_left(), 0);
    world.assert_key_nowhere();
}

/// One entry each, with so many sends of the builder and of the reviewer.
#[track_caller]
fn assert_sends(report: &Value, expected: [usize; 2]) {
    let events = trace(report);
    let ends = of_type(&events, "agent_end", None);
    let sends: Vec<_> = ends
        .iter()
        .map(|end| end["payload"]["sends"].as_u64().unwrap())
        .collect();
    assert_eq!(sends, expected.map(|sends| sends as u64));
    let threads = of_type(&events, "log", Some("thread_started"));
    let ids: Vec<_> = threads
        .iter()
        .map(|event| &event["payload"]["detail"]["thread_id"])
        .collect();
    assert_eq!(ids.len(), expected[1]);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

/// Who was corrected still had its own words before it, and the other never
/// sees them.
#[track_caller]
fn assert_remembered(world: &World, asked: usize, way: Way) {
    let turns = world.server.turns();
    let last = |vendor: Vendor| {
        let mut of_run = turns[asked..]
            .iter()
            .filter(|turn| turn.vendor == Some(vendor));
        of_run.next_back().unwrap().clone()
    };
    let (builder, reviewer) = (last(Vendor::Anthropic), last(Vendor::OpenAi));
    assert_eq!(reviewer.contains(NO_ANSWER), way == Way::NoAnswer);
    assert_eq!(builder.contains(WRONG_CLAIM), way == Way::WrongClaim);
    assert!(!builder.contains(NO_ANSWER) && !reviewer.contains(WRONG_CLAIM));
    // What a role is told is the definition's, on every send of it.
    assert!(reviewer.contains("You review what others built."));
    assert!(builder.contains("You build."));
}
