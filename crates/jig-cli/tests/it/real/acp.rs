//! The genuine Codex behind the Agent Client Protocol: one whole run, corrected
//! twice within its session. Only where the agent was asked for.

use std::os::unix::fs::PermissionsExt as _;

use jig_testkit::model::{Script, Step};
use serde_json::json;

use super::world::{Agent, World, answer};
use crate::support::{branch, entries, of_type, trace};

const DEFINITION: &str = "
name: with-acp
roster:
  builder:
    runtime: acp:codex
    model: default
    writes: [jig-note.txt]
    env: [PATH, LOOPBACK_KEY]
    sensitive_env: [LOOPBACK_KEY]
    system_prompt: You build.
    user_prompt: \"{{prompt}} Write jig-note.txt.\"
phases:
  - {name: build, kind: agent, owner: builder, gates: [{name: diff_matches_claims}]}
  - {name: verify, kind: code, writes: [], command: \"grep -q 'the note' jig-note.txt\"}
acceptance: [all_phases_passed]
";

const NO_ANSWER: &str = "It is all done.";
const WRONG_CLAIM: &str = "never-written.txt";

#[test]
fn codex_behind_the_agent_client_protocol_recovers_in_its_session() {
    let Some(program) = jig_testkit::real::codex_acp() else {
        return;
    };
    let script = Agent::Codex.plays(
        Script::new(),
        [
            Agent::Codex.writes("jig-note.txt", "the note"),
            Step::text(NO_ANSWER),
            answer(&["jig-note.txt", WRONG_CLAIM]),
            answer(&["jig-note.txt"]),
        ],
    );
    let Some(mut world) = World::new(&[Agent::Codex], DEFINITION, script) else {
        return;
    };
    // The agent is configured by its own file, which the operator names.
    let described = format!(
        "[acp.codex]\ncommand = [\"node\", {program:?}]\nmode = \"agent-full-access\"\nseed = [\".codex/config.toml\"]\n"
    );
    let file = world.trial.env.file("data/runtimes.toml", &described);
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    world.settle();
    let done = crate::env::finish(world.trial.start_with(&["--runtime", "acp:codex"]));
    let report = done.expect(0).json();
    assert_eq!(report["state"], "accepted_unpublished", "{report}");
    assert_eq!(entries(&report), ["build:success", "verify:success"]);
    assert_eq!(report["changed_paths"], json!(["jig-note.txt"]));
    assert_eq!(report["budgets"]["parse_corrections"], 1);
    assert_eq!(report["budgets"]["gate_corrections"], 1);
    assert_eq!(report["budgets"]["deaths"], 0);
    let ends = trace(&report);
    let ends = of_type(&ends, "agent_end", None);
    assert_eq!((ends.len(), &ends[0]["payload"]["sends"]), (1, &json!(3)));
    // The last turn still had the whole conversation before it.
    let last = world.server.turns().pop().unwrap();
    for words in [NO_ANSWER, WRONG_CLAIM, "Write jig-note.txt.", "You build."] {
        assert!(last.contains(words), "{words:?} is not in {last:#?}");
    }
    let branch = branch(&world.trial.env, &world.trial.repo, &report);
    let show = ["show", &format!("{branch}:jig-note.txt")];
    assert_eq!(world.trial.env.git(&world.trial.repo, &show), "the note\n");
    assert_eq!(world.server.steps_left(), 0);
    world.trial.assert_nobody_left();
    world.assert_key_nowhere();
}
