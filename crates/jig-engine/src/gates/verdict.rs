//! `verdict_consistent`: a review's verdict agrees with its own evidence.

use jig_protocol::envelope::{Envelope, type_name};
use jig_protocol::outcome::Check;
use serde_json::Value;

/// `approved`, `blocking` and `findings` do not contradict each other, and a
/// rejection names its reason.
pub(super) fn verdict_consistent(envelope: &Envelope) -> Vec<Check> {
    let approved = envelope.field("approved");
    let says_yes = approved == Some(&Value::Bool(true));
    let blocking = match list(envelope, "blocking") {
        Ok(list) => list.len(),
        Err(check) => return vec![check],
    };
    let findings = match list(envelope, "findings") {
        Ok(list) => list,
        Err(check) => return vec![check],
    };
    let unmet = match unmet_findings(findings) {
        Ok(count) => count,
        Err(check) => return vec![check],
    };
    vec![
        against("blocking", "blocking issue", blocking, says_yes),
        against("findings", "unmet finding", unmet, says_yes),
        supported(approved, blocking + unmet > 0),
    ]
}

/// A field that must be a list where it is present.
fn list<'a>(envelope: &'a Envelope, field: &str) -> Result<&'a [Value], Check> {
    match envelope.field(field) {
        None => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(other) => Err(Check::fail(
            field,
            format!("must be a list, not {}", type_name(other)),
        )),
    }
}

fn unmet_findings(findings: &[Value]) -> Result<usize, Check> {
    let mut unmet = 0;
    for (at, finding) in findings.iter().enumerate() {
        match finding.get("met") {
            Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => unmet += 1,
            _ => {
                return Err(Check::fail(
                    format!("findings[{at}]"),
                    "must be an object with a boolean `met`",
                ));
            }
        }
    }
    Ok(unmet)
}

/// Evidence against approval, next to the verdict.
fn against(item: &str, noun: &str, count: usize, approved: bool) -> Check {
    let plural = if count == 1 { "" } else { "s" };
    match (count, approved) {
        (0, _) => Check::pass(item, format!("no {noun}s")),
        (_, true) => Check::fail(item, format!("approved despite {count} {noun}{plural}")),
        (_, false) => Check::pass(item, format!("{count} {noun}{plural}, not approved")),
    }
}

/// The verdict is stated, and a rejection has a reason.
fn supported(approved: Option<&Value>, has_reason: bool) -> Check {
    match approved {
        None => Check::fail("approved", "is missing; state true or false"),
        Some(Value::Bool(true)) => Check::pass("approved", "approved"),
        Some(Value::Bool(false)) if has_reason => {
            Check::pass("approved", "rejected, with a reason")
        }
        Some(Value::Bool(false)) => Check::fail(
            "approved",
            "rejected without a reason; add a blocking issue or an unmet finding",
        ),
        Some(other) => Check::fail(
            "approved",
            format!("must be true or false, not {}", type_name(other)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jig_protocol::envelope::EnvelopeStatus;
    use serde_json::json;

    fn review(fields: Value) -> Vec<Check> {
        let Value::Object(map) = fields.clone() else {
            panic!("an object")
        };
        verdict_consistent(&Envelope {
            raw: serde_json::value::to_raw_value(&fields).unwrap(),
            fields: map,
            status: EnvelopeStatus::Success,
            summary: String::new(),
            artifacts: None,
            notes_for_next_agent: String::new(),
        })
    }

    #[test]
    fn verdicts_and_their_evidence() {
        let unmet = json!([{"met": false}, {"met": true}]);
        for (fields, failing) in [
            (json!({"approved": true}), vec![]),
            (
                json!({"approved": true, "blocking": [], "findings": [{"met": true}]}),
                vec![],
            ),
            (json!({"approved": false, "blocking": ["x"]}), vec![]),
            (json!({"approved": false, "findings": unmet}), vec![]),
            (
                json!({"approved": true, "blocking": ["x"]}),
                vec!["blocking"],
            ),
            (
                json!({"approved": true, "findings": unmet}),
                vec!["findings"],
            ),
            (json!({"approved": false}), vec!["approved"]),
            (json!({"blocking": ["x"]}), vec!["approved"]),
            (json!({"approved": "true"}), vec!["approved"]),
            (
                json!({"approved": false, "blocking": "x"}),
                vec!["blocking"],
            ),
            (
                json!({"approved": false, "findings": [{"note": 1}]}),
                vec!["findings[0]"],
            ),
        ] {
            let found: Vec<String> = review(fields.clone())
                .into_iter()
                .filter(|check| !check.ok)
                .map(|check| check.item)
                .collect();
            assert_eq!(found, failing, "{fields}");
        }
    }

    #[test]
    fn a_missing_a_mistyped_and_a_bare_verdict_are_told_apart() {
        let note = |fields| review(fields).pop().unwrap().note;
        let notes = [
            note(json!({})),
            note(json!({"approved": 1})),
            note(json!({"approved": false})),
        ];
        assert!(notes[0].contains("missing"), "{notes:?}");
        assert!(notes[1].contains("a number"), "{notes:?}");
        assert!(notes[2].contains("without a reason"), "{notes:?}");
    }
}
