//! Repair edges: targets, spans, cycles.

use super::super::code::Code;
use super::super::cursor::{Context, Path};
use super::super::decode::Draft;
use super::super::model::{RepairEdge, Rerun};
use super::chain::{Chain, Found};

/// Judges every repair edge.
pub(super) fn check(cx: &mut Context<'_>, draft: &Draft, chain: &Chain<'_>) {
    // Where each phase's edge leads, by place in the chain.
    let mut leads: Vec<Option<usize>> = vec![None; draft.phases.len()];
    for (index, phase) in chain.phases() {
        let Some(edge) = &phase.on_fail else { continue };
        let path = Path::phase(index).key("on_fail");
        let target = match chain.find(edge.run.as_str()) {
            Found::Nothing => {
                chain.unknown(cx, Code::EdgeTarget, &path.key("run"), edge.run.as_str());
                continue;
            }
            Found::Broken => chain.place(edge.run.as_str()),
            Found::Phase(target, _) => Some(target),
        };
        let Some(target) = target else { continue };
        if target == index {
            cx.at(
                Code::EdgeTarget,
                &path.key("run"),
                format!("the repair edge of `{}` runs the phase itself", phase.name),
            )
            .help("run the phase that makes what this one judges");
            continue;
        }
        if let Some(lead) = leads.get_mut(index) {
            *lead = Some(target);
        }
        if edge.then == Rerun::RerunChain {
            span(cx, draft, chain, (target, index), &path, edge);
        }
    }
    cycles(cx, draft, &leads);
}

/// `rerun-chain` replays from the target up to the failed phase.
fn span(
    cx: &mut Context<'_>,
    draft: &Draft,
    chain: &Chain<'_>,
    (target, failed): (usize, usize),
    path: &Path,
    edge: &RepairEdge,
) {
    if target > failed {
        cx.at(
            Code::RerunOrder,
            &path.key("run"),
            format!(
                "`rerun-chain` needs a phase that comes earlier; `{}` comes later",
                edge.run
            ),
        )
        .help("use `then: rerun-self`, or run an earlier phase");
        return;
    }
    let inside: Vec<&str> = draft
        .group()
        .chain(draft.writing())
        .filter(|member| {
            chain
                .place(member)
                .is_some_and(|place| (target..failed).contains(&place))
        })
        .collect();
    if let Some(first) = inside.first() {
        cx.at(
            Code::RerunGroup,
            &path.key("run"),
            format!(
                "`rerun-chain` from `{}` would run `{first}` outside its group",
                edge.run
            ),
        )
        .help("use `then: rerun-self`, or run a phase that comes after the group");
    }
}

/// Each phase has at most one edge, so following them finds every cycle.
fn cycles(cx: &mut Context<'_>, draft: &Draft, leads: &[Option<usize>]) {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Never,
        In(usize),
    }
    let mut seen = vec![Seen::Never; leads.len()];
    for start in 0..leads.len() {
        let mut walk = Vec::new();
        let mut at = start;
        while seen.get(at) == Some(&Seen::Never) {
            if let Some(mark) = seen.get_mut(at) {
                *mark = Seen::In(start);
            }
            walk.push(at);
            match leads.get(at).copied().flatten() {
                Some(next) => at = next,
                None => break,
            }
        }
        let again = walk.last().is_some_and(|last| {
            leads.get(*last).copied().flatten() == Some(at)
                && seen.get(at) == Some(&Seen::In(start))
        });
        let Some(from) = walk.iter().position(|place| *place == at).filter(|_| again) else {
            continue;
        };
        let members: Vec<&str> = walk
            .iter()
            .skip(from)
            .chain([&at])
            .filter_map(|place| draft.phases.get(*place)?.name.as_ref())
            .map(AsRef::as_ref)
            .collect();
        cx.at(
            Code::EdgeCycle,
            &Path::phase(at).key("on_fail").key("run"),
            format!("repair edges form a cycle: {}", members.join(" → ")),
        )
        .help("a cycle multiplies budgets; let one of the phases repair without an edge");
    }
}
