//! `jig attempt show|events|diff|gates|envelopes`

use std::collections::HashMap;

use jig_controlplane::Store;
use jig_controlplane::store::{AttemptRecord, EnvelopeRecord, GateRecord};
use jig_protocol::event::{Event, EventKind};
use serde_json::Value;

use crate::args::{AttemptCommand, AttemptRef};
use crate::commands::{diff, show};
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
        AttemptCommand::Show(wanted) => show::run(&store, &wanted, settings).await,
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
    let entries = Entries::of(store, &attempt).await?;
    let mut last: Option<u64> = None;
    for check in &found {
        if last != Some(check.seq) {
            output::result_line(&output::harmless(&gate_title(check, &entries)));
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

/// Which entry of which phase began when.
struct Entries(HashMap<String, Vec<(u64, u64)>>);

impl Entries {
    async fn of(store: &Store, attempt: &AttemptRecord) -> Result<Self, CommandError> {
        let mut begun: HashMap<String, Vec<(u64, u64)>> = HashMap::new();
        all_events(store, attempt, |event| {
            let number = event
                .payload
                .as_ref()
                .and_then(|it| it.get("phase_attempt"));
            if let (EventKind::PhaseStart, Some(phase), Some(number)) =
                (event.kind, event.phase, number.and_then(Value::as_u64))
            {
                begun.entry(phase).or_default().push((event.seq, number));
            }
            Ok(())
        })
        .await?;
        Ok(Self(begun))
    }

    /// The entry that was going on at `seq`, from 1.
    fn at(&self, phase: &str, seq: u64) -> u64 {
        let begun = self.0.get(phase).map_or(&[][..], Vec::as_slice);
        let before = begun.iter().rev().find(|(start, _)| *start < seq);
        before.map_or(1, |(_, number)| *number)
    }
}

/// `build (round 2), artifacts_exist: passed`; rounds are counted as `jig
/// attempt show` counts them.
fn gate_title(check: &GateRecord, entries: &Entries) -> String {
    let entry = round(entries.at(&check.phase, check.seq));
    let verdict = if check.passed { "passed" } else { "failed" };
    let corrected = match check.round.saturating_sub(1) {
        0 => String::new(),
        1 => " after 1 correction".to_owned(),
        many => format!(" after {many} corrections"),
    };
    format!(
        "{}{entry}, {}: {verdict}{corrected}",
        check.phase, check.gate
    )
}

/// Nothing for the first round of a phase.
pub(super) fn round(number: u64) -> String {
    if number > 1 {
        format!(" (round {number})")
    } else {
        String::new()
    }
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
        output::note(
            "no answer of this attempt was accepted; `jig attempt events` has what its agents said",
        );
    }
    for envelope in &found {
        output::result_line(&output::harmless(&envelope_title(envelope)));
        output::result_line(&output::harmless(&indented(&envelope.body)));
    }
    Ok(())
}

/// `build (round 2):`, or `build, not understood (no JSON object was found):`.
fn envelope_title(envelope: &EnvelopeRecord) -> String {
    let phase = &envelope.phase;
    match &envelope.parse_error {
        _ if envelope.valid => format!("{phase}{}:", round(envelope.emission)),
        Some(error) => format!("{phase}, not understood ({error}):"),
        None => format!("{phase}, not understood:"),
    }
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}
