//! Repair edges: whether one fires, and what then runs.
//!
//! Pure: the chain asks [`decide`] after every run of a phase that owns an edge
//! and follows the [`plan`].

use jig_protocol::definition::{Definition, Exhausted, Phase, RepairEdge, Rerun};
use jig_protocol::outcome::PhaseStatus;
use jig_protocol::predicate::Fields;

/// What a run of a phase left for its edge to look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunView<'a> {
    /// Whether the run failed.
    pub(crate) failed: bool,
    /// Its own envelope's fields. A run without an envelope (parse or gate
    /// exhaustion, a runtime error, deaths) never fires an edge.
    pub(crate) envelope: Option<&'a Fields>,
}

/// What follows a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The chain goes on.
    Pass,
    /// The attempt fails with the phase's own words.
    Fail,
    /// The edge is used for the `nth` time, from 1.
    Repair {
        /// Which use this is.
        nth: u32,
    },
    /// The edge would fire but is spent.
    Exhausted(Exhausted),
}

/// Decides after a run, given how often the phase's edge was used before.
pub(crate) fn decide(phase: &Phase, run: RunView<'_>, used: u32) -> Decision {
    let fired = phase
        .on_fail
        .as_ref()
        .filter(|edge| fires(phase, edge, run));
    match (fired, run.failed) {
        (None, true) => Decision::Fail,
        (None, false) => Decision::Pass,
        (Some(edge), _) if used < edge.budget => Decision::Repair { nth: used + 1 },
        (Some(edge), _) => Decision::Exhausted(edge.exhausted),
    }
}

fn fires(phase: &Phase, edge: &RepairEdge, run: RunView<'_>) -> bool {
    let Some(envelope) = run.envelope else {
        return false;
    };
    if phase.is_agent() {
        // The edge reads the envelope at hand, not the field view: an earlier
        // rejection must not fire it again.
        edge.when.as_ref().is_some_and(|when| when.holds(envelope))
    } else {
        run.failed
    }
}

/// One step of a repair, before the failed phase itself runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Run the phase at this index; neither its guard nor its edge counts.
    Run(usize),
    /// Record the phase at this index as skipped again.
    SkipAgain(usize),
    /// No decision about the phase at this index exists yet: read its guard.
    AskGuard(usize),
}

/// A repair edge that names no phase of the chain. Validation excludes it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the repair phase {run:?} of phase {phase:?} is not in the chain before it can run")]
pub(crate) struct NoTarget {
    /// The phase that owns the edge.
    pub(crate) phase: String,
    /// The phase it names.
    pub(crate) run: String,
}

/// The steps of one use of the edge of the phase at `failed`.
///
/// `first_status` is the status of a phase's first record in this attempt. A
/// replay keeps every first decision: a repair must not be able to flip a guard
/// and have the phase counted as passed.
pub(crate) fn plan(
    definition: &Definition,
    failed: usize,
    edge: &RepairEdge,
    first_status: impl Fn(&str) -> Option<PhaseStatus>,
) -> Result<Vec<Step>, NoTarget> {
    let no_target = || NoTarget {
        phase: definition
            .phases
            .get(failed)
            .map_or_else(String::new, |phase| phase.name.to_string()),
        run: edge.run.to_string(),
    };
    let (target, _) = definition.phase(edge.run.as_str()).ok_or_else(no_target)?;
    match edge.then {
        Rerun::RerunSelf => Ok(vec![Step::Run(target)]),
        Rerun::RerunChain if target >= failed => Err(no_target()),
        Rerun::RerunChain => Ok((target..failed)
            .filter_map(|index| Some((index, definition.phases.get(index)?)))
            .map(|(index, phase)| match first_status(phase.name.as_str()) {
                Some(PhaseStatus::Skipped) => Step::SkipAgain(index),
                Some(_) => Step::Run(index),
                None => Step::AskGuard(index),
            })
            .collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::definition;
    use serde_json::json;

    fn chain() -> Definition {
        definition(
            r#"
name: chain
roster:
  r: {model: m, system_prompt: s, user_prompt: u, writes: []}
phases:
  - {name: plan, kind: agent, owner: r}
  - {name: extra, kind: agent, owner: r, if: deep}
  - {name: build, kind: agent, owner: r}
  - name: test
    kind: code
    command: "true"
    on_fail: {run: plan, then: rerun-chain, budget: 2}
  - name: review
    kind: agent
    owner: r
    on_fail: {when: "approved == false", run: build, then: rerun-self, budget: 1, exhausted: proceed}
"#,
        )
    }

    fn fields(value: serde_json::Value) -> Fields {
        value.as_object().cloned().unwrap_or_default()
    }

    fn run(failed: bool, envelope: Option<&Fields>) -> RunView<'_> {
        RunView { failed, envelope }
    }

    #[test]
    fn a_code_edge_fires_on_failure_until_its_budget_is_spent() {
        let chain = chain();
        let test = &chain.phases[3];
        let own = fields(json!({"passed": false}));
        let failed = run(true, Some(&own));
        assert_eq!(decide(test, failed, 0), Decision::Repair { nth: 1 });
        assert_eq!(decide(test, failed, 1), Decision::Repair { nth: 2 });
        assert_eq!(
            decide(test, failed, 2),
            Decision::Exhausted(Exhausted::FailJob)
        );
        assert_eq!(decide(test, run(false, Some(&own)), 0), Decision::Pass);
    }

    #[test]
    fn an_agent_edge_reads_its_own_envelope_whatever_the_status() {
        let chain = chain();
        let review = &chain.phases[4];
        let no = fields(json!({"approved": false}));
        let yes = fields(json!({"approved": true}));
        assert_eq!(
            decide(review, run(false, Some(&no)), 0),
            Decision::Repair { nth: 1 }
        );
        assert_eq!(
            decide(review, run(true, Some(&no)), 1),
            Decision::Exhausted(Exhausted::Proceed)
        );
        assert_eq!(decide(review, run(false, Some(&yes)), 0), Decision::Pass);
        assert_eq!(decide(review, run(true, Some(&yes)), 0), Decision::Fail);
    }

    #[test]
    fn a_run_without_an_envelope_never_fires_an_edge() {
        let chain = chain();
        for index in [3, 4] {
            assert_eq!(
                decide(&chain.phases[index], run(true, None), 0),
                Decision::Fail
            );
        }
    }

    #[test]
    fn rerun_self_runs_the_target_alone() {
        let chain = chain();
        let edge = chain.phases[4].on_fail.clone().unwrap();
        assert_eq!(plan(&chain, 4, &edge, |_| None), Ok(vec![Step::Run(2)]));
    }

    #[test]
    fn rerun_chain_keeps_first_decisions() {
        let chain = chain();
        let edge = chain.phases[3].on_fail.clone().unwrap();
        let steps = plan(&chain, 3, &edge, |name| match name {
            "plan" => Some(PhaseStatus::Fail),
            "extra" => Some(PhaseStatus::Skipped),
            _ => None,
        });
        assert_eq!(
            steps,
            Ok(vec![Step::Run(0), Step::SkipAgain(1), Step::AskGuard(2)])
        );
    }

    #[test]
    fn a_target_that_is_not_there_is_named() {
        let chain = chain();
        let mut edge = chain.phases[3].on_fail.clone().unwrap();
        edge.run = "review".parse().unwrap();
        assert!(plan(&chain, 3, &edge, |_| None).is_err());
        edge.run = "nowhere".parse().unwrap();
        edge.then = Rerun::RerunSelf;
        let error = plan(&chain, 3, &edge, |_| None).unwrap_err();
        assert!(error.to_string().contains("nowhere"), "{error}");
    }
}
