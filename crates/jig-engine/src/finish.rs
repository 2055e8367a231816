//! The end of an attempt: verdict, hold, last events, result document.

use std::path::Path;
use std::sync::Arc;

use jig_protocol::definition::Definition;
use jig_protocol::event::{
    self, AttemptEnded, CeilingExceeded, EngineError, EventBody, SendBudgetExhausted,
    SpendCeilingReached,
};
use jig_protocol::lifecycle::attempt::Outcome;
use jig_protocol::outcome::{
    Acceptance, AttemptEnd, Budgets, Cause, PublishMarker, ResultDocument, SandboxReport,
};
use jig_protocol::repo_path::RepoPath;
use jig_protocol::{limits, text};

use crate::acceptance;
use crate::attempt::{AttemptOutcome, EngineConfig, Ran};
use crate::breach;
use crate::ending::Ending;
use crate::fault::Step;
use crate::host::{self, DeliverError, Delivery, HostConfig, PreparedAttempt};
use crate::redact::Redactor;
use crate::summary;
use crate::trace::{Emitter, EventSink};
use crate::unwind::caught;

/// Everything that is decided about an ended attempt.
struct Verdict {
    end: AttemptEnd,
    cause: Option<Cause>,
    error: Option<String>,
    hold: Option<String>,
    acceptance: Option<Acceptance>,
}

/// Judges, tells and sums up. The last event is the attempt's end.
pub(crate) async fn outcome(
    end: Result<(), Ending>,
    ran: Ran,
    prepared: PreparedAttempt,
    trace: &Emitter,
    config: &EngineConfig,
    title: &str,
) -> AttemptOutcome {
    let verdict = match (end, &ran.definition) {
        (Ok(()), Some(definition)) => judge(definition, &ran, trace),
        (Ok(()), None) => ended(Ending::infrastructure("no definition was run")),
        (Err(ending), _) => ended(ending),
    };
    let (verdict, delivery) = deliver(verdict, title, &ran, &prepared, trace, config).await;
    tell_end(&verdict, &ran, trace, config);
    let accepted = verdict
        .acceptance
        .as_ref()
        .is_some_and(|acceptance| acceptance.passed);
    let state = Outcome::of_end(verdict.end, accepted).attempt_state();
    let error = verdict.error.as_ref().map(|error| {
        let clean = trace.redactor().text(error);
        text::head(&clean, limits::ATTEMPT_ERROR_BYTES).to_owned()
    });
    let hold = verdict
        .hold
        .as_ref()
        .map(|hold| trace.redactor().text(hold).into_owned());
    trace.check();
    trace.emit(
        None,
        &EventBody::AttemptEnd(AttemptEnded {
            end: verdict.end,
            state: state.as_str().to_owned(),
            outcome: outcome_word(accepted, verdict.cause).to_owned(),
            cause: verdict.cause,
            error: error.clone(),
        }),
    );
    let trace_problem = trace.close().await;
    let result = summary::bounded(document(&verdict, &delivery, &ran), trace.redactor());
    AttemptOutcome {
        end: verdict.end,
        state,
        cause: verdict.cause,
        error,
        hold,
        result,
        delivery,
        trace_problem,
        prepared,
        boundary: ran.boundary,
        redactor: Arc::clone(trace.redactor()),
    }
}

fn ended(ending: Ending) -> Verdict {
    Verdict {
        end: ending.end,
        cause: Some(ending.cause),
        error: Some(ending.error),
        hold: None,
        acceptance: None,
    }
}

/// Tells the end of an attempt that could not begin; what could not be told.
pub(crate) async fn never_began(
    trace: &Path,
    config: &HostConfig,
    sink: &Arc<dyn EventSink>,
    (end, cause): (AttemptEnd, Cause),
    error: &str,
) -> Option<String> {
    let trace = Emitter::open(
        trace,
        Arc::clone(&config.clock),
        Arc::new(Redactor::default()),
        Arc::clone(sink),
    );
    let error = text::head(error, limits::ATTEMPT_ERROR_BYTES).to_owned();
    let why = match end {
        AttemptEnd::Cancelled => EventBody::AttemptCancelled,
        _ => EventBody::EngineError(EngineError {
            error: error.clone(),
        }),
    };
    trace.emit(None, &why);
    trace.emit(
        None,
        &EventBody::AttemptEnd(AttemptEnded {
            end,
            state: Outcome::of_end(end, false)
                .attempt_state()
                .as_str()
                .to_owned(),
            outcome: outcome_word(false, Some(cause)).to_owned(),
            cause: Some(cause),
            error: Some(error),
        }),
    );
    trace.close().await
}

/// Delivers an accepted result, before anything says that the attempt ended: a
/// result that cannot be delivered is not accepted.
async fn deliver(
    verdict: Verdict,
    title: &str,
    ran: &Ran,
    prepared: &PreparedAttempt,
    trace: &Emitter,
    config: &EngineConfig,
) -> (Verdict, Delivery) {
    let accepted = verdict
        .acceptance
        .as_ref()
        .is_some_and(|acceptance| acceptance.passed);
    let Some(boundary) = ran.boundary.as_ref().filter(|_| accepted) else {
        return (verdict, Delivery::none());
    };
    let unwinding = ran.unwinding.deadline(&config.host.clock);
    let delivering = caught(async {
        config.faults.reach(Step::Deliver).map_err(Ending::from)?;
        let delivered = host::deliver(&config.host, prepared, boundary, trace.redactor(), title);
        Ok::<_, Ending>(delivered.await)
    });
    let delivered = unwinding
        .bound(delivering)
        .await
        .map(|caught| caught.unwrap_or_else(|panic| Err(Ending::infrastructure(panic))));
    let ending = match delivered {
        Ok(Err(ending)) => ending,
        Ok(Ok(Ok(delivery))) => return (verdict, delivery),
        Ok(Ok(Err(DeliverError::Differs { paths }))) => {
            let (logs, outcome) = (prepared.dirs.logs(), "commit_differs_from_tree");
            let paths = breach::tell_of_nobody(trace, &logs, "delivery", &paths, outcome);
            Ending::breach(format!(
                "the result's commit is not what was judged, {paths}"
            ))
        }
        Ok(Ok(Err(error @ DeliverError::Tampered))) => Ending::breach(text::with_causes(&error)),
        Ok(Ok(Err(error))) => Ending::broken(&error),
        Err(reason) => Ending::infrastructure(format!("the result was not delivered: {reason}")),
    };
    (ended(ending), Delivery::none())
}

/// The verdict over a completed chain.
fn judge(definition: &Definition, ran: &Ran, trace: &Emitter) -> Verdict {
    let acceptance = acceptance::judge(definition, |phase| ran.state.last(phase));
    trace.emit(None, &EventBody::Acceptance(acceptance.clone()));
    if !acceptance.passed {
        let failed: Vec<String> = acceptance
            .checks
            .iter()
            .filter(|check| !check.ok)
            .map(|check| format!("{}: {}", check.item, check.note))
            .collect();
        return Verdict {
            end: AttemptEnd::Completed,
            cause: Some(Cause::Acceptance),
            error: Some(format!("acceptance does not hold: {}", failed.join("; "))),
            hold: None,
            acceptance: Some(acceptance),
        };
    }
    let hold = hold(definition, ran);
    if let Some(reason) = &hold {
        trace.emit(
            None,
            &EventBody::PublishHeld(event::PublishHeld {
                reason: reason.clone(),
            }),
        );
    }
    Verdict {
        end: AttemptEnd::Completed,
        cause: hold.as_ref().map(|_| Cause::Held),
        error: None,
        hold,
        acceptance: Some(acceptance),
    }
}

/// Why publishing waits for a person; judged over the field view.
fn hold(definition: &Definition, ran: &Ran) -> Option<String> {
    let predicate = definition.publish.as_ref()?.hold_when.as_ref()?;
    let fields = ran.state.fields.values();
    predicate.holds(fields).then(|| {
        let found = fields
            .get(&predicate.field)
            .map_or_else(|| "nobody reported it".to_owned(), ToString::to_string);
        format!(
            "publish.hold_when `{predicate}` holds: {} is {found}",
            predicate.field
        )
    })
}

/// The event that says why, before the one that says that it ended.
fn tell_end(verdict: &Verdict, ran: &Ran, trace: &Emitter, config: &EngineConfig) {
    let definition = ran.definition.as_ref();
    let error = || verdict.error.clone().unwrap_or_default();
    let body = match verdict.end {
        // A breach was told where it was found; a failed phase says it itself.
        AttemptEnd::Completed | AttemptEnd::Failed | AttemptEnd::Breach => return,
        AttemptEnd::Cancelled => EventBody::AttemptCancelled,
        AttemptEnd::Ceiling => {
            let ceiling = definition
                .and_then(|definition| definition.limits.attempt_ceiling)
                .unwrap_or(limits::ATTEMPT_CEILING);
            EventBody::CeilingExceeded(CeilingExceeded {
                ceiling_ms: u64::try_from(ceiling.as_millis()).unwrap_or(u64::MAX),
            })
        }
        AttemptEnd::SendBudget => EventBody::SendBudgetExhausted(SendBudgetExhausted {
            max_sends: config.max_sends,
            sends: ran.sends,
        }),
        AttemptEnd::SpendCeiling => EventBody::SpendCeilingReached(SpendCeilingReached {
            budget_usd: definition
                .and_then(|definition| definition.budget_usd)
                .unwrap_or_default(),
            spent_usd: ran.state.meter.spend.cost_usd,
        }),
        AttemptEnd::Infrastructure => EventBody::EngineError(EngineError { error: error() }),
    };
    trace.emit(None, &body);
}

fn outcome_word(accepted: bool, cause: Option<Cause>) -> &'static str {
    match cause {
        _ if accepted => "accepted",
        Some(cause) if cause.is_no_verdict() => "none",
        _ => "rejected",
    }
}

fn document(verdict: &Verdict, delivery: &Delivery, ran: &Ran) -> ResultDocument {
    let changed: Vec<RepoPath> = ran.boundary.as_ref().map_or_else(Vec::new, |boundary| {
        boundary.changed_paths_total().into_iter().collect()
    });
    ResultDocument {
        end: verdict.end,
        phases: ran.state.records.clone(),
        changed_paths: changed,
        publish: match (delivery.marker, &verdict.hold) {
            // A held change has its branch: that is where a person looks.
            (_, Some(_)) => PublishMarker::Held,
            (marker, None) => marker,
        },
        publish_hold: verdict.hold.clone(),
        acceptance: verdict.acceptance.clone(),
        cause: verdict.cause,
        spend: ran.state.meter.spend,
        budgets: ran
            .definition
            .as_ref()
            .map_or_else(Budgets::default, |definition| ran.state.budgets(definition)),
        sandbox: ran.definition.as_ref().map(|_| SandboxReport::none()),
        truncation: None,
    }
}
