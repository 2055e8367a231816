//! The result document within its bound.
//!
//! The full document first; if it is too large, the same facts with less
//! evidence; if that is too large, fewer of them. Every form is a valid
//! [`ResultDocument`] of at most [`limits::RESULT_BYTES`], and none loses the
//! verdict, the hold, the cause or the spend.

use jig_protocol::outcome::{Check, PhaseResult, ResultDocument, Truncation};
use jig_protocol::{limits, text};
use serde_json::{Value, json};

use crate::redact::Redactor;

/// An error inside a document that had to be cut.
const SHORT_ERROR_BYTES: usize = 512;
/// A check's item or note inside a document that had to be cut.
const SHORT_NOTE_BYTES: usize = 256;
/// Why a result is held; it quotes a field's value.
const HOLD_BYTES: usize = 2048;
/// Checks kept of a document that had to be cut twice.
const FEW_CHECKS: usize = 20;

/// Takes the secrets out of a document, then cuts it to its bound.
pub(crate) fn bounded(mut document: ResultDocument, redactor: &Redactor) -> ResultDocument {
    redact(&mut document, redactor);
    for phase in &mut document.phases {
        bound_phase(phase);
    }
    if let Some(hold) = &mut document.publish_hold {
        cut(hold, HOLD_BYTES);
    }
    if size(&document) <= limits::RESULT_BYTES {
        return document;
    }
    document.truncation = Some(Truncation {
        reason: format!(
            "the result document is larger than {} bytes",
            limits::RESULT_BYTES
        ),
        changed_paths_total: document.changed_paths.len(),
        phases_total: document.phases.len(),
    });
    drop_evidence(&mut document);
    while size(&document) > limits::RESULT_BYTES && halve(&mut document) {}
    document
}

fn redact(document: &mut ResultDocument, redactor: &Redactor) {
    if redactor.is_empty() {
        return;
    }
    for phase in &mut document.phases {
        if let Some(envelope) = &mut phase.envelope {
            redactor.value(envelope);
        }
        for report in &mut phase.gates {
            redact_checks(&mut report.checks, redactor);
        }
        if let Some(error) = &mut phase.error {
            *error = redactor.text(error).into_owned();
        }
    }
    if let Some(acceptance) = &mut document.acceptance {
        redact_checks(&mut acceptance.checks, redactor);
    }
    if let Some(hold) = &mut document.publish_hold {
        *hold = redactor.text(hold).into_owned();
    }
    for path in &mut document.changed_paths {
        *path = redactor.path(path);
    }
}

/// Takes the secrets out of checks.
pub(crate) fn redact_checks(checks: &mut [Check], redactor: &Redactor) {
    for check in checks {
        check.item = redactor.text(&check.item).into_owned();
        check.note = redactor.text(&check.note).into_owned();
    }
}

fn bound_phase(phase: &mut PhaseResult) {
    if let Some(envelope) = &mut phase.envelope {
        bound_envelope(envelope);
    }
    if let Some(error) = &mut phase.error {
        cut(error, limits::RESULT_ENVELOPE_BYTES);
    }
}

/// An envelope too large to keep becomes a note of its size and its start.
fn bound_envelope(envelope: &mut Value) {
    let whole = envelope.to_string();
    if whole.len() <= limits::RESULT_ENVELOPE_BYTES {
        return;
    }
    // The start is a string inside JSON, where quotes and escapes grow.
    let mut room = limits::RESULT_ENVELOPE_BYTES;
    loop {
        let stand_in = json!({
            "truncated": true,
            "bytes": whole.len(),
            "prefix": text::head(&whole, room),
        });
        if stand_in.to_string().len() <= limits::RESULT_ENVELOPE_BYTES || room == 0 {
            *envelope = stand_in;
            return;
        }
        room = room * 3 / 4;
    }
}

/// First cut: no envelopes, no passed gate's checks, short texts.
fn drop_evidence(document: &mut ResultDocument) {
    for phase in &mut document.phases {
        phase.envelope = None;
        phase.gates.clear();
        if let Some(error) = &mut phase.error {
            cut(error, SHORT_ERROR_BYTES);
        }
    }
    if let Some(acceptance) = &mut document.acceptance {
        for check in &mut acceptance.checks {
            cut(&mut check.item, SHORT_NOTE_BYTES);
            cut(&mut check.note, SHORT_NOTE_BYTES);
        }
    }
}

/// Then half of whatever is largest, again and again. `false` when nothing is
/// left to halve.
fn halve(document: &mut ResultDocument) -> bool {
    if let Some(acceptance) = &mut document.acceptance
        && acceptance.checks.len() > FEW_CHECKS
    {
        // The failed ones say why.
        acceptance.checks.sort_by_key(|check| check.ok);
        acceptance.checks.truncate(FEW_CHECKS);
        return true;
    }
    let paths = size_of(&document.changed_paths);
    let phases = size_of(&document.phases);
    if paths >= phases && !document.changed_paths.is_empty() {
        let keep = document.changed_paths.len() / 2;
        document.changed_paths.truncate(keep);
        return true;
    }
    if !document.phases.is_empty() {
        // The latest entries decided.
        let drop = document.phases.len().div_ceil(2);
        document.phases.drain(..drop);
        return true;
    }
    false
}

fn cut(text: &mut String, max: usize) {
    text.truncate(text::head(text, max).len());
}

fn size(document: &ResultDocument) -> usize {
    size_of(document)
}

fn size_of<T: serde::Serialize>(value: &T) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jig_protocol::outcome::{
        Acceptance, AttemptEnd, Budgets, Cause, PhaseKindTag, PhaseStatus, PublishMarker, Spend,
    };
    use jig_protocol::repo_path::RepoPath;
    use jig_protocol::time::Timestamp;

    fn phase(name: &str, envelope: Option<Value>, error: Option<String>) -> PhaseResult {
        PhaseResult {
            phase: name.into(),
            kind: PhaseKindTag::Agent,
            status: PhaseStatus::Success,
            phase_attempt: Some(1),
            envelope,
            gates: vec![],
            error,
            class: None,
            started_at: Some(Timestamp::EPOCH),
            ended_at: Timestamp::EPOCH,
        }
    }

    fn document(phases: Vec<PhaseResult>, paths: Vec<RepoPath>) -> ResultDocument {
        ResultDocument {
            end: AttemptEnd::Completed,
            phases,
            changed_paths: paths,
            publish: PublishMarker::Held,
            publish_hold: Some("risk == high: \"high\"".into()),
            acceptance: Some(Acceptance {
                passed: true,
                checks: vec![Check::pass("all_phases_passed", "12 passed")],
            }),
            cause: Some(Cause::Held),
            spend: Spend::default(),
            budgets: Budgets::default(),
            sandbox: None,
            truncation: None,
        }
    }

    #[test]
    fn a_small_document_is_left_alone() {
        let small = document(vec![phase("a", Some(json!({"x": 1})), None)], vec![]);
        assert_eq!(bounded(small.clone(), &Redactor::default()), small);
    }

    #[test]
    fn a_large_envelope_keeps_its_start_on_a_character() {
        for filler in ["é", "\"", "\u{1}", "x"] {
            let big = json!({"k": filler.repeat(10_000)});
            let bytes = big.to_string().len();
            let out = bounded(
                document(vec![phase("a", Some(big), None)], vec![]),
                &Redactor::default(),
            );
            let envelope = out.phases[0].envelope.clone().unwrap();
            assert_eq!(envelope["bytes"], json!(bytes));
            assert!(envelope.to_string().len() <= limits::RESULT_ENVELOPE_BYTES);
            assert!(envelope["prefix"].as_str().unwrap().len() > 1000);
        }
    }

    #[test]
    fn twelve_large_envelopes_give_way_before_the_verdict_does() {
        let phases = (0..12)
            .map(|n| phase(&format!("p{n}"), Some(json!("y".repeat(12_000))), None))
            .collect();
        let out = bounded(
            document(phases, vec![RepoPath::from("a")]),
            &Redactor::default(),
        );
        assert!(size(&out) <= limits::RESULT_BYTES);
        assert_eq!(out.phases.len(), 12);
        assert_eq!(out.changed_paths.len(), 1);
        assert_eq!(out.publish, PublishMarker::Held);
        assert!(out.publish_hold.is_some() && out.acceptance.is_some());
        assert_eq!(out.truncation.unwrap().phases_total, 12);
    }

    #[test]
    fn a_hundred_thousand_paths_are_counted_if_not_named() {
        let paths = (0..100_000)
            .map(|n| RepoPath::from(format!("dir/{n:06}").as_str()))
            .collect();
        let out = bounded(
            document(vec![phase("a", None, None)], paths),
            &Redactor::default(),
        );
        assert!(size(&out) <= limits::RESULT_BYTES);
        assert_eq!(out.truncation.unwrap().changed_paths_total, 100_000);
        assert!(out.changed_paths.len() > 500);
        assert_eq!(out.phases.len(), 1);
    }

    #[test]
    fn secrets_leave_before_the_cut() {
        let redactor = Redactor::new([("KEY", "sesame-opens")]);
        let envelope = json!({"k": format!("{}sesame-opens", "x".repeat(8170))});
        let mut before = document(
            vec![phase("a", Some(envelope), Some("sesame-opens".into()))],
            vec![RepoPath::from("dir/sesame-opens")],
        );
        before.publish_hold = Some("sesame-opens".into());
        let out = serde_json::to_string(&bounded(before, &redactor)).unwrap();
        assert!(!out.contains("sesame"), "{out}");
        assert!(out.contains("dir/[redacted:KEY]"));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]
        #[test]
        fn every_document_fits_and_reads_back(
            phases in proptest::collection::vec(("\\PC{0,2000}", 0_usize..20_000), 0..40),
            paths in proptest::collection::vec("[^\\x00]{1,200}", 0..500),
            checks in proptest::collection::vec("\\PC{0,600}", 0..60),
            hold in "\\PC{0,9000}",
        ) {
            let mut full = document(
                phases.iter().map(|(text, size)| phase(
                    "p",
                    Some(json!({"t": text, "f": "z".repeat(*size)})),
                    Some(text.repeat(3)),
                )).collect(),
                paths.iter().map(|path| RepoPath::from(path.as_str())).collect(),
            );
            full.publish_hold = Some(hold);
            full.acceptance = Some(Acceptance {
                passed: false,
                checks: checks.iter().map(|note| Check::fail("i", note)).collect(),
            });
            let out = bounded(full, &Redactor::default());
            let text = serde_json::to_string(&out).unwrap();
            proptest::prop_assert!(text.len() <= limits::RESULT_BYTES, "{}", text.len());
            let back: ResultDocument = serde_json::from_str(&text).unwrap();
            proptest::prop_assert_eq!(&back, &out);
            proptest::prop_assert!(back.publish_hold.is_some());
            proptest::prop_assert!(!back.acceptance.unwrap().passed);
        }
    }
}
