//! How a send ended, from the end of its last turn, else from its exit.

use jig_protocol::outcome::FailureClass;
use jig_runtime::dialect::{Exit, Verdict};
use jig_runtime::failure::{self, Failure};
use jig_runtime::{Session, Usage, structured};
use serde_json::Value;

use crate::translate::{CodexDialect, Turn, text};

const LOG_IN: &str = "log in again with `codex login`; or name a model provider with an `env_key` in Codex's config.toml and put that variable into the role's `env`";

/// Judges a stream that has ended.
pub(crate) fn verdict(
    dialect: &CodexDialect,
    session: &mut Session,
    exit: Exit,
    stderr: &str,
) -> Verdict {
    if let Some((asked, answered)) = dialect.answered_elsewhere() {
        return Verdict {
            outcome: Err(Failure::new(
                FailureClass::Discontinuity,
                format!("thread {asked} was to be continued, but thread {answered} answered"),
            )),
            // The total of another thread says nothing about this one.
            usage: None,
        };
    }
    if let Some(id) = dialect.answered_as_nobody() {
        return Verdict {
            outcome: Err(Failure::new(
                FailureClass::Discontinuity,
                format!("it answered as thread {id:?}, which cannot be continued"),
            )),
            usage: None,
        };
    }
    match &dialect.turn {
        Some(Turn::Completed(usage)) => Verdict {
            outcome: Ok(answer(dialect)),
            usage: figures(usage, session),
        },
        Some(Turn::Failed(said)) => Verdict {
            outcome: Err(reported(said, dialect.error.as_deref(), stderr)),
            usage: None,
        },
        None => Verdict {
            outcome: Err(without_end(dialect.error.as_deref(), exit, stderr)),
            usage: None,
        },
    }
}

fn answer(dialect: &CodexDialect) -> String {
    let said = &dialect.answer;
    let unfolded = dialect.structured.then(|| structured::unfold(said));
    unfolded.flatten().unwrap_or_else(|| said.clone())
}

/// The figures of one send; those of the stream are the thread's so far, and say
/// nothing of money. Of the context they do not tell.
fn figures(usage: &Value, session: &mut Session) -> Option<Usage> {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    let totals = (count("input_tokens")?, count("output_tokens")?);
    let (input_tokens, output_tokens) = session.ledger.tokens_of_send(totals.0, totals.1)?;
    Some(Usage {
        input_tokens,
        output_tokens,
        cost_usd: None,
        context_tokens: 0,
        late: None,
    })
}

/// The failure that the end of a turn reports.
fn reported(said: &str, error: Option<&str>, stderr: &str) -> Failure {
    let said = [said, error.unwrap_or("")]
        .into_iter()
        .find(|said| !said.is_empty());
    let message = match said {
        Some(said) => vendors_words(said),
        None => failure::with_stderr("Codex reported an error without a text", stderr),
    };
    failure(message)
}

/// The sentence in the body of a vendor's answer, where that is all there is.
fn vendors_words(said: &str) -> String {
    let Ok(body) = serde_json::from_str::<Value>(said) else {
        return said.to_owned();
    };
    let error = &body["error"];
    match (text(error, "code"), text(error, "message")) {
        (_, "") => said.to_owned(),
        ("", words) => words.to_owned(),
        (code, words) => format!("{words} ({code})"),
    }
}

fn failure(message: String) -> Failure {
    let class = class(&message).unwrap_or(FailureClass::Other);
    let failure = Failure::new(class, message);
    match class {
        FailureClass::Auth => failure.with_hint(LOG_IN),
        FailureClass::SpendCap => {
            failure.with_hint("look at the account's plan and spending limit")
        }
        FailureClass::UnsupportedOption => failure
            .with_hint("check the role's `model`, and the model provider in Codex's config.toml"),
        FailureClass::Refused => {
            failure.with_hint("the model declined; change the prompt or the model")
        }
        _ => failure,
    }
}

/// The class of what the CLI says of an error.
pub(crate) fn class(said: &str) -> Option<FailureClass> {
    let lower = said.to_ascii_lowercase();
    let has = |words: &str| lower.contains(words);
    let by_text = failure::class_of_text(said);
    if by_text == Some(FailureClass::SpendCap) || has("quota exceeded") {
        return Some(FailureClass::SpendCap);
    }
    if has("missing environment variable") {
        return Some(FailureClass::Auth);
    }
    // A filtered answer also counts as a stream that broke off: asked again, the
    // vendor would say the same.
    let refusals = [
        "flagged",
        "content_policy",
        "content_filter",
        "invalid_prompt",
    ];
    if refusals.iter().any(|words| has(words)) {
        return Some(FailureClass::Refused);
    }
    let status = status(&lower);
    let no_such_model = has("model_not_found") || (has("the model") && has("does not exist"));
    if status == Some(404) || no_such_model || is_no_such_provider(&lower) {
        return Some(FailureClass::UnsupportedOption);
    }
    // Nobody answered, or not to the end; waiting may help as with a busy vendor.
    let busy = ["at capacity", "connection failed", "stream disconnected"];
    let busy = busy.iter().any(|words| has(words));
    status
        .and_then(failure::class_of_status)
        .or(by_text)
        .or_else(|| busy.then_some(FailureClass::Overloaded))
}

/// The status of the vendor's answer: `unexpected status 401 Unauthorized`,
/// `last status: 429`.
fn status(lower: &str) -> Option<u16> {
    ["unexpected status ", "last status: "]
        .iter()
        .find_map(|mark| {
            let (_, after) = lower.split_once(mark)?;
            after.get(..3)?.parse().ok()
        })
}

fn is_no_such_provider(lower: &str) -> bool {
    lower.contains("model provider") && lower.contains("not found")
}

/// The failure of a process that ended without an end of a turn.
fn without_end(error: Option<&str>, exit: Exit, stderr: &str) -> Failure {
    let what = format!("Codex ended without a result ({exit})");
    let what = match error {
        Some(said) => format!("{what}: {}", vendors_words(said)),
        None => what,
    };
    let message = failure::with_stderr(&what, stderr);
    if !matches!(exit, Exit::Code(code) if code != 0) {
        return Failure::new(FailureClass::Crashed, message);
    }
    let said = failure::stderr_excerpt(stderr);
    if said.contains("no rollout found for thread id") {
        return Failure::new(FailureClass::Discontinuity, message);
    }
    if said.contains("Error loading config.toml") {
        return Failure::new(FailureClass::UnsupportedOption, message)
            .with_hint("look at the model providers in Codex's config.toml");
    }
    let class = class(error.unwrap_or("")).or_else(|| class(said));
    match class {
        Some(FailureClass::UnsupportedOption) if !is_no_such_provider(&said.to_lowercase()) => {
            Failure::new(FailureClass::UnsupportedOption, message)
                .with_hint("this version of Codex lacks an option that jig uses; update it")
        }
        Some(_) => failure(message),
        None => Failure::new(FailureClass::Crashed, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_cli_says_has_its_class() {
        for (said, expected) in [
            (
                "Selected model is at capacity. Please try a different model.",
                Some(FailureClass::Overloaded),
            ),
            (
                "stream disconnected before completion: Incomplete response returned, \
                 reason: content_filter",
                Some(FailureClass::Refused),
            ),
            (
                "stream disconnected before completion: error decoding response body",
                Some(FailureClass::Overloaded),
            ),
            (
                "The model `gpt-0` does not exist or you do not have access to it.",
                Some(FailureClass::UnsupportedOption),
            ),
            (
                "exceeded retry limit, last status: 429 Too Many Requests",
                Some(FailureClass::RateLimited),
            ),
            (
                "Incomplete response returned, reason: max_output_tokens",
                None,
            ),
        ] {
            assert_eq!(class(said), expected, "{said}");
        }
    }
}
