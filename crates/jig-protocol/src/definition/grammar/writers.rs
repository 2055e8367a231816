//! Parallel writers.

use super::shape::{Object, Shape, may, need};
use crate::limits;

pub(in super::super) static WRITERS: Object = Object {
    what: "`parallel_writers`",
    fields: &[
        need(
            "members",
            Shape::List(&Shape::Object(&MEMBER)),
            "Two to four consecutive agent phases, in chain order.",
        ),
        may(
            "shared",
            Shape::List(&Shape::Text),
            "Every path that two members own.",
        ),
        may(
            "shared_merge",
            Shape::Choice(&["adjacent", "clean", "never"]),
            "How edits of a shared file are merged.",
        ),
        may(
            "on_conflict",
            Shape::Object(&CONFLICT),
            "What runs when the results conflict.",
        ),
        may(
            "on_ineligible",
            Shape::Choice(&["sequential", "fail-job"]),
            "What happens when the members cannot run in parallel.",
        ),
        may(
            "require_sandbox",
            Shape::Bool,
            "Whether each member's sandbox must be verified.",
        ),
    ],
};

pub(in super::super) static MEMBER: Object = Object {
    what: "a writer",
    fields: &[
        need("phase", Shape::Name, "The agent phase."),
        need(
            "owns",
            Shape::List(&Shape::Text),
            "The tracked files it changes, every one of them.",
        ),
        may(
            "locks",
            Shape::List(&Shape::Text),
            "Resources no two members may hold: `git-index`, `port:<n>`, `database:<name>`, `gpu:<id>`, `cache:<path>`, `generated:<path>`, `test-env:<name>`.",
        ),
        may(
            "checks",
            Shape::List(&Shape::Object(&CHECK)),
            "Commands that judge the member's result.",
        ),
    ],
};

pub(in super::super) static CHECK: Object = Object {
    what: "a check",
    fields: &[
        need("id", Shape::Name, "Unique within the member."),
        need("command", Shape::Text, "Run by `/bin/sh -c`."),
        may(
            "env",
            Shape::Texts,
            "Literal variables; `$JIG_TMP` is replaced.",
        ),
        may(
            "baseline",
            Shape::Choice(&["must_pass", "may_fail"]),
            "What the unchanged baseline may do.",
        ),
        may(
            "fail_exits",
            Shape::List(&Shape::Count(1, 255)),
            "Exit codes of an expected failure on the baseline.",
        ),
        may("timeout", Shape::Duration, "How long it may take."),
    ],
};

pub(in super::super) static CONFLICT: Object = Object {
    what: "`on_conflict`",
    fields: &[
        need("run", Shape::Name, "The agent phase that reconciles."),
        need(
            "budget",
            Shape::Count(1, limits::MAX_REPAIR_BUDGET),
            "How often.",
        ),
        may(
            "exhausted",
            Shape::Choice(&["hold", "fail-job"]),
            "What happens then.",
        ),
    ],
};
