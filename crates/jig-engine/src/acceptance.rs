//! The verdict over a completed chain.
//!
//! Every entry of a phase replaces what the phase said before, so each check
//! looks at the last entry of each phase and at the gates that ran in it.

use jig_protocol::definition::{AcceptanceCheck, Definition, GateName, Phase};
use jig_protocol::outcome::{Acceptance, Check, GateReport, PhaseStatus};

/// What the last entry of a phase left for the verdict.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Last<'a> {
    /// How it ended.
    pub(crate) status: PhaseStatus,
    /// What its gates found, each with its position among the phase's gates.
    pub(crate) gates: &'a [GateReport],
}

/// Judges a completed chain. `last` gives a phase's last entry, by name.
pub(crate) fn judge<'a>(
    definition: &Definition,
    last: impl Fn(&str) -> Option<Last<'a>>,
) -> Acceptance {
    let mut checks = vec![all_phases_passed(definition, &last)];
    for wanted in &definition.acceptance {
        let found = match wanted {
            // Always judged, so never twice.
            AcceptanceCheck::AllPhasesPassed => continue,
            AcceptanceCheck::Gate(gate) => every_instance(definition, *gate, &last),
            AcceptanceCheck::PhaseGate(phase, gate) => {
                instance_of(definition, phase.as_str(), *gate, &last)
            }
        };
        checks.push(Check {
            item: wanted.to_string(),
            ..found
        });
    }
    Acceptance {
        passed: checks.iter().all(|check| check.ok),
        checks,
    }
}

fn all_phases_passed<'a>(
    definition: &Definition,
    last: &impl Fn(&str) -> Option<Last<'a>>,
) -> Check {
    let mut passed = 0;
    let mut wrong = Vec::new();
    for phase in &definition.phases {
        match last(phase.name.as_str()).map(|last| last.status) {
            Some(PhaseStatus::Success) => passed += 1,
            Some(PhaseStatus::Skipped) => {}
            Some(PhaseStatus::Fail) => wrong.push(format!("{} failed", phase.name)),
            None => wrong.push(format!("{} never ran", phase.name)),
        }
    }
    let item = AcceptanceCheck::AllPhasesPassed.to_string();
    if wrong.is_empty() {
        Check::pass(item, format!("{passed} passed"))
    } else {
        Check::fail(item, wrong.join(", "))
    }
}

fn every_instance<'a>(
    definition: &Definition,
    gate: GateName,
    last: &impl Fn(&str) -> Option<Last<'a>>,
) -> Check {
    let mut tally = Tally::default();
    for phase in &definition.phases {
        let last = last(phase.name.as_str());
        if last
            .as_ref()
            .is_some_and(|last| last.status == PhaseStatus::Skipped)
        {
            continue;
        }
        tally.add(phase, gate, last.map_or(&[], |last| last.gates));
    }
    tally.check()
}

fn instance_of<'a>(
    definition: &Definition,
    phase: &str,
    gate: GateName,
    last: &impl Fn(&str) -> Option<Last<'a>>,
) -> Check {
    let mut tally = Tally::default();
    if let Some((_, declared)) = definition.phase(phase) {
        let gates = last(phase).map_or(&[][..], |last| last.gates);
        tally.add(declared, gate, gates);
    }
    tally.check()
}

#[derive(Default)]
struct Tally {
    ran: usize,
    checks: usize,
    wrong: Vec<String>,
}

impl Tally {
    /// Adds every instance of `gate` that `phase` declares.
    fn add(&mut self, phase: &Phase, gate: GateName, reports: &[GateReport]) {
        let positions = phase
            .gates
            .iter()
            .enumerate()
            .filter(|(_, declared)| declared.name == gate)
            .map(|(position, _)| position);
        for position in positions {
            match reports.iter().find(|report| report.position == position) {
                None => {
                    self.wrong
                        .push(format!("{} (gate {}) never ran", phase.name, position + 1))
                }
                Some(report) => {
                    self.ran += 1;
                    self.checks += report.checks.len();
                    if !report.passed {
                        self.wrong.push(violations(phase, report));
                    }
                }
            }
        }
    }

    fn check(self) -> Check {
        if self.ran == 0 {
            return Check::fail("", "never ran");
        }
        if self.wrong.is_empty() {
            return Check::pass(
                "",
                format!(
                    "{} in {} held",
                    counted(self.checks, "check"),
                    counted(self.ran, "instance")
                ),
            );
        }
        Check::fail("", self.wrong.join("; "))
    }
}

fn violations(phase: &Phase, report: &GateReport) -> String {
    let failed: Vec<String> = report
        .checks
        .iter()
        .filter(|check| !check.ok)
        .map(|check| format!("{}: {}", check.item, check.note))
        .collect();
    if failed.is_empty() {
        format!("{}: checked nothing", phase.name)
    } else {
        format!("{}: {}", phase.name, failed.join(", "))
    }
}

/// `1 check`, `2 checks`.
fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::definition;
    use std::collections::BTreeMap;

    fn report(gate: GateName, position: usize, passed: bool) -> GateReport {
        GateReport {
            gate: gate.to_string(),
            position,
            passed,
            checks: vec![Check {
                item: "what".into(),
                ok: passed,
                note: "note".into(),
            }],
        }
    }

    fn chain(acceptance: &str) -> Definition {
        definition(&format!(
            r#"
name: chain
roster:
  r: {{model: m, system_prompt: s, user_prompt: u, writes: []}}
phases:
  - name: a
    kind: code
    command: "true"
    gates: [{{name: tests_pass, command: "true"}}, {{name: tests_pass, command: "true"}}]
  - name: b
    kind: agent
    owner: r
    if: more
    gates: [{{name: tests_pass, command: "true"}}, {{name: artifacts_exist}}]
acceptance: {acceptance}
"#
        ))
    }

    type Records = BTreeMap<&'static str, (PhaseStatus, Vec<GateReport>)>;

    fn verdict(definition: &Definition, records: &Records) -> Acceptance {
        judge(definition, |name| {
            records.get(name).map(|(status, gates)| Last {
                status: *status,
                gates,
            })
        })
    }

    const TESTS: GateName = GateName::TestsPass;

    #[test]
    fn two_gates_of_one_name_are_two_instances() {
        let chain = chain("[tests_pass]");
        let mut records = Records::from([
            (
                "a",
                (
                    PhaseStatus::Success,
                    vec![report(TESTS, 0, false), report(TESTS, 1, true)],
                ),
            ),
            ("b", (PhaseStatus::Success, vec![report(TESTS, 0, true)])),
        ]);
        let acceptance = verdict(&chain, &records);
        assert!(!acceptance.passed);
        assert!(acceptance.checks[1].note.contains("a: what: note"));
        records.get_mut("a").unwrap().1[0] = report(TESTS, 0, true);
        assert!(verdict(&chain, &records).passed);
    }

    #[test]
    fn skipped_phases_are_left_out_but_something_must_have_run() {
        let records = Records::from([
            (
                "a",
                (
                    PhaseStatus::Success,
                    vec![report(TESTS, 0, true), report(TESTS, 1, true)],
                ),
            ),
            ("b", (PhaseStatus::Skipped, vec![])),
        ]);
        assert!(verdict(&chain("[tests_pass, a.tests_pass]"), &records).passed);
        for wanted in ["[artifacts_exist]", "[b.artifacts_exist]", "[b.tests_pass]"] {
            let acceptance = verdict(&chain(wanted), &records);
            assert!(!acceptance.passed, "{wanted}");
            assert_eq!(acceptance.checks[1].note, "never ran", "{wanted}");
        }
    }

    #[test]
    fn an_instance_that_did_not_run_fails_beside_one_that_passed() {
        let records = Records::from([
            ("a", (PhaseStatus::Success, vec![report(TESTS, 0, true)])),
            ("b", (PhaseStatus::Skipped, vec![])),
        ]);
        let acceptance = verdict(&chain("[tests_pass]"), &records);
        assert!(!acceptance.passed);
        assert!(acceptance.checks[1].note.contains("never ran"));
    }

    #[test]
    fn all_phases_passed_is_judged_once_listed_or_not() {
        let records = Records::from([("a", (PhaseStatus::Fail, vec![]))]);
        for wanted in ["[]", "[all_phases_passed]"] {
            let acceptance = verdict(&chain(wanted), &records);
            assert_eq!(acceptance.checks.len(), 1, "{wanted}");
            assert_eq!(acceptance.checks[0].item, "all_phases_passed");
            assert_eq!(acceptance.checks[0].note, "a failed, b never ran");
        }
    }
}
