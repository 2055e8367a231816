//! Delivery, clocks and the sandbox.

use super::shape::{Object, Shape, may, need};
use crate::limits;

pub(in super::super) static PUBLISH: Object = Object {
    what: "`publish`",
    fields: &[
        may(
            "hold_when",
            Shape::Text,
            "A predicate over the field view; holding waits for a person.",
        ),
        may(
            "ci",
            Shape::Object(&CI),
            "What CI means for this definition.",
        ),
    ],
};

pub(in super::super) static CI: Object = Object {
    what: "`ci`",
    fields: &[
        may(
            "wait",
            Shape::Bool,
            "Whether a green CI is part of accepted.",
        ),
        may(
            "timeout",
            Shape::Duration,
            "How long to wait on one head, 1m to 6h.",
        ),
        may(
            "rerun",
            Shape::Object(&CI_RERUN),
            "Runs a red CI again before it counts.",
        ),
        may(
            "on_fail",
            Shape::Object(&CI_REPAIR),
            "Which phase repairs a red CI.",
        ),
    ],
};

pub(in super::super) static CI_RERUN: Object = Object {
    what: "`ci.rerun`",
    fields: &[need(
        "budget",
        Shape::Count(1, limits::CI_ROUNDS_MAX),
        "How often, per attempt.",
    )],
};

pub(in super::super) static CI_REPAIR: Object = Object {
    what: "`ci.on_fail`",
    fields: &[
        need("run", Shape::Name, "The agent phase that repairs."),
        need("budget", Shape::Count(1, limits::CI_ROUNDS_MAX), "Rounds."),
    ],
};

pub(in super::super) static LIMITS: Object = Object {
    what: "`limits`",
    fields: &[
        may(
            "phase_timeout",
            Shape::Duration,
            "One entry of a phase, one code command, one gate command.",
        ),
        may(
            "silence_timeout",
            Shape::Duration,
            "No byte from the agent for this long ends the send.",
        ),
        may("attempt_ceiling", Shape::Duration, "The whole attempt."),
    ],
};

pub(in super::super) static SANDBOX: Object = Object {
    what: "`sandbox`",
    fields: &[
        may(
            "require",
            Shape::Choice(&["namespace", "landlock"]),
            "Refuse to run below this tier.",
        ),
        may(
            "read",
            Shape::Object(&SANDBOX_READ),
            "What agents may read outside the work tree.",
        ),
    ],
};

pub(in super::super) static SANDBOX_READ: Object = Object {
    what: "`sandbox.read`",
    fields: &[
        may(
            "hide",
            Shape::List(&Shape::Text),
            "More paths to hide: absolute, or under `~/`.",
        ),
        may(
            "allow",
            Shape::List(&Shape::Text),
            "Hidden paths to show all the same.",
        ),
    ],
};
