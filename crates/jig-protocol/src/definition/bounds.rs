//! What a definition can cost at most: sends, group runs, dollars.
//!
//! The arithmetic of the ladders lives here once; `jig def explain` prints it
//! and the engine's counters are tested against it.

use std::collections::BTreeMap;

use super::model::{Definition, Phase, Rerun, Role};
use super::name::Name;
use crate::limits::{GATE_CORRECTIONS, MAX_SENDS, PARSE_CORRECTIONS, RETRYABLE_SENDS};

/// Upper bounds of one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    /// Per phase, in chain order.
    pub phases: Vec<PhaseBound>,
    /// Sends of the chain if there were no limit per attempt.
    pub chain_sends: u64,
    /// Sends of every round of CI repair if there were no limit per attempt.
    pub ci_sends: u64,
    /// Sends of an attempt: the two above together, or the limit of an attempt.
    pub worst_case_sends: u32,
    /// Whether the limit of an attempt (64) is what bounds the sends.
    pub capped: bool,
    /// Runs of the read-only group in one run of the chain; 0 without a group.
    pub group_runs: u64,
    /// US dollars, when every role that sends has a cap.
    pub worst_case_spend: Option<f64>,
}

/// Upper bounds of one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseBound {
    /// The phase.
    pub phase: Name,
    /// Sends of one run: all its corrections, deaths and repeats.
    pub sends_per_run: u64,
    /// Runs in one run of the chain: its own, those an edge dispatches, replays.
    pub runs: u64,
    /// Sends in one run of the chain.
    pub sends: u64,
}

/// How many gate corrections a phase may use; its deaths share the number.
#[must_use]
pub fn correction_budget(phase: &Phase) -> u32 {
    match phase.gates.iter().map(|gate| gate.budget).max() {
        None | Some(0) => GATE_CORRECTIONS,
        Some(budget) => budget,
    }
}

/// The most sends one run of a phase can take.
///
/// Every entry has one gate round and, if there are gates, one more per
/// correction; every round has one emission and its parse corrections; an entry
/// may end in a death on its last send and start again; and the vendor may ask
/// for repeats.
#[must_use]
pub fn sends_per_run(phase: &Phase) -> u64 {
    if !phase.is_agent() {
        return 0;
    }
    let budget = u64::from(correction_budget(phase));
    let rounds = if phase.gates.is_empty() {
        1
    } else {
        budget + 1
    };
    let entries = budget + 1;
    entries * rounds * u64::from(1 + PARSE_CORRECTIONS) + u64::from(RETRYABLE_SENDS)
}

/// The most sends one attempt of a definition can take.
#[must_use]
pub fn worst_case_sends(definition: &Definition) -> u32 {
    bounds(definition).worst_case_sends
}

/// Every bound of a definition.
#[must_use]
pub fn bounds(definition: &Definition) -> Bounds {
    let runs = runs_from(definition, 0);
    let phases: Vec<PhaseBound> = definition
        .phases
        .iter()
        .zip(&runs)
        .map(|(phase, runs)| {
            let per_run = sends_per_run(phase);
            PhaseBound {
                phase: phase.name.clone(),
                sends_per_run: per_run,
                runs: *runs,
                sends: per_run.saturating_mul(*runs),
            }
        })
        .collect();
    let rounds = ci_runs(definition);
    let ci: Vec<u64> = definition
        .phases
        .iter()
        .zip(&rounds)
        .map(|(phase, runs)| sends_per_run(phase).saturating_mul(*runs))
        .collect();
    let chain_sends = sum(phases.iter().map(|phase| phase.sends));
    let ci_sends = sum(ci.iter().copied());
    let total = chain_sends.saturating_add(ci_sends);
    let all: Vec<u64> = phases
        .iter()
        .zip(&ci)
        .map(|(phase, ci)| phase.sends.saturating_add(*ci))
        .collect();
    Bounds {
        chain_sends,
        ci_sends,
        worst_case_sends: u32::try_from(total).unwrap_or(MAX_SENDS).min(MAX_SENDS),
        capped: total > u64::from(MAX_SENDS),
        group_runs: group_runs(definition),
        worst_case_spend: spend(definition, &all),
        phases,
    }
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// One run, and one more per use of any member's edge.
fn group_runs(definition: &Definition) -> u64 {
    if definition.parallel.is_empty() {
        return 0;
    }
    let uses = members(definition).filter_map(|phase| phase.on_fail.as_ref());
    1 + sum(uses.map(|edge| u64::from(edge.budget)))
}

fn members(definition: &Definition) -> impl Iterator<Item = &Phase> {
    definition
        .phases
        .iter()
        .filter(|phase| definition.parallel.contains(&phase.name))
}

/// How often each phase can run when the chain runs from `first` on.
fn runs_from(definition: &Definition, first: usize) -> Vec<u64> {
    let mut runs = vec![0_u64; definition.phases.len()];
    let mut add = |index: usize, more: u64| {
        if let Some(count) = runs.get_mut(index) {
            *count = count.saturating_add(more);
        }
    };
    let group = group_runs(definition);
    for (index, phase) in definition.phases.iter().enumerate().skip(first) {
        let grouped = definition.parallel.contains(&phase.name);
        add(index, if grouped { group } else { 1 });
        let Some(edge) = &phase.on_fail else { continue };
        let uses = u64::from(edge.budget);
        if !grouped {
            add(index, uses);
        }
        let Some((target, _)) = definition.phase(edge.run.as_str()) else {
            continue;
        };
        match edge.then {
            Rerun::RerunSelf => add(target, uses),
            Rerun::RerunChain => (target..index).for_each(|replayed| add(replayed, uses)),
        }
    }
    conflicts(definition, first, &mut add);
    runs
}

/// The phase that reconciles writers runs once per conflict it may repair.
fn conflicts(definition: &Definition, first: usize, add: &mut impl FnMut(usize, u64)) {
    let Some(writers) = &definition.parallel_writers else {
        return;
    };
    let begins = writers
        .members
        .first()
        .and_then(|member| definition.phase(member.phase.as_str()));
    let Some(conflict) = &writers.on_conflict else {
        return;
    };
    if begins.is_some_and(|(place, _)| place >= first)
        && let Some((target, _)) = definition.phase(conflict.run.as_str())
    {
        add(target, u64::from(conflict.budget));
    }
}

/// How often each phase can run in all rounds of CI repair together: each round
/// runs the repair phase, then the chain after it with fresh edge budgets.
fn ci_runs(definition: &Definition) -> Vec<u64> {
    let nothing = vec![0; definition.phases.len()];
    let repair = definition
        .publish
        .as_ref()
        .and_then(|publish| publish.ci.as_ref())
        .filter(|ci| ci.wait)
        .and_then(|ci| ci.on_fail.as_ref());
    let Some(repair) = repair else { return nothing };
    let Some((place, _)) = definition.phase(repair.run.as_str()) else {
        return nothing;
    };
    let mut round = runs_from(definition, place + 1);
    if let Some(count) = round.get_mut(place) {
        *count = count.saturating_add(1);
    }
    let rounds = u64::from(repair.budget);
    round
        .into_iter()
        .map(|runs| runs.saturating_mul(rounds))
        .collect()
}

/// The dearest way to use the sends that an attempt may take.
fn spend(definition: &Definition, sends: &[u64]) -> Option<f64> {
    // Cents would not do: caps may be fractions of one. Sorted by cap, dearest first.
    let mut by_role: BTreeMap<&Name, (f64, u64)> = BTreeMap::new();
    for (phase, sends) in definition.phases.iter().zip(sends) {
        if *sends == 0 {
            continue;
        }
        let owner = phase.owner()?;
        let cap = definition.roster.get(owner).and_then(cap)?;
        let entry = by_role.entry(owner).or_insert((cap, 0));
        entry.1 = entry.1.saturating_add(*sends);
    }
    let mut caps: Vec<(f64, u64)> = by_role.into_values().collect();
    caps.sort_by(|a, b| b.0.total_cmp(&a.0));
    let dearest = caps.first().map_or(0.0, |(cap, _)| *cap);
    let mut left = u64::from(MAX_SENDS);
    let mut total = 0.0;
    for (cap, sends) in caps {
        let sends = u32::try_from(sends.min(left)).unwrap_or(MAX_SENDS);
        left -= u64::from(sends);
        total += cap * f64::from(sends);
    }
    // The ceiling is looked at before a send, so the last one may pass it.
    Some(match definition.budget_usd {
        Some(ceiling) => total.min(ceiling + dearest),
        None => total,
    })
}

/// A cap of 0 is no cap.
fn cap(role: &Role) -> Option<f64> {
    role.budget_usd.filter(|cap| *cap > 0.0)
}
