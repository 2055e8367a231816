//! What `output: structured` changes for a model that does not answer as it is
//! asked to: the same model, with and without it.

use jig_testkit::model::{Request, Script, Step};
use serde_json::json;

use super::world::{Agent, ONE_AGENT, World};

/// How many runs each figure is of.
const RUNS: usize = 2;

/// A model that answers in prose, unless a schema is put before it or it was
/// corrected.
fn sloppy(agent: Agent, obeys: bool) -> Step {
    let step = Step::from_request(move |request| {
        let corrected = request.contains("no JSON object was found");
        match (agent, obeys && asked_by_schema(agent, request), corrected) {
            (Agent::Claude, true, _) if request.tool_results().is_empty() => {
                Step::tool("StructuredOutput", envelope())
            }
            (Agent::Codex, true, _) => {
                let mut strict = envelope();
                strict["further_fields"] = json!([]);
                Step::text(strict.to_string())
            }
            (_, false, true) => Step::text(envelope().to_string()),
            _ => Step::text("I looked at it, and all is well."),
        }
    });
    step.repeated()
}

fn envelope() -> serde_json::Value {
    json!({"status": "success", "summary": "looked", "artifacts": [], "notes_for_next_agent": ""})
}

fn asked_by_schema(agent: Agent, request: &Request) -> bool {
    match agent {
        Agent::Claude => request.tools().contains(&"StructuredOutput"),
        Agent::Codex => request.body.as_ref().unwrap()["text"]["format"]["type"] == "json_schema",
    }
}

/// Corrections and sends of so many runs; `None` where the agent is not there.
fn figures(agent: Agent, structured: bool, obeys: bool) -> Option<(u64, u64)> {
    let output = if structured { "structured" } else { "text" };
    let definition = ONE_AGENT.replace("@ROLE@", &format!("@ROLE@\n    output: {output}"));
    let script = agent.plays(Script::new(), [sloppy(agent, obeys)]);
    let world = World::new(&[agent], &definition, script)?;
    let (mut corrections, mut sends) = (0, 0);
    for _ in 0..RUNS {
        let report = world.run().expect(0).json();
        assert_eq!(report["state"], "accepted_unpublished", "{report}");
        corrections += report["budgets"]["parse_corrections"].as_u64().unwrap();
        sends += report["spend"]["sends"].as_u64().unwrap();
    }
    world.assert_nothing_left();
    Some((corrections, sends))
}

#[test]
fn a_schema_spares_corrections_and_its_neglect_costs_no_more_than_none() {
    let runs = RUNS as u64;
    for agent in [Agent::Claude, Agent::Codex] {
        let Some(text) = figures(agent, false, true) else {
            return;
        };
        assert_eq!(text, (runs, 2 * runs), "{agent:?}");
        assert_eq!(figures(agent, true, true), Some((0, runs)), "{agent:?}");
        // A model that never does as the schema says is corrected as without.
        assert_eq!(
            figures(agent, true, false),
            Some((runs, 2 * runs)),
            "{agent:?}"
        );
    }
}
