//! The agents' programs: whether they are there, which, and logged in or not.
//!
//! No value of a variable and nothing of a login is told, but when it expires.

use std::ffi::OsStr;
use std::path::Path;

use jig_protocol::time::Timestamp;
use jig_runtime::{AgentRuntime, Capabilities, ProbeError};

use super::look::{Finding, Level};
use crate::compose::{self, Machine};
use crate::operator_agents::OperatorAgents;

/// An agent that jig knows by name.
struct Known {
    install: &'static str,
    log_in: &'static str,
    /// Variables that do instead of a login, where a role's `env` lists them.
    keys: Vec<String>,
}

/// Every agent that a definition could name, but the scripted one.
pub(super) async fn look(machine: &Machine, data: &Path) -> Vec<Finding> {
    let claude = Known {
        install: "npm install -g @anthropic-ai/claude-code (jig demo and scripted runs need no agent)",
        log_in: "log in with `claude /login`, make a long-lived token with `claude setup-token`, or put an API key's name into the role's `env` and use --no-seed-auth",
        keys: [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ]
        .map(str::to_owned)
        .into(),
    };
    let codex = compose::codex(machine);
    let own_key = codex.key_variable().map(str::to_owned);
    let known_codex = Known {
        install: "npm install -g @openai/codex (jig demo and scripted runs need no agent)",
        log_in: "log in with `codex login`, or put CODEX_API_KEY into the role's `env` and use --no-seed-auth",
        keys: own_key
            .into_iter()
            .chain(["CODEX_API_KEY".to_owned()])
            .collect(),
    };
    let mut findings = vec![
        known(machine, &compose::claude(machine), &claude).await,
        known(machine, &codex, &known_codex).await,
    ];
    match OperatorAgents::read(data) {
        Ok(agents) => {
            for name in agents.names() {
                findings.push(by_protocol(machine, &agents, name).await);
            }
        }
        Err(error) => findings.push(Finding::not(
            Level::Warning,
            "runtimes.toml",
            one_line(&format!("{error:#}")),
            "put it right, or remove it; no `acp:` runtime works until then (docs/acp.md)",
        )),
    }
    findings
}

/// What was told in several lines, in one.
fn one_line(told: &str) -> String {
    let lines: Vec<&str> = told.lines().map(str::trim).collect();
    lines.join(" ")
}

async fn known(machine: &Machine, runtime: &dyn AgentRuntime, known: &Known) -> Finding {
    let name = runtime.name().to_string();
    let found = match runtime.probe().await {
        Ok(found) => found,
        Err(ProbeError::NotFound { .. }) => {
            return Finding::not(Level::Warning, name, "not installed", known.install);
        }
        Err(error) => {
            return Finding::not(Level::Warning, name, error.to_string(), "update the CLI");
        }
    };
    let set: Vec<&str> = known
        .keys
        .iter()
        .map(String::as_str)
        .filter(|key| is_set(machine, key))
        .collect();
    let login = Login::of(machine, runtime).await;
    told(name, &found, &login, &set, known.log_in)
}

/// What an agent's login comes to.
enum Login {
    /// There is one.
    Good {
        until: Option<Timestamp>,
    },
    /// There was one.
    Expired {
        at: Timestamp,
    },
    /// Sends need none.
    NotNeeded,
    Missing,
}

impl Login {
    async fn of(machine: &Machine, runtime: &dyn AgentRuntime) -> Self {
        let now = machine.clock.now();
        match runtime.seed(&machine.operator).await {
            Ok(seed) if seed.files.is_empty() => Self::NotNeeded,
            Ok(seed) => match seed.expires_at {
                Some(at) if at <= now => Self::Expired { at },
                until => Self::Good { until },
            },
            Err(_) => Self::Missing,
        }
    }
}

fn told(name: String, found: &Capabilities, login: &Login, keys: &[&str], log_in: &str) -> Finding {
    let version = &found.version;
    let set = match keys {
        [] => String::new(),
        keys => format!(", {} set", keys.join(" and ")),
    };
    let (detail, is_ready) = match login {
        Login::Good { until: None } => (format!("version {version}, logged in{set}"), true),
        Login::Good { until: Some(until) } => (
            format!("version {version}, logged in until {until}{set}"),
            true,
        ),
        Login::NotNeeded => (format!("version {version}, needs no login{set}"), true),
        Login::Expired { at } => (
            format!("version {version}, login expired at {at}{set}"),
            !keys.is_empty(),
        ),
        Login::Missing => (
            format!("version {version}, not logged in{set}"),
            !keys.is_empty(),
        ),
    };
    let advice = found.warnings.first();
    match (is_ready, advice) {
        (false, _) => Finding::not(Level::Warning, name, detail, log_in),
        (true, Some(warning)) => Finding::not(Level::Warning, name, detail, warning),
        (true, None) => Finding::ok(name, detail),
    }
}

fn is_set(machine: &Machine, name: &str) -> bool {
    let value = machine.operator.env.get(OsStr::new(name));
    value.is_some_and(|value| !value.is_empty())
}

/// An agent of the operator's `runtimes.toml`.
async fn by_protocol(machine: &Machine, agents: &OperatorAgents, name: &str) -> Finding {
    let Some(runtime) = agents.runtime(machine, name) else {
        return Finding::not(Level::Warning, name, "is not described", "");
    };
    let shown = runtime.name().to_string();
    let found = match runtime.probe().await {
        Ok(found) => found,
        Err(error @ ProbeError::NotFound { .. }) => {
            let advice =
                format!("install it, or correct `command` of [acp.{name}] in runtimes.toml");
            return Finding::not(Level::Warning, shown, error.to_string(), advice);
        }
        Err(error) => {
            let advice = format!(
                "run the `command` of [acp.{name}] in runtimes.toml by hand; it has to answer `initialize` on its standard output"
            );
            return Finding::not(Level::Warning, shown, error.to_string(), advice);
        }
    };
    let sessions = if found.can_resume {
        "continues sessions"
    } else {
        "cannot continue sessions, which are told again"
    };
    let detail = format!("{}, {sessions}", found.version);
    match runtime.seed(&machine.operator).await {
        Ok(_) => Finding::ok(shown, detail),
        Err(error) => Finding::not(
            Level::Warning,
            shown,
            format!("{detail}; {}", error.message),
            error.hint,
        ),
    }
}
