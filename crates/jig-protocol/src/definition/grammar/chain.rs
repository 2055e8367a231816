//! Definitions, roles, phases, gates and repair edges.

use super::super::model::{Effort, GateName};
use super::policy::{LIMITS, PUBLISH, SANDBOX};
use super::shape::{Object, Shape, may, need};
use super::writers::WRITERS;
use crate::limits;

pub(in super::super) const EFFORTS: [&str; 5] = {
    let mut words = [""; 5];
    let mut at = 0;
    while at < words.len() {
        words[at] = Effort::ALL[at].as_str();
        at += 1;
    }
    words
};

pub(in super::super) const GATES: [&str; 6] = {
    let mut words = [""; 6];
    let mut at = 0;
    while at < words.len() {
        words[at] = GateName::ALL[at].as_str();
        at += 1;
    }
    words
};

pub(in super::super) static DEFINITION: Object = Object {
    what: "a definition",
    fields: &[
        need("name", Shape::Name, "The definition's identity."),
        may("description", Shape::Text, "What it is for."),
        may(
            "runtime",
            Shape::Runtime,
            "The default runtime of all roles; without it, any.",
        ),
        may(
            "roster",
            Shape::Names(&Shape::Object(&ROLE)),
            "Who may act, by role name.",
        ),
        need(
            "phases",
            Shape::List(&Shape::Object(&PHASE)),
            "The chain, in order.",
        ),
        may(
            "parallel",
            Shape::List(&Shape::Name),
            "Read-only agent phases, consecutive in the chain, that run at the same time.",
        ),
        may(
            "parallel_writers",
            Shape::Object(&WRITERS),
            "Agent phases that write declared files at the same time, each in a tree of its own.",
        ),
        may(
            "acceptance",
            Shape::List(&Shape::Text),
            "`all_phases_passed`, a gate's name, or `<phase>.<gate>`.",
        ),
        may("publish", Shape::Object(&PUBLISH), "Delivery policy."),
        may(
            "build_outputs",
            Shape::List(&Shape::Text),
            "Directories (`<dir>/` or `<dir>/**`) that every role's build may write into.",
        ),
        may(
            "caches",
            Shape::Choice(&["shared", "off"]),
            "Whether download caches of toolchains outlive an attempt.",
        ),
        may(
            "budget_usd",
            Shape::Dollars(false),
            "Ceiling of the metered spend of one attempt, checked before every send.",
        ),
        may(
            "limits",
            Shape::Object(&LIMITS),
            "Clocks of this definition.",
        ),
        may(
            "sandbox",
            Shape::Object(&SANDBOX),
            "What the kernel sandbox must offer.",
        ),
    ],
};

pub(in super::super) static ROLE: Object = Object {
    what: "a role",
    fields: &[
        need("model", Shape::Text, "Handed to the agent's CLI as it is."),
        may(
            "runtime",
            Shape::Runtime,
            "Overrides the definition's runtime.",
        ),
        may(
            "effort",
            Shape::Choice(&EFFORTS),
            "How hard the model should think.",
        ),
        may(
            "budget_usd",
            Shape::Dollars(true),
            "Cap of one send, enforced by the agent's CLI.",
        ),
        may("thinking", Shape::Text, "Accepted for old files; ignored."),
        may("system_prompt", Shape::Text, "The system prompt."),
        may(
            "system_prompt_path",
            Shape::Text,
            "A file of the base commit that holds the system prompt.",
        ),
        may(
            "user_prompt",
            Shape::Text,
            "The template of the user prompt.",
        ),
        may(
            "user_prompt_path",
            Shape::Text,
            "A file of the base commit that holds the template of the user prompt.",
        ),
        may(
            "tools",
            Shape::List(&Shape::Text),
            "Tool allowlist handed to the agent's CLI.",
        ),
        may(
            "writes",
            Shape::List(&Shape::Text),
            "What the role may write; `[]` is read-only, absent is anything.",
        ),
        may(
            "output",
            Shape::Choice(&["text", "structured"]),
            "How the answer is asked for.",
        ),
        may(
            "commits",
            Shape::Bool,
            "Whether the role may move the attempt branch forward.",
        ),
        may(
            "env",
            Shape::List(&Shape::Text),
            "Names of the variables the role receives; nothing else reaches it.",
        ),
        may(
            "sensitive_env",
            Shape::List(&Shape::Text),
            "Names of `env` whose values are redacted everywhere.",
        ),
    ],
};

pub(in super::super) static PHASE: Object = Object {
    what: "a phase",
    fields: &[
        need("name", Shape::Name, "Unique in the chain, ignoring case."),
        need(
            "kind",
            Shape::Choice(&["agent", "code"]),
            "An agent acts, or a command runs.",
        ),
        may("owner", Shape::Name, "The role that acts."),
        may(
            "command",
            Shape::Text,
            "Run by `/bin/sh -c` in the work tree (code phases).",
        ),
        may(
            "if",
            Shape::Text,
            "A field that must be truthy, or a predicate `<field> ==|!= <literal>`.",
        ),
        may(
            "reports_fields",
            Shape::Bool,
            "The last line of stdout is a JSON object of fields (code phases).",
        ),
        may(
            "writes",
            Shape::List(&Shape::Text),
            "What the command may change; absent is anything (code phases).",
        ),
        may(
            "gates",
            Shape::List(&Shape::Object(&GATE)),
            "What verifies the phase.",
        ),
        may("on_fail", Shape::Object(&EDGE), "What repairs the phase."),
    ],
};

pub(in super::super) static GATE: Object = Object {
    what: "a gate",
    fields: &[
        need("name", Shape::Choice(&GATES), "Which check."),
        may("command", Shape::Text, "The command of `tests_pass`."),
        may(
            "budget",
            Shape::Count(0, limits::MAX_GATE_BUDGET),
            "Corrections allowed; 0 is the default of 2.",
        ),
        may(
            "allow",
            Shape::List(&Shape::Text),
            "Globs of test files exempt from `tests_intact`.",
        ),
    ],
};

pub(in super::super) static EDGE: Object = Object {
    what: "a repair edge",
    fields: &[
        may(
            "when",
            Shape::Text,
            "A predicate over the phase's own envelope (agent phases).",
        ),
        need("run", Shape::Name, "The phase that repairs."),
        need(
            "then",
            Shape::Choice(&["rerun-self", "rerun-chain"]),
            "What runs after it.",
        ),
        need(
            "budget",
            Shape::Count(1, limits::MAX_REPAIR_BUDGET),
            "How often the edge may be used.",
        ),
        may(
            "exhausted",
            Shape::Choice(&["fail-job", "proceed"]),
            "What happens when the budget is spent.",
        ),
    ],
};

/// The keys of a phase that only `kind: code` may have.
pub(in super::super) const CODE_KEYS: [&str; 3] = ["command", "reports_fields", "writes"];
