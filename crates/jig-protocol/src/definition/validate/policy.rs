//! Acceptance, and the repair of a red CI.

use super::super::code::Code;
use super::super::cursor::{Context, Path};
use super::super::decode::Draft;
use super::super::diagnostic::quoted;
use super::super::grammar::GATES;
use super::super::model::{AcceptanceCheck, GateName};
use super::super::name::Name;
use super::super::suggest::nearest;
use super::chain::{Chain, Found};

/// Reads one entry of `acceptance`, whatever the chain holds.
pub(in super::super) fn acceptance_check(text: &str) -> Option<AcceptanceCheck> {
    let gate = |word: &str| GateName::ALL.into_iter().find(|gate| gate.as_str() == word);
    if text == "all_phases_passed" {
        return Some(AcceptanceCheck::AllPhasesPassed);
    }
    match text.split_once('.') {
        None => gate(text).map(AcceptanceCheck::Gate),
        Some((phase, word)) => {
            let phase: Name = phase.parse().ok()?;
            Some(AcceptanceCheck::PhaseGate(phase, gate(word)?))
        }
    }
}

/// Every acceptance check names something the chain declares.
pub(super) fn acceptance(cx: &mut Context<'_>, draft: &Draft, chain: &Chain<'_>) {
    for (text, path) in &draft.acceptance {
        let missing = match acceptance_check(text) {
            Some(AcceptanceCheck::AllPhasesPassed) => None,
            Some(AcceptanceCheck::Gate(gate)) => {
                let declared = chain
                    .phases()
                    .any(|(_, phase)| phase.gates.iter().any(|one| one.name == gate));
                let broken = draft.phases.iter().any(|slot| slot.phase.is_none());
                (!declared && !broken).then(|| format!("no phase declares the gate `{gate}`"))
            }
            Some(AcceptanceCheck::PhaseGate(phase, gate)) => match chain.find(phase.as_str()) {
                Found::Nothing => Some(format!("there is no phase `{phase}`")),
                Found::Broken => None,
                Found::Phase(_, found) => {
                    let declared = found.gates.iter().any(|one| one.name == gate);
                    (!declared).then(|| format!("the phase `{phase}` declares no gate `{gate}`"))
                }
            },
            None => Some(format!("{} names no check", quoted(text))),
        };
        let Some(missing) = missing else { continue };
        let last = text.rsplit('.').next().unwrap_or(text);
        let words: Vec<&str> = GATES.into_iter().chain(["all_phases_passed"]).collect();
        let problem = cx.at(Code::Acceptance, path, missing);
        match nearest(last, &words).filter(|near| *near != last) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem.help(
                "a check is `all_phases_passed`, a gate declared in the chain, or `<phase>.<gate>`",
            ),
        };
    }
}

/// The phase that repairs a red CI.
pub(super) fn ci(cx: &mut Context<'_>, draft: &Draft, chain: &Chain<'_>) {
    let repair = draft
        .publish
        .as_ref()
        .and_then(|publish| publish.ci.as_ref())
        .and_then(|ci| ci.on_fail.as_ref());
    let Some(repair) = repair else { return };
    let path = Path::default()
        .key("publish")
        .key("ci")
        .key("on_fail")
        .key("run");
    let name = repair.run.as_str();
    let why = match chain.find(name) {
        Found::Nothing => return chain.unknown(cx, Code::CiTarget, &path, name),
        Found::Broken => return,
        Found::Phase(_, phase) if !phase.is_agent() => "is a code phase; an agent must repair",
        Found::Phase(index, _) if index + 1 == draft.phases.len() => {
            "is the last phase; nothing would judge the repair"
        }
        Found::Phase(..) if draft.group().chain(draft.writing()).any(|m| m == name) => {
            "is in a group; a round cannot start inside one"
        }
        Found::Phase(..) => return,
    };
    cx.at(Code::CiTarget, &path, format!("`{name}` {why}"));
}
