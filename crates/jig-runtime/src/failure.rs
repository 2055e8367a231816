//! Failures of a send: their class, and how texts of vendors are classified.
//!
//! Classes decide what the engine does next, so a guess is made only from words
//! that leave little doubt; everything else is [`FailureClass::Other`].

use std::time::Duration;

use jig_protocol::limits;
use jig_protocol::outcome::FailureClass;
use jig_protocol::text;

/// Why a send has no answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// What kind.
    pub class: FailureClass,
    /// What was said, in words.
    pub message: String,
    /// What to do about it, where that is known.
    pub hint: Option<String>,
    /// How long the vendor asks to wait.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure without hint and wait. The wait is looked for in the message.
    #[must_use]
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        let message = message.into();
        let retry_after = if class.is_retryable() {
            retry_after(&message)
        } else {
            None
        };
        Self {
            class,
            message,
            hint: None,
            retry_after,
        }
    }

    /// The same with advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// What an HTTP status of a vendor's API means, where it means one thing.
#[must_use]
pub const fn class_of_status(status: u16) -> Option<FailureClass> {
    match status {
        401 | 403 => Some(FailureClass::Auth),
        402 => Some(FailureClass::SpendCap),
        429 => Some(FailureClass::RateLimited),
        500 | 502 | 503 | 504 | 529 => Some(FailureClass::Overloaded),
        _ => None,
    }
}

/// Words and what they mean, the more specific first. All lower case.
const WORDS: &[(&str, FailureClass)] = &[
    ("credit balance is too low", FailureClass::SpendCap),
    ("credit balance too low", FailureClass::SpendCap),
    ("insufficient_quota", FailureClass::SpendCap),
    ("insufficient quota", FailureClass::SpendCap),
    ("billing hard limit", FailureClass::SpendCap),
    ("spending limit", FailureClass::SpendCap),
    ("spend limit", FailureClass::SpendCap),
    ("exceeded your current quota", FailureClass::SpendCap),
    ("terminalquotaerror", FailureClass::SpendCap),
    ("usage limit reached", FailureClass::RateLimited),
    ("hit your limit", FailureClass::RateLimited),
    ("hit your usage limit", FailureClass::RateLimited),
    ("rate limit", FailureClass::RateLimited),
    ("rate_limit", FailureClass::RateLimited),
    ("too many requests", FailureClass::RateLimited),
    ("overloaded", FailureClass::Overloaded),
    ("high demand", FailureClass::Overloaded),
    ("not logged in", FailureClass::Auth),
    ("please run /login", FailureClass::Auth),
    ("invalid api key", FailureClass::Auth),
    ("invalid x-api-key", FailureClass::Auth),
    ("authentication_error", FailureClass::Auth),
    ("failed to authenticate", FailureClass::Auth),
    ("oauth token has expired", FailureClass::Auth),
    ("unauthorized", FailureClass::Auth),
    ("unknown option", FailureClass::UnsupportedOption),
    ("unexpected argument", FailureClass::UnsupportedOption),
];

/// What an error text of a CLI means, when it says something well known.
///
/// Only for texts that are known to be errors: an agent's answer may talk of
/// rate limits without having met one.
#[must_use]
pub fn class_of_text(message: &str) -> Option<FailureClass> {
    let lower = message.to_ascii_lowercase();
    WORDS
        .iter()
        .find(|(words, _)| lower.contains(words))
        .map(|(_, class)| *class)
}

/// The wait that an error text names: `retry-after: 30`, `try again in 1m 20s`,
/// `retry in 500ms`, `wait 2 minutes`.
///
/// Bare numbers are seconds. Absolute moments are not understood: the engine
/// then backs off by its own rule.
#[must_use]
pub fn retry_after(message: &str) -> Option<Duration> {
    const MARKS: &[&str] = &[
        "retry-after:",
        "retry-after",
        "retry_after:",
        "retry_after",
        "retry after",
        "try again in",
        "again in",
        "retry in",
        "retrying in",
        "wait",
        "resets in",
    ];
    let lower = message.to_ascii_lowercase();
    MARKS.iter().find_map(|mark| {
        lower
            .match_indices(mark)
            .find_map(|(at, _)| duration_at(lower.get(at + mark.len()..)?))
    })
}

/// A duration at the start of `text`: numbers, each with or without a unit.
fn duration_at(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start_matches([' ', '"', '\'', '=', ':', '~']);
    let mut total: Option<f64> = None;
    loop {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let Some(number) = rest
            .get(..digits)
            .and_then(|n| n.trim_end_matches('.').parse::<f64>().ok())
        else {
            break;
        };
        let after = rest.get(digits..).unwrap_or("").trim_start();
        let letters = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let unit = after.get(..letters).unwrap_or("");
        let Some(factor) = seconds_per(unit) else {
            // "30 requests": a number of something else. A bare one is seconds.
            if total.is_none() && unit.is_empty() {
                total = Some(number);
            }
            break;
        };
        total = Some(total.unwrap_or(0.0) + number * factor);
        rest = after
            .get(letters..)
            .unwrap_or("")
            .trim_start_matches([' ', ',']);
    }
    // A day is more than any clock here allows; more is no number to trust.
    total
        .filter(|seconds| (0.0..=86_400.0).contains(seconds))
        .map(Duration::from_secs_f64)
}

/// How many seconds one of `unit` has.
fn seconds_per(unit: &str) -> Option<f64> {
    match unit {
        "ms" | "millisecond" | "milliseconds" => Some(0.001),
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1.0),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60.0),
        "h" | "hr" | "hour" | "hours" => Some(3_600.0),
        _ => None,
    }
}

/// The end of what a CLI said on stderr, as an error may show it.
///
/// It begins with a whole line, else with a whole word: errors are redacted
/// later, and half a secret would not be known for one.
#[must_use]
pub fn stderr_excerpt(stderr: &str) -> &str {
    let said = stderr.trim();
    let end = text::tail(said, limits::STDERR_IN_ERROR_BYTES);
    if end.len() == said.len() {
        return end;
    }
    let cut = end.find('\n').or_else(|| end.find(char::is_whitespace));
    cut.and_then(|cut| end.get(cut..))
        .unwrap_or("")
        .trim_start()
}

/// `what`, followed by the end of stderr where there is one.
#[must_use]
pub fn with_stderr(what: &str, stderr: &str) -> String {
    match stderr_excerpt(stderr) {
        "" => what.to_owned(),
        said => format!("{what}; it said: {said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_from_texts() {
        for (text, expected) in [
            ("429: Retry-After: 30", Some(30_000)),
            ("retry_after\":\"12\"", Some(12_000)),
            ("please try again in 1m 20s.", Some(80_000)),
            ("try again in 6.5s", Some(6_500)),
            ("retrying in 500ms", Some(500)),
            ("wait 2 minutes, 5 seconds", Some(125_000)),
            ("wait for it, then retry in 3 seconds", Some(3_000)),
            ("resets in 1 hour", Some(3_600_000)),
            ("try again later", None),
            ("wait 30 requests", None),
            ("retry after 999999999", None),
            ("resets at 11:00", None),
            ("", None),
        ] {
            assert_eq!(
                retry_after(text).map(|wait| wait.as_millis()),
                expected,
                "{text:?}"
            );
        }
    }

    #[test]
    fn well_known_words_have_classes() {
        for (text, expected) in [
            (
                "Your credit balance is too low to use the API",
                Some(FailureClass::SpendCap),
            ),
            (
                "error: insufficient_quota (rate limit)",
                Some(FailureClass::SpendCap),
            ),
            (
                "Claude AI usage limit reached|1700000000",
                Some(FailureClass::RateLimited),
            ),
            (
                "exceeded retry limit, last status: 429 Too Many Requests",
                Some(FailureClass::RateLimited),
            ),
            ("Overloaded", Some(FailureClass::Overloaded)),
            (
                "Not logged in · Please run /login",
                Some(FailureClass::Auth),
            ),
            (
                "error: unknown option '--nope'",
                Some(FailureClass::UnsupportedOption),
            ),
            ("something else", None),
        ] {
            assert_eq!(class_of_text(text), expected, "{text:?}");
        }
    }

    #[test]
    fn statuses_have_classes() {
        assert_eq!(class_of_status(529), Some(FailureClass::Overloaded));
        assert_eq!(class_of_status(429), Some(FailureClass::RateLimited));
        assert_eq!(class_of_status(401), Some(FailureClass::Auth));
        assert_eq!(class_of_status(400), None);
    }

    #[test]
    fn errors_show_the_end_of_stderr() {
        let long = format!("{} the cause", "é".repeat(2_000));
        let shown = with_stderr("exited", &long);
        assert!(shown.ends_with("the cause") && shown.len() < 1_100);
        assert_eq!(stderr_excerpt(&long), "the cause");
        let lines = format!("{}\nlast words", "a secret\n".repeat(200));
        let shown = stderr_excerpt(&lines);
        assert!(
            shown.starts_with("a secret\n") && shown.len() > 1_000,
            "{shown}"
        );
        assert_eq!(stderr_excerpt(&"x".repeat(2_000)), "");
        assert_eq!(with_stderr("exited", " \n"), "exited");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_classified_without_a_panic(text in "\\PC{0,80}") {
            let _ = class_of_text(&text);
            if let Some(wait) = retry_after(&text) {
                proptest::prop_assert!(wait <= Duration::from_secs(86_400));
            }
        }
    }
}
