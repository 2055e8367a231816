//! How a send ended, from its last `result` line, else from its exit.

use jig_protocol::outcome::FailureClass;
use jig_runtime::dialect::{Exit, Verdict};
use jig_runtime::failure::{self, Failure};
use jig_runtime::{Session, Usage};
use serde_json::Value;

use crate::translate::{ClaudeDialect, text};

const LOG_IN: &str = "log in again with `claude /login`, make a long-lived token with `claude setup-token`, or put ANTHROPIC_API_KEY into the role's `env`";

/// Judges a stream that has ended.
pub(crate) fn verdict(
    dialect: &ClaudeDialect,
    session: &mut Session,
    exit: Exit,
    stderr: &str,
) -> Verdict {
    let Some(result) = &dialect.result else {
        return Verdict {
            outcome: Err(match exit {
                Exit::GivenUp => refused_login(dialect.refused_logins),
                exit => without_result(exit, stderr),
            }),
            usage: None,
        };
    };
    let lost = dialect.answered_elsewhere();
    let usage = usage(dialect, result, session, lost.is_some());
    let outcome = match lost {
        Some((asked, answered)) => Err(Failure::new(
            FailureClass::Discontinuity,
            format!("session {asked} was to be continued, but session {answered} answered"),
        )),
        None => match dialect.answered_as_nobody() {
            Some(id) => Err(Failure::new(
                FailureClass::Discontinuity,
                format!("it answered as session {id:?}, which cannot be continued"),
            )),
            None => judge(result, dialect.api_error.as_ref(), stderr),
        },
    };
    Verdict { outcome, usage }
}

/// The answer, or the failure that the result line reports in one of its ways.
fn judge(result: &Value, api_error: Option<&Value>, stderr: &str) -> Result<String, Failure> {
    let said = text(result, "result");
    let subtype = text(result, "subtype");
    // An error in place of the model's message that was returned as the answer.
    let echoed = api_error.is_some_and(|error| {
        !said.is_empty() && text(&error["message"]["content"][0], "text") == said
    });
    if result["is_error"] == true || subtype.starts_with("error") || echoed {
        return Err(reported(result, api_error, stderr));
    }
    match result.get("structured_output") {
        Some(object @ Value::Object(_)) => Ok(object.to_string()),
        _ => Ok(said.to_owned()),
    }
}

/// The failure that a result line reports.
fn reported(result: &Value, api_error: Option<&Value>, stderr: &str) -> Failure {
    let message = message(result, stderr);
    let reason = text(result, "terminal_reason");
    match text(result, "subtype") {
        "error_max_turns" => return Failure::new(FailureClass::MaxTurns, message),
        "error_max_budget_usd" => {
            return Failure::new(FailureClass::SpendCap, message)
                .with_hint("raise the role's `budget_usd`, or give it less to do");
        }
        _ => {}
    }
    if text(result, "stop_reason") == "refusal" {
        return Failure::new(FailureClass::Refused, message)
            .with_hint("the model declined; change the prompt or the model");
    }
    if is_unknown_session(&message) {
        return Failure::new(FailureClass::Discontinuity, message);
    }
    let status = result["api_error_status"]
        .as_u64()
        .and_then(|status| u16::try_from(status).ok());
    let word = api_error.map_or("", |error| text(error, "error"));
    let by_text = failure::class_of_text(&message);
    let class = by_text
        .filter(|class| *class == FailureClass::SpendCap)
        .or_else(|| status.and_then(failure::class_of_status))
        .or_else(|| class_of_word(word))
        .or(by_text)
        .or_else(|| class_of_reason(reason, text(result, "subtype"), &message))
        .unwrap_or(FailureClass::Other);
    hinted(Failure::new(class, message), word)
}

/// The class of the word with which the CLI names an API error.
pub(crate) fn class_of_word(word: &str) -> Option<FailureClass> {
    match word {
        "authentication_failed" | "oauth_org_not_allowed" => Some(FailureClass::Auth),
        "rate_limit" => Some(FailureClass::RateLimited),
        "overloaded" | "server_error" => Some(FailureClass::Overloaded),
        "billing_error" => Some(FailureClass::SpendCap),
        "model_not_found" => Some(FailureClass::UnsupportedOption),
        _ => None,
    }
}

/// The class of an end that no API error explains.
fn class_of_reason(reason: &str, subtype: &str, message: &str) -> Option<FailureClass> {
    let lower = message.to_ascii_lowercase();
    let no_connection = [
        "connection error",
        "connection refused",
        "unable to connect",
        "econnre",
        "fetch failed",
    ];
    match (reason, subtype) {
        ("max_turns", _) => Some(FailureClass::MaxTurns),
        ("budget_exhausted", _) => Some(FailureClass::SpendCap),
        // Nobody answered; waiting may help as with a busy vendor.
        _ if no_connection.iter().any(|words| lower.contains(words)) => {
            Some(FailureClass::Overloaded)
        }
        // Interrupted from outside: there is no answer, and a fresh try may have one.
        ("aborted_streaming" | "aborted_tools", _) | (_, "error_during_execution") => {
            Some(FailureClass::Crashed)
        }
        _ => None,
    }
}

fn hinted(failure: Failure, word: &str) -> Failure {
    match failure.class {
        FailureClass::Auth => failure.with_hint(LOG_IN),
        FailureClass::SpendCap => {
            failure.with_hint("look at the account's plan and spending limit")
        }
        FailureClass::UnsupportedOption if word == "model_not_found" => {
            failure.with_hint("check the role's `model`")
        }
        _ => failure,
    }
}

/// What the result line says went wrong.
fn message(result: &Value, stderr: &str) -> String {
    let errors: Vec<&str> = result["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    match (
        text(result, "result"),
        errors.is_empty(),
        text(result, "subtype"),
    ) {
        ("", true, "") => {
            failure::with_stderr("Claude Code reported an error without a text", stderr)
        }
        ("", true, subtype) => {
            failure::with_stderr(&format!("Claude Code reported {subtype}"), stderr)
        }
        ("", false, _) => errors.join("; "),
        (said, _, _) => said.to_owned(),
    }
}

fn is_unknown_session(message: &str) -> bool {
    message.contains("No conversation found with session ID")
}

/// The failure of a process that was ended because it asked on in vain.
fn refused_login(times: u32) -> Failure {
    let message = format!("the vendor refused the login {times} times");
    Failure::new(FailureClass::Auth, message).with_hint(LOG_IN)
}

/// The failure of a process that ended without a result line.
fn without_result(exit: Exit, stderr: &str) -> Failure {
    let message = failure::with_stderr(
        &format!("Claude Code ended without a result ({exit})"),
        stderr,
    );
    let refused_at_start = matches!(exit, Exit::Code(code) if code != 0);
    if !refused_at_start {
        return Failure::new(FailureClass::Crashed, message);
    }
    let said = failure::stderr_excerpt(stderr);
    if is_unknown_session(said) || (said.contains("Session ID") && said.contains("already in use"))
    {
        return Failure::new(FailureClass::Discontinuity, message);
    }
    if said.contains("cannot be used with root") {
        return Failure::new(FailureClass::UnsupportedOption, message).with_hint(
            "run jig as an ordinary user, or leave IS_SANDBOX alone in the role's `env`",
        );
    }
    let class = failure::class_of_text(said).unwrap_or(FailureClass::Crashed);
    let failure = Failure::new(class, message);
    match class {
        FailureClass::UnsupportedOption => failure
            .with_hint("this version of Claude Code lacks an option that jig uses; update it"),
        _ => hinted(failure, ""),
    }
}

/// The figures of one send. The CLI's `usage` is of this send; its total cost is
/// of the whole conversation.
fn usage(
    dialect: &ClaudeDialect,
    result: &Value,
    session: &mut Session,
    lost: bool,
) -> Option<Usage> {
    let figures = result.get("usage").filter(|usage| usage.is_object())?;
    let since = cost_since_last(result);
    // The total of another conversation says nothing about this one.
    let total = result.get("total_cost_usd").and_then(Value::as_f64);
    let (cost_usd, late) = match lost {
        true => (since, None),
        false => session.ledger.book(since, total),
    };
    Some(Usage {
        input_tokens: count(figures, "input_tokens"),
        output_tokens: count(figures, "output_tokens"),
        cost_usd,
        context_tokens: context(dialect.last_usage.as_ref().unwrap_or(figures)),
        late,
    })
}

/// The cost of what happened since the previous result line.
fn cost_since_last(result: &Value) -> Option<f64> {
    let models = result.get("model_usage_since_last_result")?.as_object()?;
    models
        .values()
        .map(|model| model.get("costUSD").and_then(Value::as_f64))
        .sum::<Option<f64>>()
        // The sum of nothing is minus zero.
        .map(|cost| cost + 0.0)
        .filter(|cost| cost.is_finite() && *cost >= 0.0)
}

/// Everything the model has before it after a message.
fn context(usage: &Value) -> u64 {
    [
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens",
    ]
    .iter()
    .fold(0, |sum: u64, name| sum.saturating_add(count(usage, name)))
}

fn count(usage: &Value, name: &str) -> u64 {
    usage.get(name).and_then(Value::as_u64).unwrap_or(0)
}
