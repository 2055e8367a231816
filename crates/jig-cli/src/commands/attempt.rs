//! `jig attempt show|events|diff|gates|envelopes`

use std::fmt::Write as _;

use jig_controlplane::Store;
use jig_controlplane::store::{AttemptRecord, GateRecord, trace_path};
use jig_protocol::event::Event;
use jig_protocol::outcome::{PhaseStatus, ResultDocument};
use serde::Serialize;

use crate::args::{AttemptCommand, AttemptRef};
use crate::commands::diff;
use crate::evidence::{find, json_line, open};
use crate::exit_code::{CommandError, CommandResult, Exit};
use crate::output;
use crate::report::check_line;
use crate::settings::Settings;

/// Events read from the store at a time.
const PAGE: u32 = 500;

pub(crate) async fn run(command: AttemptCommand, settings: &Settings) -> CommandResult {
    let store = open(settings).await?;
    let done = match command {
        AttemptCommand::Show(wanted) => show(&store, &wanted, settings).await,
        AttemptCommand::Events { attempt, phase } => {
            events(&store, &attempt, phase.as_deref(), settings).await
        }
        AttemptCommand::Diff { attempt, phase } => {
            diff::run(&store, &attempt, phase.as_deref(), settings).await
        }
        AttemptCommand::Gates(wanted) => gates(&store, &wanted, settings).await,
        AttemptCommand::Envelopes(wanted) => envelopes(&store, &wanted, settings).await,
    };
    store.close().await;
    done.map(|()| Exit::Done)
}

/// `jig attempt show --json`: the attempt, its job, and where things are.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    attempt: &'a AttemptRecord,
    repository: &'a str,
    base_sha: &'a str,
    trace_path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<String>,
}

async fn show(store: &Store, wanted: &AttemptRef, settings: &Settings) -> Result<(), CommandError> {
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
        tree: tree
            .filter(|tree| tree.state == jig_controlplane::store::WorktreeState::Retained)
            .map(|tree| tree.path),
        attempt: &attempt,
    };
    if settings.json {
        return json_line(&shown);
    }
    output::result(&output::harmless(&prose(&shown)));
    Ok(())
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
    line("error", attempt.error.as_deref().unwrap_or(""));
    line("repository", shown.repository);
    line("base", shown.base_sha);
    line("trace", &shown.trace_path);
    line("tree", shown.tree.as_deref().unwrap_or(""));
    if let Some(result) = &attempt.result {
        out.push_str(&result_prose(result));
    }
    out
}

fn result_prose(result: &ResultDocument) -> String {
    let spend = &result.spend;
    let mut out = format!(
        "{:<12}${:.4}, {} tokens in, {} out, {} sends, {} unmetered\nphases:\n",
        "spend",
        spend.cost_usd,
        spend.input_tokens,
        spend.output_tokens,
        spend.sends,
        spend.unmetered_sends
    );
    for phase in &result.phases {
        let mark = match phase.status {
            PhaseStatus::Success => "✓",
            PhaseStatus::Fail => "✗",
            PhaseStatus::Skipped => "–",
        };
        let round = phase.phase_attempt.filter(|round| *round > 1);
        let round = round
            .map(|round| format!(" (round {round})"))
            .unwrap_or_default();
        let error = phase
            .error
            .as_deref()
            .map(|error| format!(" — {error}"))
            .unwrap_or_default();
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

/// Every event of an attempt, page by page.
pub(crate) async fn all_events(
    store: &Store,
    attempt: &AttemptRecord,
    mut each: impl FnMut(Event) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let mut after = 0;
    loop {
        let page = store
            .events(attempt.id, after, PAGE)
            .await
            .map_err(CommandError::infrastructure)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = last.seq;
        page.into_iter().try_for_each(&mut each)?;
    }
}

async fn events(
    store: &Store,
    wanted: &AttemptRef,
    phase: Option<&str>,
    settings: &Settings,
) -> Result<(), CommandError> {
    let attempt = find(store, wanted).await?;
    all_events(store, &attempt, |event| {
        if phase.is_some() && event.phase.as_deref() != phase {
            return Ok(());
        }
        if settings.json {
            return json_line(&event);
        }
        let payload = event
            .payload
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        output::result_line(&output::harmless(&format!(
            "{:>5} {} {:<12} {:<20} {:<22} {}",
            event.seq,
            event.started_at,
            event.kind.as_str(),
            event.phase.as_deref().unwrap_or("-"),
            event.name.as_deref().unwrap_or("-"),
            jig_protocol::text::head(&payload, 200),
        )));
        Ok(())
    })
    .await
}

async fn gates(
    store: &Store,
    wanted: &AttemptRef,
    settings: &Settings,
) -> Result<(), CommandError> {
    let attempt = find(store, wanted).await?;
    let found = store
        .gates(attempt.id)
        .await
        .map_err(CommandError::infrastructure)?;
    if settings.json {
        return found.iter().try_for_each(json_line);
    }
    if found.is_empty() {
        output::note("no gate ran in this attempt");
    }
    let mut last: Option<u64> = None;
    for check in &found {
        if last != Some(check.seq) {
            output::result_line(&output::harmless(&gate_title(check)));
            last = Some(check.seq);
        }
        output::result_line(&output::harmless(&check_line(
            check.ok,
            &check.item,
            &check.note,
        )));
    }
    Ok(())
}

fn gate_title(check: &GateRecord) -> String {
    let verdict = if check.passed { "passed" } else { "failed" };
    format!(
        "{} {} (round {}) {verdict}",
        check.phase, check.gate, check.round
    )
}

async fn envelopes(
    store: &Store,
    wanted: &AttemptRef,
    settings: &Settings,
) -> Result<(), CommandError> {
    let attempt = find(store, wanted).await?;
    let found = store
        .envelopes(attempt.id)
        .await
        .map_err(CommandError::infrastructure)?;
    if settings.json {
        return found.iter().try_for_each(json_line);
    }
    if found.is_empty() {
        output::note("no phase of this attempt answered");
    }
    for envelope in &found {
        let verdict = if envelope.valid {
            "accepted"
        } else {
            "invalid"
        };
        let error = envelope
            .parse_error
            .as_deref()
            .map(|error| format!(": {error}"))
            .unwrap_or_default();
        output::result_line(&output::harmless(&format!(
            "{} {verdict}{error}",
            envelope.phase
        )));
        output::result_line(&output::harmless(&indented(&envelope.body)));
    }
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}
