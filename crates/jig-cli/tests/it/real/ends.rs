//! What a vendor, a model or a limit of the definition can do to a send of a
//! genuine agent, and how the run then ends: result document, exit code,
//! record, and what is left.

use jig_testkit::model::{Script, Step, Stop};
use serde_json::{Value, json};

use super::world::{Agent, ONE_AGENT, World, answer, names};
use crate::env::Done;
use crate::support::of_type;

/// What happens, and what comes of it.
struct Row {
    name: &'static str,
    definition: String,
    steps: Vec<Step>,
    /// The vendor's answers that the agent itself asks for again.
    own_retries: &'static str,
    code: i32,
    cause: Option<&'static str>,
    sends: u64,
    changed: &'static [&'static str],
    /// What the progress says.
    says: &'static [&'static str],
    /// What the error says.
    error: &'static [&'static str],
}

impl Row {
    /// A run that goes well after all.
    fn survived(name: &'static str, sends: u64, steps: Vec<Step>) -> Self {
        Self {
            name,
            definition: ONE_AGENT.to_owned(),
            steps,
            own_retries: "0",
            code: 0,
            cause: None,
            sends,
            changed: &["src/new.txt"],
            says: &[],
            error: &[],
        }
    }

    /// One that ends after its first send.
    fn failed(name: &'static str, code: i32, cause: &'static str, steps: Vec<Step>) -> Self {
        Self {
            code,
            cause: Some(cause),
            ..Self::survived(name, 1, steps)
        }
    }
}

/// These, then work that is well done.
fn then_done(agent: Agent, steps: impl IntoIterator<Item = Step>) -> Vec<Step> {
    let mut steps: Vec<Step> = steps.into_iter().collect();
    steps.extend(done(agent));
    steps
}

fn done(agent: Agent) -> [Step; 2] {
    [
        agent.writes("src/new.txt", "allowed"),
        answer(&["src/new.txt"]),
    ]
}

/// What of the work is there when it is then cut short.
fn done_until(agent: Agent, last: Step) -> Vec<Step> {
    vec![agent.writes("src/new.txt", "allowed"), last.repeated()]
}

/// What the vendor answers when it has too much to do.
fn busy(agent: Agent) -> Step {
    Step::error(match agent {
        Agent::Claude => 529,
        Agent::Codex => 503,
    })
}

/// Rows of both agents.
fn rows(agent: Agent) -> Vec<Row> {
    let (overflow, says_overflow) = match agent {
        Agent::Claude => (
            Step::error(400).message("prompt is too long: 210000 tokens > 200000"),
            &["Prompt is too long"],
        ),
        Agent::Codex => (
            Step::empty().stop(Stop::ContextWindow),
            &["ran out of room in the model's context window"],
        ),
    };
    // Codex asks a second time by itself.
    let twice = |step: Step| match agent {
        Agent::Claude => vec![step],
        Agent::Codex => vec![step.clone(), step],
    };
    vec![
        Row {
            says: &["overloaded, waiting 1 s"],
            ..Row::survived("busy", 2, then_done(agent, twice(busy(agent))))
        },
        Row {
            says: &["rate limited, waiting 1 s"],
            ..Row::survived(
                "limited",
                2,
                then_done(agent, twice(Step::error(429).header("retry-after", "1"))),
            )
        },
        Row::survived(
            "cut",
            1,
            then_done(agent, [Step::text("half of an answer").cut()]),
        ),
        Row {
            changed: &[],
            error: &["cannot go on (auth)", "log in again with `c"],
            ..Row::failed("unknown", 1, "auth", vec![Step::error(401).repeated()])
        },
        Row {
            error: &["cannot go on (refused)", "change the prompt or the model"],
            ..Row::failed(
                "refused",
                3,
                "refused",
                done_until(agent, Step::text("I will not").stop(Stop::Refusal)),
            )
        },
        Row {
            changed: &[],
            error: &["unsupported_option", "check the role's `model`"],
            ..Row::failed(
                "no model",
                1,
                "unsupported_option",
                vec![Step::error(404).repeated()],
            )
        },
        Row {
            error: says_overflow,
            ..Row::failed("overflow", 3, "other", done_until(agent, overflow))
        },
    ]
}

/// Rows of an agent that tells what it costs.
fn rows_of_money() -> Vec<Row> {
    let agent = Agent::Claude;
    let capped = ONE_AGENT.replace("user_prompt", "budget_usd: 0.0001\n    user_prompt");
    let ceiling = ONE_AGENT.replace(
        "acceptance",
        "  - {name: again, kind: agent, owner: builder}\nbudget_usd: 0.0001\nacceptance",
    );
    vec![
        Row {
            definition: capped,
            // The answer was paid for; what it asks for may have begun.
            changed: &[],
            error: &["raise the role's `budget_usd`"],
            ..Row::failed("cap", 1, "spend_cap", vec![agent.runs("true")])
        },
        Row {
            definition: ceiling,
            error: &["0.0001", "again"],
            ..Row::failed("ceiling", 3, "spend_ceiling", done(agent).into())
        },
    ]
}

/// The events, unless the agent is not installed.
fn check(agent: Agent, row: &Row) -> Option<Vec<Value>> {
    let script = agent.plays(Script::new(), row.steps.iter().cloned());
    let mut world = World::new(&[agent], &row.definition, script)?;
    let vars = &mut world.trial.env.vars;
    vars.insert("CLAUDE_CODE_MAX_RETRIES".into(), row.own_retries.into());
    let done = world.run();
    let report = assert_ended(row, &done);
    for words in row.says {
        assert!(done.stderr.contains(words), "{}: {}", row.name, done.stderr);
    }
    let events = assert_recorded(&world, row, &report);
    assert_left(&world, row, &report);
    Some(events)
}

/// The result document says what happened.
#[track_caller]
fn assert_ended(row: &Row, done: &Done) -> Value {
    let report = done.expect(row.code).json();
    let shown = format!("{}: {report:#}\n{}", row.name, done.stderr);
    let (state, outcome, publish) = match row.code {
        0 => ("accepted_unpublished", "accepted", "local_branch"),
        1 => ("failed", "none", "not_attempted"),
        _ => ("failed", "rejected", "not_attempted"),
    };
    assert_eq!(report["state"], state, "{shown}");
    assert_eq!(report["outcome"], outcome, "{shown}");
    assert_eq!(report["publish"], publish, "{shown}");
    assert_eq!(report["exit_code"], row.code, "{shown}");
    assert_eq!(report["cause"], json!(row.cause), "{shown}");
    assert_eq!(report["spend"]["sends"], row.sends, "{shown}");
    assert_eq!(report["budgets"]["deaths"], 0, "{shown}");
    assert_eq!(report["changed_paths"], json!(row.changed), "{shown}");
    let error = report["error"].as_str().unwrap_or("");
    assert_eq!(error.is_empty(), row.cause.is_none(), "{shown}");
    for words in row.error {
        assert!(error.contains(words), "{words:?}: {shown}");
    }
    report
}

/// Store and trace say the same as the document.
#[track_caller]
fn assert_recorded(world: &World, row: &Row, report: &Value) -> Vec<Value> {
    let attempt = report["attempt_id"].as_str().unwrap();
    let events = world.trial.assert_whole_record(attempt);
    let ends = of_type(&events, "agent_end", None);
    assert_eq!(ends.len(), of_type(&events, "agent_start", None).len());
    let last = &ends.last().unwrap()["payload"];
    let expected = match row.cause {
        // Reached between two sends: no send has this class.
        Some("spend_ceiling") | None => Value::Null,
        Some(cause) => cause.into(),
    };
    assert_eq!(last["class"], expected, "{}: {last}", row.name);
    let end = &events.last().unwrap()["payload"];
    assert_eq!(end["state"], report["state"], "{end}");
    let record = &world.trial.ask(&["attempt", "show", attempt])[0];
    assert_eq!(record["state"], report["state"], "{record}");
    assert_eq!(record["result"]["cause"], report["cause"], "{record}");
    assert_eq!(record["error"], report["error"], "{record}");
    events
}

/// Of the work what is documented, of the processes and the login nothing.
#[track_caller]
fn assert_left(world: &World, row: &Row, report: &Value) {
    let accepted = row.code == 0;
    let refs = ["for-each-ref", "refs/heads/jig"];
    let branches = world.trial.env.git(&world.trial.repo, &refs);
    assert_eq!(!branches.is_empty(), accepted, "{}: {branches}", row.name);
    let mut expected = vec!["git", "logs", "manifest.json", "trace.jsonl"];
    if !accepted && !row.changed.is_empty() {
        expected.push("tree");
        let tree = report["tree"].as_str().unwrap();
        let work = std::fs::read_to_string(format!("{tree}/src/new.txt"));
        assert_eq!(work.unwrap(), "allowed\n", "{}", row.name);
    } else {
        assert_eq!(report["tree"], Value::Null, "{}", row.name);
    }
    let attempt = world.trial.attempts().remove(0);
    assert_eq!(names(&attempt), expected, "{}", row.name);
    assert_eq!(world.server.steps_left(), 0, "{}", row.name);
    world.assert_nothing_left();
    world.assert_key_nowhere();
}

#[test]
fn a_run_with_claude_code_ends_as_the_table_says() {
    for row in rows(Agent::Claude) {
        check(Agent::Claude, &row);
    }
}

#[test]
fn a_run_with_claude_code_ends_when_its_money_is_spent() {
    for row in rows_of_money() {
        check(Agent::Claude, &row);
    }
}

#[test]
fn the_wait_that_the_vendor_asks_for_is_claude_codes_and_is_told() {
    let agent = Agent::Claude;
    let limited = Step::error(429).header("retry-after", "2");
    let row = Row {
        own_retries: "1",
        says: &["rate limited, waiting "],
        ..Row::survived("limited, the agent waits", 1, then_done(agent, [limited]))
    };
    let Some(events) = check(agent, &row) else {
        return;
    };
    let told = of_type(&events, "log", Some("rate_limited"));
    assert_eq!(told.len(), 1, "{told:?}");
    let wait = told[0]["payload"]["wait_ms"].as_u64().unwrap();
    assert!((2000..4000).contains(&wait), "{wait}");
}

#[test]
fn a_run_with_codex_ends_as_the_table_says() {
    for row in rows(Agent::Codex) {
        check(Agent::Codex, &row);
    }
}
