//! `jig attempt show`: what became of one attempt, and where everything is.

use std::fmt::Write as _;

use jig_controlplane::store::{AttemptRecord, JobRecord, WorktreeState, attempt_dir, trace_path};
use jig_controlplane::{Store, direct};
use jig_engine::host::{AttemptDirs, Manifest, ManifestMode};
use jig_protocol::event::EventKind;
use jig_protocol::outcome::{PhaseStatus, PublishMarker, ResultDocument};
use serde::Serialize;
use serde_json::Value;

use super::attempt::{all_events, round};
use crate::args::AttemptRef;
use crate::evidence::{find, json_line};
use crate::exit_code::CommandError;
use crate::output;
use crate::report::{check_line, counted};
use crate::settings::Settings;

/// `jig attempt show --json`: the attempt, its job, and where things are.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    attempt: &'a AttemptRecord,
    repository: &'a str,
    base_sha: &'a str,
    trace_path: String,
    /// What an attempt that has not ended is doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<Now>,
    /// The branch of an accepted result, as it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// The work tree, while it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<String>,
}

/// What an attempt that has not ended is doing.
#[derive(Debug, Serialize)]
struct Now {
    /// Whether the run it belongs to may still be going on. One that was killed
    /// is put in order by the next `jig run`.
    alive: bool,
    /// The phase that began last.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    /// Which entry of it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase_attempt: Option<u64>,
}

pub(super) async fn run(
    store: &Store,
    wanted: &AttemptRef,
    settings: &Settings,
) -> Result<(), CommandError> {
    let attempt = find(store, wanted).await?;
    let job = store
        .job(attempt.job_id)
        .await
        .map_err(CommandError::infrastructure)?;
    let tree = store
        .worktree(attempt.id)
        .await
        .map_err(CommandError::infrastructure)?;
    let shown = Shown {
        repository: job.as_ref().map_or("", |job| job.repository.as_str()),
        base_sha: job.as_ref().map_or("", |job| job.base_sha.as_str()),
        trace_path: trace_path(store.data_dir(), attempt.id)
            .display()
            .to_string(),
        now: now(store, &attempt, job.as_ref()).await?,
        branch: branch(store, &attempt),
        tree: tree
            .filter(|tree| tree.state == WorktreeState::Retained)
            .map(|tree| tree.path),
        attempt: &attempt,
    };
    if settings.json {
        return json_line(&shown);
    }
    output::result(&output::harmless(&prose(&shown)));
    Ok(())
}

async fn now(
    store: &Store,
    attempt: &AttemptRecord,
    job: Option<&JobRecord>,
) -> Result<Option<Now>, CommandError> {
    if attempt.state.is_terminal() {
        return Ok(None);
    }
    let (mut phase, mut phase_attempt) = (None, None);
    all_events(store, attempt, |event| {
        if event.kind == EventKind::PhaseStart {
            let number = event
                .payload
                .as_ref()
                .and_then(|it| it.get("phase_attempt"));
            phase_attempt = number.and_then(Value::as_u64);
            phase = event.phase;
        }
        Ok(())
    })
    .await?;
    Ok(Some(Now {
        alive: job.is_none_or(|job| direct::may_be_running(store.data_dir(), job.run_id)),
        phase,
        phase_attempt,
    }))
}

/// The branch that the attempt's result went to: its own, once there is one.
fn branch(store: &Store, attempt: &AttemptRecord) -> Option<String> {
    let made = [PublishMarker::LocalBranch, PublishMarker::Held];
    if !made.contains(&attempt.result.as_ref()?.publish) {
        return None;
    }
    let dirs = AttemptDirs::at(attempt_dir(store.data_dir(), attempt.id));
    let manifest = Manifest::read(&dirs.manifest()).ok()??;
    let branch = manifest.branch?;
    let own = manifest.mode == ManifestMode::OwnTree;
    own.then(|| branch.trim_start_matches("refs/heads/").to_owned())
}

fn prose(shown: &Shown<'_>) -> String {
    let attempt = shown.attempt;
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _infallible = writeln!(out, "{name:<12}{value}");
        }
    };
    line("attempt", &attempt.id.to_string());
    line("job", &attempt.job_id.to_string());
    line("state", attempt.state.as_str());
    if let Some(now) = &shown.now {
        let phase = now.phase.as_deref().unwrap_or("preparing");
        let entry = round(now.phase_attempt.unwrap_or(1));
        let dead = "; but its jig has died, and the next run puts it in order";
        let dead = if now.alive { "" } else { dead };
        line("now", &format!("{phase}{entry}{dead}"));
    }
    line("error", &one_line(attempt.error.as_deref().unwrap_or("")));
    line("repository", shown.repository);
    line("base", shown.base_sha);
    line("branch", shown.branch.as_deref().unwrap_or(""));
    line("trace", &shown.trace_path);
    line("tree", shown.tree.as_deref().unwrap_or(""));
    if let Some(result) = &attempt.result {
        out.push_str(&result_prose(result));
    }
    out
}

fn result_prose(result: &ResultDocument) -> String {
    let spend = &result.spend;
    let late = if spend.late_usd > 0.0 {
        format!(" (${:.4} of it told later)", spend.late_usd)
    } else {
        String::new()
    };
    let mut out = format!(
        "{:<12}${:.4}{late}, {} tokens in, {} out, {}, {} unmetered\nphases:\n",
        "spend",
        spend.cost_usd,
        spend.input_tokens,
        spend.output_tokens,
        counted(spend.sends, "send"),
        spend.unmetered_sends
    );
    for phase in &result.phases {
        let mark = match phase.status {
            PhaseStatus::Success => "✓",
            PhaseStatus::Fail => "✗",
            PhaseStatus::Skipped => "–",
        };
        let round = round(phase.phase_attempt.unwrap_or(1).into());
        let error = phase.error.as_deref().map(one_line);
        let error = error.map(|error| format!(" — {error}")).unwrap_or_default();
        let _infallible = writeln!(out, "  {mark} {}{round}{error}", phase.phase);
    }
    if let Some(acceptance) = &result.acceptance {
        out.push_str("acceptance:\n");
        for check in &acceptance.checks {
            let _infallible = writeln!(out, "{}", check_line(check.ok, &check.item, &check.note));
        }
    }
    if let Some(hold) = &result.publish_hold {
        let _infallible = writeln!(out, "{:<12}{hold}", "held");
    }
    if !result.changed_paths.is_empty() {
        out.push_str("changed:\n");
        for path in &result.changed_paths {
            let _infallible = writeln!(out, "  {path}");
        }
    }
    out
}

/// What a command said, on one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
