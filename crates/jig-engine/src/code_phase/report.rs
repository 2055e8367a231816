//! What a command says: its report, and the envelope its adapter makes of it.

use std::collections::BTreeSet;

use jig_process::capture::Line;
use jig_process::{CommandEnd, CommandOutcome, StopReason};
use jig_protocol::envelope::{Envelope, EnvelopeStatus};
use jig_protocol::predicate::Fields;
use jig_protocol::{limits, text};
use serde_json::{Value, json};

/// Fields that the adapter itself says.
const RESERVED: [&str; 7] = [
    "status",
    "summary",
    "passed",
    "failures",
    "exit_code",
    "output_tail",
    "stderr_tail",
];

/// Of a command's text in a summary.
const COMMAND_BYTES: usize = 200;

/// Reads the report of a command that passed: the last line of its stdout.
pub(super) fn read_report(last_line: Option<&Line>) -> Result<Fields, String> {
    let line = match last_line {
        None => return Err("stdout has no line; its last one must be a JSON object".to_owned()),
        Some(Line::TooLong) => {
            return Err(format!(
                "the last line of stdout is longer than {} bytes",
                limits::REPORT_LINE_BYTES
            ));
        }
        Some(Line::Whole(line)) => line,
    };
    let fields: Fields = serde_json::from_str(line.trim())
        .map_err(|error| format!("the last line of stdout is no JSON object: {error}"))?;
    match fields.keys().find(|key| RESERVED.contains(&key.as_str())) {
        Some(key) => Err(format!("the field {key:?} is reserved")),
        None => Ok(fields),
    }
}

/// How a command's run went, its report included.
#[derive(Debug, Clone)]
pub(super) struct Adapted {
    /// What is handed on.
    pub(super) envelope: Envelope,
    /// The fields that the report named.
    pub(super) reported: BTreeSet<String>,
    /// Why the run failed; `None` when it passed.
    pub(super) failure: Option<String>,
    /// Its exit code; -1 when there is none, or the report is missing.
    pub(super) exit_code: i32,
    /// Whether the phase's clock ended it.
    pub(super) timed_out: bool,
}

/// Makes an envelope of a command's end. `how` is that end in words.
pub(super) fn adapt(
    command: &str,
    outcome: &CommandOutcome,
    how: String,
    wants_report: bool,
) -> Adapted {
    let mut exit_code = match outcome.end {
        CommandEnd::Code(code) => code,
        _ => -1,
    };
    let mut failure = (exit_code != 0).then_some(how);
    let mut fields = Fields::new();
    if failure.is_none() && wants_report {
        match read_report(outcome.stdout.last_line.as_ref()) {
            Ok(report) => fields = report,
            Err(why) => {
                exit_code = -1;
                failure = Some(format!("reports_fields: {why}"));
            }
        }
    }
    let reported = fields.keys().cloned().collect();
    let status = if failure.is_none() {
        EnvelopeStatus::Success
    } else {
        EnvelopeStatus::Fail
    };
    let ended = failure.as_deref().unwrap_or("exit 0");
    let summary = format!("`{}`: {ended}", text::head(command, COMMAND_BYTES));
    fields.insert("passed".to_owned(), Value::Bool(failure.is_none()));
    fields.insert("failures".to_owned(), Value::from_iter(failure.as_deref()));
    fields.insert("exit_code".to_owned(), json!(exit_code));
    fields.insert("output_tail".to_owned(), json!(outcome.stdout.tail));
    fields.insert("stderr_tail".to_owned(), json!(outcome.stderr.tail));
    Adapted {
        envelope: Envelope::from_fields(status, &summary, fields),
        reported,
        failure,
        exit_code,
        timed_out: outcome.end == CommandEnd::Stopped(StopReason::PhaseTimeout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jig_process::Teardown;
    use jig_process::command::Kept;

    fn ended(end: CommandEnd, last_line: Option<&str>) -> CommandOutcome {
        CommandOutcome {
            end,
            stdout: Kept {
                tail: "out".into(),
                last_line: last_line.map(|line| Line::Whole(line.into())),
                ..Kept::default()
            },
            stderr: Kept {
                tail: "err".into(),
                ..Kept::default()
            },
            teardown: Teardown::default(),
        }
    }

    #[test]
    fn a_passed_command_says_so_in_plain_json_values() {
        let adapted = adapt(
            "true",
            &ended(CommandEnd::Code(0), None),
            "exit 0".into(),
            false,
        );
        assert_eq!(adapted.failure, None);
        assert_eq!(
            Value::Object(adapted.envelope.fields),
            json!({
                "status": "success", "summary": "`true`: exit 0", "passed": true,
                "failures": [], "exit_code": 0, "output_tail": "out", "stderr_tail": "err",
            })
        );
    }

    #[test]
    fn a_failed_command_is_not_asked_for_a_report() {
        let end = ended(CommandEnd::Code(3), Some(r#"{"risk": "low"}"#));
        let adapted = adapt("x", &end, "exit 3".into(), true);
        assert_eq!(adapted.failure.as_deref(), Some("exit 3"));
        assert!(adapted.reported.is_empty());
        assert_eq!(adapted.envelope.field("risk"), None);
        assert_eq!(adapted.envelope.field("failures"), Some(&json!(["exit 3"])));
        assert_eq!(adapted.envelope.field("exit_code"), Some(&json!(3)));
    }

    #[test]
    fn a_report_joins_the_envelope() {
        let end = ended(
            CommandEnd::Code(0),
            Some(" {\"risk\": \"high\", \"n\": 1}\r"),
        );
        let adapted = adapt("x", &end, "exit 0".into(), true);
        assert_eq!(adapted.failure, None);
        assert_eq!(adapted.envelope.field("risk"), Some(&json!("high")));
        assert_eq!(adapted.reported.iter().collect::<Vec<_>>(), ["n", "risk"]);
    }

    #[test]
    fn reports_that_cannot_be_read_fail_the_phase() {
        for (line, expected) in [
            (None, "stdout has no line"),
            (Some("done"), "no JSON object"),
            (Some("[1]"), "no JSON object"),
            (Some(r#"{"exit_code": 0}"#), "\"exit_code\" is reserved"),
            (Some(r#"{"a": 1} trailing"#), "no JSON object"),
        ] {
            let adapted = adapt(
                "x",
                &ended(CommandEnd::Code(0), line),
                "exit 0".into(),
                true,
            );
            let failure = adapted.failure.unwrap();
            assert!(failure.starts_with("reports_fields: "), "{failure}");
            assert!(failure.contains(expected), "{failure}");
            assert_eq!(adapted.exit_code, -1);
            assert_eq!(adapted.envelope.status, EnvelopeStatus::Fail);
        }
        let mut end = ended(CommandEnd::Code(0), None);
        end.stdout.last_line = Some(Line::TooLong);
        let failure = adapt("x", &end, "exit 0".into(), true).failure.unwrap();
        assert!(failure.contains("longer than 32768 bytes"), "{failure}");
    }
}
