//! What an agent is told: the composed prompt and the corrections.

use std::collections::BTreeMap;

use jig_protocol::envelope::Envelope;
use jig_protocol::outcome::GateReport;

/// What may be put into a prompt's template.
#[derive(Debug, Clone)]
pub(crate) struct PromptValues<'a> {
    /// The run's parameters, the operator's `prompt` among them.
    pub(crate) parameters: &'a BTreeMap<String, String>,
    /// The envelope before, as it was written; `None` for the first phase.
    pub(crate) previous: Option<&'a str>,
    /// Where notes for later phases go.
    pub(crate) handoff_dir: &'a str,
    /// The commit the attempt started from.
    pub(crate) base_sha: &'a str,
}

const PREVIOUS: &str = "previous_envelope";
const HANDOFF: &str = "handoff_dir";
const BASE: &str = "base_sha";

impl PromptValues<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        match name {
            PREVIOUS => Some(self.previous.unwrap_or("(none)")),
            HANDOFF => Some(self.handoff_dir),
            BASE => Some(self.base_sha),
            parameter => self.parameters.get(parameter).map(String::as_str),
        }
    }
}

/// The user prompt of an entry: the template with its placeholders replaced in
/// one pass, then what the template left out, then the envelope's contract.
pub(crate) fn compose(template: &str, values: &PromptValues<'_>) -> String {
    let (mut prompt, used) = substitute(template, values);
    if !used.contains(&PREVIOUS) {
        prompt.push_str("\n\n## Previous envelope\n\n");
        prompt.push_str(values.previous.unwrap_or("(none)"));
    }
    if !used.contains(&HANDOFF) {
        prompt.push_str("\n\n## Handoff directory\n\n");
        prompt.push_str(values.handoff_dir);
        prompt
            .push_str("\nNotes for the phases after this one belong there, not in the work tree.");
    }
    prompt.push_str(CONTRACT);
    prompt
}

/// Replaces every known `{{name}}` and says which names occurred. What is put
/// in is not looked at again; an unknown name stays as it stands.
fn substitute<'a>(template: &'a str, values: &PromptValues<'_>) -> (String, Vec<&'a str>) {
    let mut out = String::with_capacity(template.len());
    let mut used = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let found = after
            .split_once("}}")
            .and_then(|(name, tail)| Some((name, values.get(name)?, tail)));
        match found {
            Some((name, value, tail)) => {
                out.push_str(value);
                used.push(name);
                rest = tail;
            }
            None => {
                // Only one brace is passed: `{{{name}}` holds a name as well.
                out.push('{');
                rest = rest.get(before.len() + 1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    (out, used)
}

const CONTRACT: &str = "\n\n## Your answer\n\n\
End with exactly one JSON object and nothing after it:\n\n\
- `status`: \"success\" if everything that was asked for is done, else \"fail\"\n\
- `summary`: a sentence or two on what you did and found\n\
- `artifacts`: a list of the files you made or changed, as paths relative to the root of the repository; [] if none\n\
- `notes_for_next_agent`: what whoever works after you should know; \"\" if nothing\n\n\
Add any further fields that were asked for above.";

/// Asks again after an answer that held no envelope. `error` is the parser's
/// own message.
pub(crate) fn parse_correction(error: &str) -> String {
    format!(
        "Your last answer could not be read: {error}\n\n\
         Answer again with the JSON object alone, without prose and without a code fence. \
         It needs {fields}, and every field that was asked for before.",
        fields = Envelope::BASE_FIELDS
            .map(|field| format!("`{field}`"))
            .join(", "),
    )
}

/// Asks for the work to be put right after gates that did not pass.
pub(crate) fn gate_correction(reports: &[GateReport]) -> String {
    let mut text = String::from("Your work was checked, and the validation failed:\n\n");
    for violation in violations(reports) {
        text.push_str("- ");
        text.push_str(&violation);
        text.push('\n');
    }
    text.push_str(
        "\nPut this right, then answer again with the whole JSON object, \
         its fields brought up to date.",
    );
    text
}

/// Every check that did not hold, as one line each.
pub(crate) fn violations(reports: &[GateReport]) -> Vec<String> {
    let mut lines = Vec::new();
    for report in reports.iter().filter(|report| !report.passed) {
        let before = lines.len();
        for check in report.checks.iter().filter(|check| !check.ok) {
            let note = if check.note.is_empty() {
                "failed"
            } else {
                &check.note
            };
            lines.push(format!("{}: {}: {note}", report.gate, check.item));
        }
        if lines.len() == before {
            lines.push(format!("{}: checked nothing", report.gate));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use jig_protocol::outcome::Check;

    fn parameters(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn composed(template: &str, pairs: &[(&str, &str)], previous: Option<&str>) -> String {
        compose(
            template,
            &PromptValues {
                parameters: &parameters(pairs),
                previous,
                handoff_dir: "/attempt/handoff",
                base_sha: "abc123",
            },
        )
    }

    #[test]
    fn what_is_put_in_is_not_scanned_again() {
        let text = composed(
            "A {{prompt}} B {{x}} {{base_sha}}",
            &[("prompt", "{{x}} {{base_sha}}"), ("x", "{{prompt}}")],
            None,
        );
        assert!(text.starts_with("A {{x}} {{base_sha}} B {{prompt}} abc123\n"));
    }

    #[test]
    fn unknown_and_broken_placeholders_stay() {
        let text = composed(
            "{{unknown}} {{ prompt }} {{prompt",
            &[("prompt", "P")],
            None,
        );
        assert!(text.starts_with("{{unknown}} {{ prompt }} {{prompt\n"));
        let text = composed("{{{prompt}}} {{a{{prompt}}", &[("prompt", "P")], None);
        assert!(text.starts_with("{P} {{aP\n"), "{text}");
    }

    #[test]
    fn sections_appear_only_where_the_template_lacks_them() {
        let both = composed(
            "{{previous_envelope}}|{{handoff_dir}}",
            &[],
            Some("{\"a\": 1}"),
        );
        assert!(both.starts_with("{\"a\": 1}|/attempt/handoff\n"));
        assert!(!both.contains("## Previous envelope") && !both.contains("## Handoff"));
        let neither = composed("T", &[], None);
        let order: Vec<_> = [
            "## Previous envelope\n\n(none)",
            "## Handoff directory",
            "## Your answer",
        ]
        .iter()
        .map(|part| neither.find(part).unwrap())
        .collect();
        assert!(order.is_sorted(), "{neither}");
        // A value that looks like the placeholder does not stand for it.
        let trick = composed(
            "{{prompt}}",
            &[("prompt", "{{previous_envelope}}")],
            Some("E"),
        );
        assert!(trick.contains("## Previous envelope\n\nE"));
    }

    #[test]
    fn corrections_carry_the_reason() {
        assert!(parse_correction("`status` is missing").contains("`status` is missing"));
        let reports = [GateReport {
            gate: "artifacts_exist".into(),
            position: 0,
            passed: false,
            checks: vec![
                Check::pass("a", "exists"),
                Check::fail("b", "does not exist"),
                Check::fail("c", ""),
            ],
        }];
        let text = gate_correction(&reports);
        assert!(text.contains("- artifacts_exist: b: does not exist\n"));
        assert!(text.contains("- artifacts_exist: c: failed\n"));
        assert!(!text.contains("exists\n- a"));
        let empty = [GateReport {
            checks: vec![],
            ..reports[0].clone()
        }];
        assert_eq!(violations(&empty), ["artifacts_exist: checked nothing"]);
    }

    proptest::proptest! {
        #[test]
        fn one_pass_whatever_the_text(template in "[{}a-b ]{0,40}", value in "[{}a-b]{0,10}") {
            let parameters = parameters(&[("a", &value), ("b", "")]);
            let values = PromptValues {
                parameters: &parameters,
                previous: None,
                handoff_dir: "h",
                base_sha: "s",
            };
            let (out, used) = substitute(&template, &values);
            let grown: usize = used.iter().map(|name| {
                let put = if *name == "a" { value.len() } else { 0 };
                put as isize - 5
            }).sum::<isize>().unsigned_abs();
            let expected = template.len().abs_diff(out.len());
            proptest::prop_assert_eq!(grown, expected);
        }
    }
}
