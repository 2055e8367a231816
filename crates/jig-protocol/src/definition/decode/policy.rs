//! Delivery, clocks and the sandbox.

use std::time::Duration;

use super::super::code::Code;
use super::super::cursor::{Context, Fields};
use super::super::diagnostic::quoted;
use super::super::grammar;
use super::super::model::{CiPolicy, CiRepair, Clocks, Publish, SandboxRules, SandboxTier};
use super::chain::predicate;
use crate::limits::{
    ATTEMPT_CEILING_MAX, CI_TIMEOUT, CI_TIMEOUT_MAX, CI_TIMEOUT_MIN, PHASE_TIMEOUT_MAX,
    SILENCE_TIMEOUT_MAX,
};

/// `publish`.
pub(super) fn publish(cx: &mut Context<'_>, top: &Fields<'_>) -> Option<Publish> {
    let path = top.at("publish");
    let fields = Fields::open(cx, top.get("publish")?, &path, &grammar::PUBLISH)?;
    if !fields.has("hold_when") && !fields.has("ci") {
        cx.at(
            Code::PublishEmpty,
            &path,
            "`publish` needs `hold_when`, `ci` or both",
        )
        .help("remove it if nothing is meant: an accepted result is published without it too");
    }
    Some(Publish {
        hold_when: predicate(cx, &fields, "hold_when"),
        ci: ci(cx, &fields),
    })
}

fn ci(cx: &mut Context<'_>, publish: &Fields<'_>) -> Option<CiPolicy> {
    let path = publish.at("ci");
    let fields = Fields::open(cx, publish.get("ci")?, &path, &grammar::CI)?;
    let wait = fields.flag(cx, "wait").unwrap_or_default();
    let mut idle = true;
    for key in ["rerun", "on_fail"] {
        if !wait && fields.has(key) {
            idle = false;
            cx.at(
                Code::CiWait,
                &fields.at(key),
                format!("`ci.{key}` needs `wait: true`"),
            );
        }
    }
    if !wait && idle {
        cx.at(
            Code::IdleCi,
            &path,
            "`ci` without `wait: true` does nothing",
        );
    }
    let timeout = fields.duration(cx, "timeout", (CI_TIMEOUT_MIN, CI_TIMEOUT_MAX));
    let rerun = fields.get("rerun").and_then(|node| {
        let rerun = Fields::open(cx, node, &fields.at("rerun"), &grammar::CI_RERUN)?;
        rerun.count(cx, "budget")
    });
    let on_fail = fields.get("on_fail").and_then(|node| {
        let repair = Fields::open(cx, node, &fields.at("on_fail"), &grammar::CI_REPAIR)?;
        let run = repair.parsed(cx, "run", Code::Name);
        let budget = repair.count(cx, "budget");
        Some(CiRepair {
            run: run?,
            budget: budget?,
        })
    });
    Some(CiPolicy {
        wait,
        timeout: timeout.unwrap_or(CI_TIMEOUT),
        rerun_budget: rerun,
        on_fail,
    })
}

/// `limits`.
pub(super) fn clocks(cx: &mut Context<'_>, top: &Fields<'_>) -> Clocks {
    let path = top.at("limits");
    let Some(fields) = top
        .get("limits")
        .and_then(|node| Fields::open(cx, node, &path, &grammar::LIMITS))
    else {
        return Clocks::default();
    };
    let least = Duration::from_millis(1);
    Clocks {
        phase_timeout: fields.duration(cx, "phase_timeout", (least, PHASE_TIMEOUT_MAX)),
        silence_timeout: fields.duration(cx, "silence_timeout", (least, SILENCE_TIMEOUT_MAX)),
        attempt_ceiling: fields.duration(cx, "attempt_ceiling", (least, ATTEMPT_CEILING_MAX)),
    }
}

/// `sandbox`.
pub(super) fn sandbox(cx: &mut Context<'_>, top: &Fields<'_>) -> SandboxRules {
    let path = top.at("sandbox");
    let Some(fields) = top
        .get("sandbox")
        .and_then(|node| Fields::open(cx, node, &path, &grammar::SANDBOX))
    else {
        return SandboxRules::default();
    };
    let require = fields.choice(
        cx,
        "require",
        &[SandboxTier::Namespace, SandboxTier::Landlock],
    );
    let mut rules = SandboxRules {
        require,
        ..SandboxRules::default()
    };
    let read = fields
        .get("read")
        .and_then(|node| Fields::open(cx, node, &fields.at("read"), &grammar::SANDBOX_READ));
    if let Some(read) = read {
        rules.hide = host_paths(cx, &read, "hide");
        rules.allow = host_paths(cx, &read, "allow");
    }
    rules
}

/// Paths of the machine: absolute, or below the operator's home as `~/…`.
fn host_paths(cx: &mut Context<'_>, fields: &Fields<'_>, key: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (text, path) in fields.texts(cx, key).unwrap_or_default() {
        let rooted = text.strip_prefix("~/").or_else(|| text.strip_prefix('/'));
        let why = match rooted {
            None => Some("it is neither absolute nor below `~/`"),
            Some("") => Some("it names everything"),
            Some(rest) if rest.split('/').any(|part| part == "..") => Some("it contains `..`"),
            Some(_) if text.contains(['*', '?', '[']) => Some("wildcards are not supported"),
            Some(_) if text.chars().any(char::is_control) => {
                Some("it contains a control character")
            }
            Some(_) => None,
        };
        match why {
            None => paths.push(text),
            Some(why) => {
                cx.at(
                    Code::SandboxPath,
                    &path,
                    format!("{} is not a path to hide or show: {why}", quoted(&text)),
                );
            }
        }
    }
    paths
}
