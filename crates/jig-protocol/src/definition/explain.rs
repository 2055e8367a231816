//! A definition in words and as a picture: what `jig def explain` prints.

use std::fmt::Write as _;

use super::bounds::{Bounds, bounds};
use super::model::{Definition, Exhausted, Phase, PhaseKind, RepairEdge, Rerun};
use super::name::Name;
use crate::limits::MAX_SENDS;

/// A definition explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// For a terminal.
    pub text: String,
    /// A Mermaid flow chart.
    pub mermaid: String,
}

/// Explains a definition: its chain, its loops, its bounds.
#[must_use]
pub fn explain(definition: &Definition) -> Explanation {
    let bounds = bounds(definition);
    Explanation {
        text: text(definition, &bounds),
        mermaid: mermaid(definition),
    }
}

fn text(definition: &Definition, bounds: &Bounds) -> String {
    let mut out = format!(
        "{}: {} of {}\n",
        definition.name,
        counted(definition.phases.len() as u64, "phase"),
        counted(definition.roster.len() as u64, "role"),
    );
    if !definition.description.trim().is_empty() {
        let _ = writeln!(out, "{}", definition.description.trim());
    }
    chain(definition, bounds, &mut out);
    loops(definition, &mut out);
    limits(definition, bounds, &mut out);
    verdict(definition, &mut out);
    out
}

fn chain(definition: &Definition, bounds: &Bounds, out: &mut String) {
    out.push_str("\nChain\n");
    let width = definition
        .phases
        .iter()
        .map(|phase| phase.name.as_str().len())
        .max()
        .unwrap_or_default();
    for (index, phase) in definition.phases.iter().enumerate() {
        let who = match &phase.kind {
            PhaseKind::Agent { owner } => format!("agent {owner}"),
            PhaseKind::Code(_) => "code".to_owned(),
        };
        let _ = write!(
            out,
            "  {:>2}  {:width$}  {who}",
            index + 1,
            phase.name.as_str()
        );
        if let Some(guard) = &phase.guard {
            let _ = write!(out, ", if {guard}");
        }
        if definition.parallel.contains(&phase.name) {
            out.push_str(", in parallel");
        }
        if writes(definition, &phase.name) {
            out.push_str(", a parallel writer");
        }
        if !phase.gates.is_empty() {
            let gates: Vec<&str> = phase.gates.iter().map(|gate| gate.name.as_str()).collect();
            let _ = write!(out, "; gates {}", gates.join(", "));
        }
        if let Some(bound) = bounds.phases.get(index).filter(|bound| bound.sends > 0) {
            let _ = write!(
                out,
                "; at most {} of {}",
                counted(bound.runs, "run"),
                counted(bound.sends_per_run, "send")
            );
        }
        out.push('\n');
    }
}

fn writes(definition: &Definition, phase: &Name) -> bool {
    definition
        .parallel_writers
        .iter()
        .flat_map(|writers| &writers.members)
        .any(|member| member.phase == *phase)
}

fn loops(definition: &Definition, out: &mut String) {
    let edges: Vec<(&Phase, &RepairEdge)> = definition
        .phases
        .iter()
        .filter_map(|phase| Some((phase, phase.on_fail.as_ref()?)))
        .collect();
    let ci = definition
        .publish
        .as_ref()
        .and_then(|publish| publish.ci.as_ref());
    let repair = ci.filter(|ci| ci.wait).and_then(|ci| ci.on_fail.as_ref());
    let conflict = definition
        .parallel_writers
        .as_ref()
        .and_then(|writers| writers.on_conflict.as_ref());
    if edges.is_empty() && repair.is_none() && conflict.is_none() {
        return;
    }
    out.push_str("\nLoops\n");
    for (phase, edge) in edges {
        let when = match &edge.when {
            Some(when) => when.to_string(),
            None => "it fails".to_owned(),
        };
        let again = match edge.then {
            Rerun::RerunSelf if definition.parallel.contains(&phase.name) => "the whole group",
            Rerun::RerunSelf => "it",
            Rerun::RerunChain => "everything from there",
        };
        let end = match edge.exhausted {
            Exhausted::FailJob => "the attempt fails",
            Exhausted::Proceed => "the chain goes on",
        };
        let _ = writeln!(
            out,
            "  {}: when {when}, run {} and then {again} again, at most {}; then {end}",
            phase.name,
            edge.run,
            times(edge.budget)
        );
    }
    if let Some(conflict) = conflict {
        let _ = writeln!(
            out,
            "  writers: on a conflict, run {}, at most {}",
            conflict.run,
            times(conflict.budget)
        );
    }
    if let Some(repair) = repair {
        let _ = writeln!(
            out,
            "  red CI: run {} and everything after it, at most {}",
            repair.run,
            times(repair.budget)
        );
    }
}

fn limits(definition: &Definition, bounds: &Bounds, out: &mut String) {
    out.push_str("\nBounds of one attempt\n");
    let total = bounds.chain_sends.saturating_add(bounds.ci_sends);
    if bounds.capped {
        let _ = writeln!(
            out,
            "  sends: at most {MAX_SENDS}, the limit of an attempt; its ladders and loops could use {total}"
        );
    } else {
        let _ = writeln!(out, "  sends: at most {}", bounds.worst_case_sends);
    }
    if bounds.group_runs > 0 {
        let _ = writeln!(out, "  group runs: at most {}", bounds.group_runs);
    }
    match bounds.worst_case_spend {
        Some(spend) => {
            let _ = writeln!(out, "  spend: at most ${spend:.2}");
        }
        None => out.push_str("  spend: not bounded; not every role has a cap (`budget_usd`)\n"),
    }
    if let Some(ceiling) = definition.budget_usd {
        let _ = writeln!(
            out,
            "  ceiling: no send is started once ${ceiling:.2} are spent"
        );
    }
}

fn verdict(definition: &Definition, out: &mut String) {
    out.push_str("\nAccepted when\n  every phase passed or was skipped\n");
    for check in &definition.acceptance {
        if !matches!(check, super::model::AcceptanceCheck::AllPhasesPassed) {
            let _ = writeln!(out, "  {check} passed");
        }
    }
    let Some(publish) = &definition.publish else {
        return;
    };
    out.push_str("\nPublished\n");
    if let Some(hold) = &publish.hold_when {
        let _ = writeln!(out, "  a person decides when {hold}");
    }
    if let Some(ci) = publish.ci.as_ref().filter(|ci| ci.wait) {
        let _ = writeln!(
            out,
            "  a green CI is part of accepted; jig waits up to {} per head",
            super::duration::show(ci.timeout)
        );
    }
}

fn counted(number: u64, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

fn times(number: u32) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        number => format!("{number} times"),
    }
}

/// Names hold nothing that Mermaid reads, except that `end` is a keyword: ids
/// are made of positions.
fn mermaid(definition: &Definition) -> String {
    let mut out = String::from("flowchart TD\n");
    let place = |name: &Name| definition.phase(name.as_str()).map(|(place, _)| place);
    for (index, phase) in definition.phases.iter().enumerate() {
        if place_in_group(definition, phase) == Some(0) {
            let _ = writeln!(out, "  subgraph group [in parallel]");
        }
        let name = &phase.name;
        let _ = match &phase.kind {
            PhaseKind::Agent { owner } => writeln!(out, "  p{index}([\"{name} ({owner})\"])"),
            PhaseKind::Code(_) => writeln!(out, "  p{index}[\"{name}\"]"),
        };
        if place_in_group(definition, phase).is_some_and(|at| at + 1 == definition.parallel.len()) {
            out.push_str("  end\n");
        }
    }
    for (index, phase) in definition.phases.iter().enumerate().skip(1) {
        let guard = match &phase.guard {
            Some(guard) => format!("|\"if {}\"| ", label(&guard.to_string())),
            None => String::new(),
        };
        let _ = writeln!(out, "  p{} --> {guard}p{index}", index - 1);
    }
    for (index, phase) in definition.phases.iter().enumerate() {
        let Some(edge) = &phase.on_fail else { continue };
        let Some(target) = place(&edge.run) else {
            continue;
        };
        let when = match &edge.when {
            Some(when) => label(&when.to_string()),
            None => "fails".to_owned(),
        };
        let _ = writeln!(
            out,
            "  p{index} -. \"{when}, at most {}\" .-> p{target}",
            times(edge.budget)
        );
    }
    out
}

fn place_in_group(definition: &Definition, phase: &Phase) -> Option<usize> {
    definition
        .parallel
        .iter()
        .position(|member| *member == phase.name)
}

/// Text inside a quoted Mermaid label.
fn label(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || " =!_.-".contains(c) {
            out.push(c);
        } else {
            let _ = write!(out, "#{};", u32::from(c));
        }
    }
    out
}
