//! What a send that has no answer failed of.

use jig_protocol::outcome::FailureClass;
use jig_runtime::dialect::Exit;
use jig_runtime::failure::{self, Failure};

use crate::message::{AUTH_REQUIRED, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError};
use crate::step::Step;

/// The failure behind an error that answered a request. `methods` are the ways
/// in which the agent offers to authenticate.
pub(crate) fn answered_with(step: &Step, error: &RpcError, methods: &[String]) -> Failure {
    let message = format!(
        "the agent answered {} with error {}: {}",
        step.method(),
        error.code,
        error.message
    );
    let by_code = u16::try_from(error.code)
        .ok()
        .and_then(failure::class_of_status);
    let by_text = failure::class_of_text(&error.message)
        .or_else(|| status_in(&error.message).and_then(failure::class_of_status));
    let class = match (error.code, step) {
        (AUTH_REQUIRED, _) => FailureClass::Auth,
        (METHOD_NOT_FOUND, Step::Initialize | Step::Authenticate | Step::Choose(_))
        | (INVALID_PARAMS, Step::Authenticate | Step::Choose(_)) => FailureClass::UnsupportedOption,
        _ => match by_code.or(by_text) {
            Some(class) => class,
            None if matches!(step, Step::Load | Step::Resume) => FailureClass::Discontinuity,
            None if matches!(step, Step::Authenticate) => FailureClass::Auth,
            None => FailureClass::Other,
        },
    };
    let failed = Failure::new(class, message);
    match class {
        FailureClass::Auth => failed.with_hint(log_in(methods)),
        FailureClass::UnsupportedOption if matches!(step, Step::Initialize) => failed
            .with_hint("the command in runtimes.toml does not start an agent of this protocol"),
        _ => failed,
    }
}

/// What to do about a login that is missing.
fn log_in(methods: &[String]) -> String {
    let offers = match methods {
        [] => String::new(),
        _ => format!("; as `auth_method` it offers {}", methods.join(", ")),
    };
    format!(
        "log the agent in yourself and name its login files under `seed` in runtimes.toml, or \
         name its API key in the role's `env`{offers}"
    )
}

/// An HTTP status that a text clearly speaks of.
fn status_in(text: &str) -> Option<u16> {
    let lower = text.to_ascii_lowercase();
    ["status code ", "status: ", "status ", "http ", "error "]
        .iter()
        .find_map(|mark| {
            let (_, after) = lower.split_once(mark)?;
            let number = after.get(..3)?;
            let ends = !after.get(3..)?.starts_with(|c: char| c.is_alphanumeric());
            number.parse().ok().filter(|_| ends)
        })
}

/// The failure of a prompt that ended for another reason than that the agent
/// was done; `None` when it was.
pub(crate) fn stopped_for(reason: &str) -> Option<Failure> {
    let (class, why) = match reason {
        "end_turn" => return None,
        "refusal" => (FailureClass::Refused, "the agent refused to go on"),
        "max_turn_requests" => (
            FailureClass::MaxTurns,
            "the agent reached its limit of requests in one turn",
        ),
        "max_tokens" => (FailureClass::Other, "the agent's model ran out of tokens"),
        "cancelled" => (FailureClass::Crashed, "the agent cancelled its turn"),
        "" => (
            FailureClass::Other,
            "the agent ended its turn without a reason",
        ),
        other => {
            return Some(Failure::new(
                FailureClass::Other,
                format!("the agent ended its turn with {other:?}"),
            ));
        }
    };
    let failed = Failure::new(class, why);
    Some(match class {
        FailureClass::Refused => {
            failed.with_hint("the model declined; change the prompt or the model")
        }
        _ => failed,
    })
}

/// The failure of an agent that went away, or fell silent, before it answered.
pub(crate) fn without_answer(step: &Step, exit: Exit, seconds: u64, stderr: &str) -> Failure {
    let method = step.method();
    if exit == Exit::GivenUp {
        let what = format!("the agent did not answer {method} within {seconds} s");
        return Failure::new(
            FailureClass::KilledByClock,
            failure::with_stderr(&what, stderr),
        );
    }
    let what = format!("the agent ended ({exit}) before it answered {method}");
    let message = failure::with_stderr(&what, stderr);
    let class = match exit {
        Exit::Code(code) if code != 0 => failure::class_of_text(failure::stderr_excerpt(stderr)),
        _ => None,
    };
    Failure::new(class.unwrap_or(FailureClass::Crashed), message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Setting;

    fn class(step: Step, code: i64, message: &str) -> FailureClass {
        let error = RpcError {
            code,
            message: message.to_owned(),
        };
        answered_with(&step, &error, &[]).class
    }

    #[test]
    fn errors_have_classes() {
        for (step, code, message, expected) in [
            (Step::New, -32000, "x", FailureClass::Auth),
            (Step::Prompt, 401, "{\"error\":1}", FailureClass::Auth),
            (Step::Prompt, 429, "x", FailureClass::RateLimited),
            (
                Step::Prompt,
                -32603,
                "Internal error: fake error 401",
                FailureClass::Auth,
            ),
            (
                Step::Prompt,
                -32603,
                "unexpected status 503 Service Unavailable",
                FailureClass::Overloaded,
            ),
            (Step::Prompt, -32603, "Overloaded", FailureClass::Overloaded),
            (Step::Prompt, -32603, "error 4012", FailureClass::Other),
            (Step::Prompt, -32603, "Internal error", FailureClass::Other),
            (
                Step::Load,
                -32603,
                "No previous sessions found",
                FailureClass::Discontinuity,
            ),
            (Step::Resume, -32002, "x", FailureClass::Discontinuity),
            (Step::Load, -32000, "x", FailureClass::Auth),
            (Step::Authenticate, -32603, "x", FailureClass::Auth),
            (
                Step::Authenticate,
                -32601,
                "x",
                FailureClass::UnsupportedOption,
            ),
            (
                Step::Choose(Setting::Model),
                -32602,
                "x",
                FailureClass::UnsupportedOption,
            ),
            (
                Step::Initialize,
                -32601,
                "x",
                FailureClass::UnsupportedOption,
            ),
            (Step::New, -32601, "x", FailureClass::Other),
        ] {
            assert_eq!(
                class(step, code, message),
                expected,
                "{step:?} {code} {message}"
            );
        }
    }

    #[test]
    fn a_missing_login_says_what_the_agent_offers() {
        let error = RpcError {
            code: AUTH_REQUIRED,
            message: "Authentication required".into(),
        };
        let failure = answered_with(&Step::New, &error, &["api-key".into(), "oauth".into()]);
        assert_eq!(
            failure.message,
            "the agent answered session/new with error -32000: Authentication required"
        );
        assert!(failure.hint.unwrap().ends_with("it offers api-key, oauth"));
    }

    #[test]
    fn turns_end_for_reasons() {
        assert_eq!(stopped_for("end_turn"), None);
        for (reason, class) in [
            ("refusal", FailureClass::Refused),
            ("max_turn_requests", FailureClass::MaxTurns),
            ("max_tokens", FailureClass::Other),
            ("cancelled", FailureClass::Crashed),
            ("", FailureClass::Other),
            ("new_reason", FailureClass::Other),
        ] {
            assert_eq!(stopped_for(reason).unwrap().class, class, "{reason}");
        }
    }

    #[test]
    fn an_agent_that_goes_away_is_told_with_the_step_and_its_last_words() {
        let failure = without_answer(&Step::New, Exit::GivenUp, 60, "waiting for a browser\n");
        assert_eq!(failure.class, FailureClass::KilledByClock);
        assert_eq!(
            failure.message,
            "the agent did not answer session/new within 60 s; it said: waiting for a browser"
        );
        let failure = without_answer(&Step::Prompt, Exit::Code(1), 60, "Not logged in");
        assert_eq!(failure.class, FailureClass::Auth);
        let failure = without_answer(&Step::Prompt, Exit::Signal(9), 60, "Not logged in");
        assert_eq!(failure.class, FailureClass::Crashed);
        let failure = without_answer(&Step::Initialize, Exit::Code(0), 60, "");
        assert_eq!(
            failure.message,
            "the agent ended (exit code 0) before it answered initialize"
        );
    }
}
