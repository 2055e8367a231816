//! HOMEs: who sees what, and that toolchains work in them.

mod environments;
mod seeding;
mod toolchains;

use std::sync::Arc;

use jig_engine::command::CommandContext;
use jig_engine::home::CommandVars;
use jig_engine::redact::Redactor;
use jig_process::{CommandEnd, CommandOutcome, Deadline, SystemClock};

use crate::fixture::{Attempt, Fixture};

/// Runs a command as a code phase of `owner` would.
pub(super) async fn command(
    fixture: &Fixture,
    attempt: &Attempt,
    owner: Option<&str>,
    line: &str,
) -> CommandOutcome {
    let owner = owner.and_then(|name| fixture.definition.roster.get(name));
    let vars = CommandVars {
        base_sha: attempt.prepared.base_sha(),
        head_sha: "feedface".into(),
        attempt_id: "the-attempt".into(),
        phase: "check".into(),
    };
    let env = attempt.prepared.homes.command_env(owner, &vars);
    let (logs, redactor) = (attempt.prepared.dirs.logs(), Arc::new(Redactor::default()));
    let context = CommandContext {
        host: &fixture.config.host,
        work_tree: attempt.tree(),
        logs: &logs,
        redactor: &redactor,
        live: None,
    };
    let deadline = Deadline::new(Arc::new(SystemClock::new()));
    context
        .run(line, &env, "check", None, &deadline)
        .await
        .unwrap()
}

/// What a command printed; it must succeed.
#[track_caller]
pub(super) fn printed(outcome: &CommandOutcome) -> &str {
    assert_eq!(outcome.end, CommandEnd::Code(0), "{outcome:#?}");
    &outcome.stdout.tail
}
