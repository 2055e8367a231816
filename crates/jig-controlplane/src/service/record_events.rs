//! Events: stored once each, with what they say about gates and envelopes.

use jig_protocol::event::{
    AttemptStart, Event, EventKind, GateRound, InvalidEnvelope, RuntimeInUse,
};
use jig_protocol::ids::AttemptId;
use jig_protocol::lifecycle::AttemptState;
use jig_protocol::lifecycle::attempt::AttemptEvent;
use jig_protocol::limits::INVALID_ENVELOPE_BYTES;
use jig_protocol::text;
use jig_protocol::time::Timestamp;
use jig_protocol::token::TokenDigest;
use serde::de::DeserializeOwned;

use super::renew_lease::check_owner;
use super::transition::{self, Details, TransitionError};
use crate::store::{EnvelopeRecord, GateRecord, Store, WriteTx, envelopes, events, gate_results};

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// How many events were new.
    pub new: u64,
    /// The highest seq stored for the attempt.
    pub highest_seq: u64,
}

/// Stores a batch of an attempt's events, in one transaction. Events that are
/// stored already stay as they are; an attempt that has ended takes its tail.
/// The first event (`attempt_start`) starts the attempt.
///
/// # Errors
///
/// [`TransitionError`]; nothing of the batch was stored then.
pub async fn record_events(
    store: &Store,
    attempt: AttemptId,
    token: &TokenDigest,
    batch: &[Event],
) -> Result<Recorded, TransitionError> {
    let now = store.clock().now();
    let mut tx = store.begin("store events").await?;
    check_owner(&mut tx, attempt, token).await?;
    let recorded = record(&mut tx, attempt, batch, now).await?;
    tx.commit().await?;
    Ok(recorded)
}

/// The same for an attempt whose holder is proven dead.
pub(crate) async fn record_events_unowned(
    store: &Store,
    attempt: AttemptId,
    batch: &[Event],
) -> Result<Recorded, TransitionError> {
    let now = store.clock().now();
    let mut tx = store.begin("store events").await?;
    let recorded = record(&mut tx, attempt, batch, now).await?;
    tx.commit().await?;
    Ok(recorded)
}

/// The same inside a transaction whose owner was checked.
pub(crate) async fn record(
    tx: &mut WriteTx,
    attempt: AttemptId,
    batch: &[Event],
    now: Timestamp,
) -> Result<Recorded, TransitionError> {
    let mut new = 0;
    for event in batch {
        if !events::insert(tx.db(), attempt, event, now).await? {
            continue;
        }
        new += 1;
        if let Some(runtimes) = starts_with(event) {
            start(tx, attempt, &runtimes, event.started_at).await?;
        }
        for gate in gates(event) {
            gate_results::insert(tx.db(), attempt, &gate).await?;
        }
        if let Some(envelope) = invalid_envelope(event) {
            envelopes::insert(tx.db(), attempt, &envelope).await?;
        }
    }
    let (_, highest_seq) = events::extent(tx.db(), attempt).await?;
    Ok(Recorded { new, highest_seq })
}

/// A tail that arrives after the end starts nothing any more.
async fn start(
    tx: &mut WriteTx,
    attempt: AttemptId,
    runtimes: &[RuntimeInUse],
    at: Timestamp,
) -> Result<(), TransitionError> {
    if transition::load_attempt(tx, attempt).await?.state != AttemptState::Preparing {
        return Ok(());
    }
    let details = Details {
        runtimes,
        ..Details::default()
    };
    transition::attempt(tx, attempt, AttemptEvent::Start, details, at).await?;
    Ok(())
}

/// The runtimes, if this event is an attempt's start.
fn starts_with(event: &Event) -> Option<Vec<RuntimeInUse>> {
    let is_start = event.kind == EventKind::Log && event.name.as_deref() == Some("attempt_start");
    is_start.then(|| payload::<AttemptStart>(event).map_or_else(Vec::new, |start| start.runtimes))
}

/// The checks that a gate's event lists.
fn gates(event: &Event) -> Vec<GateRecord> {
    let passed = match event.kind {
        EventKind::GatePass => true,
        EventKind::GateFail => false,
        _ => return Vec::new(),
    };
    let Some(round) = payload::<GateRound>(event) else {
        return Vec::new();
    };
    (1..)
        .zip(round.checks)
        .map(|(item_number, check)| GateRecord {
            seq: event.seq,
            item_number,
            phase: event.phase.clone().unwrap_or_default(),
            gate: event.name.clone().unwrap_or_default(),
            round: round.attempt,
            passed,
            item: check.item,
            ok: check.ok,
            note: check.note,
            recorded_at: event.started_at,
        })
        .collect()
}

/// The answer that held no envelope, if the event is about one.
fn invalid_envelope(event: &Event) -> Option<EnvelopeRecord> {
    if event.kind != EventKind::Log || event.name.as_deref() != Some("invalid_envelope") {
        return None;
    }
    let invalid = payload::<InvalidEnvelope>(event)?;
    Some(EnvelopeRecord {
        phase: event.phase.clone().unwrap_or_default(),
        emission: event.seq,
        valid: false,
        body: text::head(&invalid.raw, INVALID_ENVELOPE_BYTES).to_owned(),
        parse_error: Some(invalid.error),
        recorded_at: event.started_at,
    })
}

/// A payload that was cut to its bound has lost its shape: it stays in the
/// event and says nothing more.
fn payload<T: DeserializeOwned>(event: &Event) -> Option<T> {
    T::deserialize(event.payload.as_ref()?).ok()
}
