//! The read-only group `parallel`.

use std::collections::HashMap;

use super::super::code::Code;
use super::super::cursor::{Context, Path};
use super::super::decode::Draft;
use super::super::diagnostic::quoted;
use super::super::model::{GateName, Phase, PhaseKind, PromptSource};
use super::chain::{Chain, Found};
use crate::envelope::Envelope;

/// Judges the members of `parallel`.
pub(super) fn check(cx: &mut Context<'_>, draft: &Draft, chain: &Chain<'_>) {
    let top = Path::default().key("parallel");
    if draft.parallel_written.is_some_and(|written| written < 2) {
        shape(cx, &top);
    }
    let members = members(cx, draft, chain);
    order(cx, &members, &top);
    let mut owners: HashMap<&str, &str> = HashMap::new();
    for (index, phase, path) in &members {
        writes(cx, draft, phase, path);
        if let Some(owner) = phase.owner()
            && let Some(other) = owners.insert(owner.as_str(), phase.name.as_str())
        {
            cx.at(
                Code::GroupOwner,
                path,
                format!("the role `{owner}` owns `{other}` and `{}`", phase.name),
            )
            .help("members run at the same time; give each a role of its own");
        }
        guard(cx, draft, chain, (*index, phase), &members);
    }
}

type Member<'d> = (usize, &'d Phase, Path);

fn shape(cx: &mut Context<'_>, top: &Path) {
    cx.at(
        Code::GroupShape,
        top,
        "`parallel` needs at least two phases",
    )
    .help("remove it if nothing runs at the same time");
}

fn members<'d>(cx: &mut Context<'_>, draft: &'d Draft, chain: &Chain<'d>) -> Vec<Member<'d>> {
    let mut seen = std::collections::HashSet::new();
    let mut members = Vec::new();
    for (name, path) in &draft.parallel {
        if !seen.insert(name.as_str()) {
            cx.at(Code::GroupShape, path, format!("`{name}` is listed twice"));
            continue;
        }
        if draft.writing().any(|writer| writer == name.as_str()) {
            cx.at(
                Code::GroupOverlap,
                path,
                format!("`{name}` is also in `parallel_writers`"),
            );
        }
        match chain.find(name.as_str()) {
            Found::Nothing => chain.unknown(cx, Code::GroupMember, path, name.as_str()),
            Found::Broken => {}
            Found::Phase(_, phase) if !phase.is_agent() => {
                cx.at(
                    Code::GroupMember,
                    path,
                    format!("`{name}` is a code phase; only agent phases run in parallel"),
                );
            }
            Found::Phase(index, phase) => members.push((index, phase, path.clone())),
        }
    }
    members
}

fn order(cx: &mut Context<'_>, members: &[Member<'_>], top: &Path) {
    let broken = members
        .windows(2)
        .find(|pair| matches!(pair, [(a, ..), (b, ..)] if *b != a + 1));
    if let Some([(_, before, _), (_, after, _)]) = broken {
        cx.at(
            Code::GroupOrder,
            top,
            format!(
                "`{}` does not follow directly on `{}` in the chain",
                after.name, before.name
            ),
        )
        .help("list consecutive phases, in the order of the chain");
    }
}

fn writes(cx: &mut Context<'_>, draft: &Draft, phase: &Phase, path: &Path) {
    let Some(role) = draft.role_of(phase) else {
        return;
    };
    if role.is_read_only() {
        return;
    }
    let owner = phase.owner().map(AsRef::as_ref).unwrap_or_default();
    let how = match &role.writes {
        None => "does not state `writes`, which means anything",
        Some(_) => "may write",
    };
    cx.at(
        Code::GroupWrites,
        path,
        format!(
            "`{}` cannot run in parallel: its role {} {how}",
            phase.name,
            quoted(owner)
        ),
    )
    .help("give the role `writes: []`");
}

/// A member's guard is judged before any sibling ran.
fn guard(
    cx: &mut Context<'_>,
    draft: &Draft,
    chain: &Chain<'_>,
    (index, phase): (usize, &Phase),
    members: &[Member<'_>],
) {
    let Some(guard) = &phase.guard else { return };
    let field = guard.field();
    let path = Path::phase(index).key("if");
    let sibling = members.iter().find(|(other, sibling, _)| {
        *other != index
            && sibling
                .on_fail
                .as_ref()
                .and_then(|edge| edge.when.as_ref())
                .is_some_and(|when| when.field == field)
    });
    let base = Envelope::BASE_FIELDS.contains(&field) && members.len() > 1;
    if base || sibling.is_some() {
        let who = match sibling {
            Some((_, sibling, _)) => format!("its sibling `{}` reports", sibling.name),
            None => "every sibling reports".to_owned(),
        };
        cx.at(
            Code::GroupGuard,
            &path,
            format!(
                "`{}` depends on the field `{field}`, which {who}",
                phase.name
            ),
        )
        .help(
            "guards of a group are judged once, before it runs; read a field of an earlier phase",
        );
        return;
    }
    let known = chain
        .phases()
        .filter(|(other, _)| *other < index && !members.iter().any(|(member, ..)| member == other))
        .any(|(_, earlier)| may_report(draft, earlier, field));
    if !known {
        cx.at(
            Code::UnreportedGuard,
            &path,
            format!("no earlier phase is known to report `{field}`"),
        )
        .help("a field that nobody reports is absent: not truthy, and equal to `null` only");
    }
}

/// Whether a phase is known, or asked, to report a field.
fn may_report(draft: &Draft, phase: &Phase, field: &str) -> bool {
    if Envelope::BASE_FIELDS.contains(&field) {
        return true;
    }
    if let PhaseKind::Code(code) = &phase.kind {
        return code.reports_fields
            || ["passed", "failures", "exit_code", "output_tail"].contains(&field);
    }
    let judged = phase
        .on_fail
        .as_ref()
        .and_then(|edge| edge.when.as_ref())
        .is_some_and(|when| when.field == field);
    let gated = phase.gates.iter().any(|gate| match gate.name {
        GateName::VerdictConsistent => ["approved", "blocking", "findings"].contains(&field),
        GateName::DiffMatchesClaims => field == "changed_files",
        _ => false,
    });
    let asked = draft.role_of(phase).is_some_and(|role| {
        [&role.system_prompt, &role.user_prompt]
            .iter()
            .any(|prompt| matches!(prompt, PromptSource::Inline(text) if names(text, field)))
    });
    judged || gated || asked
}

/// Whether a text holds a word.
fn names(text: &str, word: &str) -> bool {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .any(|part| part == word)
}
