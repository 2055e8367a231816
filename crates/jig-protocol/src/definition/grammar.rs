//! The language as a table: every object, its keys, their shapes.
//!
//! The decoder takes known and required keys from here and the JSON Schema is
//! made of it, so that neither can know a key the other does not.

use super::model::{Effort, GateName, RuntimeName};
use crate::limits;

/// A map with fixed keys.
pub(super) struct Object {
    /// What it is called in messages.
    pub(super) what: &'static str,
    pub(super) fields: &'static [Field],
}

/// One key of an object.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) shape: Shape,
    pub(super) doc: &'static str,
}

/// What a value may be.
pub(super) enum Shape {
    Text,
    Name,
    Bool,
    /// A whole number within bounds.
    Count(u32, u32),
    /// An amount of dollars; whether zero is allowed.
    Dollars(bool),
    Duration,
    /// One of these words.
    Choice(&'static [&'static str]),
    List(&'static Shape),
    /// A map from names to values.
    Names(&'static Shape),
    /// A map from texts to texts.
    Texts,
    Object(&'static Object),
}

impl Object {
    pub(super) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

const fn need(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field {
        name,
        required: true,
        shape,
        doc,
    }
}

const fn may(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field {
        name,
        required: false,
        shape,
        doc,
    }
}

pub(super) const EFFORTS: [&str; 5] = {
    let mut words = [""; 5];
    let mut at = 0;
    while at < words.len() {
        words[at] = Effort::ALL[at].as_str();
        at += 1;
    }
    words
};

pub(super) const GATES: [&str; 6] = {
    let mut words = [""; 6];
    let mut at = 0;
    while at < words.len() {
        words[at] = GateName::ALL[at].as_str();
        at += 1;
    }
    words
};

pub(super) static DEFINITION: Object = Object {
    what: "a definition",
    fields: &[
        need("name", Shape::Name, "The definition's identity."),
        may("description", Shape::Text, "What it is for."),
        may(
            "runtime",
            Shape::Choice(&RuntimeName::KNOWN),
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

pub(super) static ROLE: Object = Object {
    what: "a role",
    fields: &[
        need("model", Shape::Text, "Handed to the agent's CLI as it is."),
        may(
            "runtime",
            Shape::Choice(&RuntimeName::KNOWN),
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

pub(super) static PHASE: Object = Object {
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

pub(super) static GATE: Object = Object {
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

pub(super) static EDGE: Object = Object {
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

pub(super) static PUBLISH: Object = Object {
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

pub(super) static CI: Object = Object {
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

pub(super) static CI_RERUN: Object = Object {
    what: "`ci.rerun`",
    fields: &[need(
        "budget",
        Shape::Count(1, limits::CI_ROUNDS_MAX),
        "How often, per attempt.",
    )],
};

pub(super) static CI_REPAIR: Object = Object {
    what: "`ci.on_fail`",
    fields: &[
        need("run", Shape::Name, "The agent phase that repairs."),
        need("budget", Shape::Count(1, limits::CI_ROUNDS_MAX), "Rounds."),
    ],
};

pub(super) static LIMITS: Object = Object {
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

pub(super) static SANDBOX: Object = Object {
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

pub(super) static SANDBOX_READ: Object = Object {
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

pub(super) static WRITERS: Object = Object {
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

pub(super) static MEMBER: Object = Object {
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

pub(super) static CHECK: Object = Object {
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

pub(super) static CONFLICT: Object = Object {
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

/// The keys of a phase that only `kind: code` may have.
pub(super) const CODE_KEYS: [&str; 3] = ["command", "reports_fields", "writes"];
