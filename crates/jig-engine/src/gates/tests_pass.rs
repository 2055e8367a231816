//! `tests_pass`: the gate's command exits 0.

use jig_process::command::CommandError;
use jig_process::{CommandEnd, CommandOutcome, StopReason};
use jig_protocol::definition::Gate;
use jig_protocol::outcome::Check;

use super::run::{Found, GateContext};
use crate::command::end_text;

pub(super) async fn tests_pass(gate: &Gate, cx: &GateContext<'_>) -> Result<Found, CommandError> {
    let Some(command) = gate.command.as_deref() else {
        return Ok(vec![Check::fail(gate.name.as_str(), "has no command")].into());
    };
    let deadline = cx.deadline.and_within(cx.timeout, StopReason::PhaseTimeout);
    let name = format!("{}-gate-{}", cx.phase, cx.position);
    let outcome = cx
        .commands
        .run(command, cx.env, &name, None, &deadline)
        .await?;
    let check = if outcome.end == CommandEnd::Code(0) {
        Check::pass(command, "exit 0")
    } else {
        Check::fail(command, failure_note(&outcome, cx))
    };
    let stopped = match outcome.end {
        // The command's own clock is the command's own failure.
        CommandEnd::Stopped(StopReason::PhaseTimeout) | CommandEnd::Code(_) => None,
        CommandEnd::Stopped(reason) => Some(reason),
        _ => None,
    };
    Ok(Found {
        checks: vec![check],
        stopped,
        leftovers: outcome.teardown.leftovers,
        survivors: outcome.teardown.survivors,
    })
}

/// How it ended, and the end of what it said.
fn failure_note(outcome: &CommandOutcome, cx: &GateContext<'_>) -> String {
    let mut note = end_text(&outcome.end, cx.timeout);
    for (stream, tail) in [
        ("stdout", &outcome.stdout.tail),
        ("stderr", &outcome.stderr.tail),
    ] {
        let tail = tail.trim_end();
        if !tail.is_empty() {
            note.push_str(&format!("\n{stream}:\n{tail}"));
        }
    }
    note
}
