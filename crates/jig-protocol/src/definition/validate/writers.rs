//! How `parallel_writers` fits the chain.

use std::collections::{BTreeMap, HashSet};

use super::super::code::Code;
use super::super::cursor::{Context, Path};
use super::super::decode::Draft;
use super::super::lock::Lock;
use super::super::model::{GateName, ParallelWriters, Phase, WriterMember};
use super::chain::{Chain, Found};
use crate::envelope::Envelope;
use crate::repo_path::RepoPath;

/// Judges the group of writers.
pub(super) fn check(cx: &mut Context<'_>, draft: &Draft, chain: &Chain<'_>) {
    let Some(writers) = &draft.writers else {
        return;
    };
    let top = Path::default().key("parallel_writers");
    let at = top.key("members");
    if !(2..=4).contains(&writers.members.len()) {
        cx.at(
            Code::WriterShape,
            &at,
            "`parallel_writers` needs two to four members",
        );
        // The rest compares every member with every other.
        return;
    }
    let members = members(cx, draft, chain, writers, &at);
    placement(cx, &members, &at);
    for member in &members {
        fits(cx, draft, chain, member, &members);
    }
    paths(cx, writers, &at);
    shared(cx, writers, &top);
    locks(cx, writers, &at);
    edges(cx, chain, &members);
    conflict(cx, chain, writers, &top);
    verified(cx, chain, &members, &top);
}

/// One member whose phase could be found.
struct Member<'d> {
    member: &'d WriterMember,
    index: usize,
    phase: &'d Phase,
    path: Path,
}

fn members<'d>(
    cx: &mut Context<'_>,
    draft: &'d Draft,
    chain: &Chain<'d>,
    writers: &'d ParallelWriters,
    at: &Path,
) -> Vec<Member<'d>> {
    let mut seen = HashSet::new();
    let mut owners = HashSet::new();
    let mut found = Vec::new();
    for (place, member) in writers.members.iter().enumerate() {
        let path = at.index(place);
        let name = member.phase.as_str();
        if !seen.insert(name) {
            cx.at(
                Code::WriterShape,
                &path.key("phase"),
                format!("`{name}` is listed twice"),
            );
            continue;
        }
        match chain.find(name) {
            Found::Nothing => chain.unknown(cx, Code::WriterMember, &path.key("phase"), name),
            Found::Broken => {}
            Found::Phase(_, phase) if !phase.is_agent() => {
                cx.at(
                    Code::WriterMember,
                    &path.key("phase"),
                    format!("`{name}` is a code phase; a writer is an agent phase"),
                );
            }
            Found::Phase(index, phase) => {
                if let Some(owner) = phase.owner()
                    && !owners.insert(owner.as_str())
                {
                    cx.at(
                        Code::WriterMember,
                        &path.key("phase"),
                        format!("the role `{owner}` owns two writers"),
                    )
                    .help("writers run at the same time; give each a role of its own");
                }
                found.push(Member {
                    member,
                    index,
                    phase,
                    path,
                });
            }
        }
    }
    let _ = draft;
    found
}

fn placement(cx: &mut Context<'_>, members: &[Member<'_>], at: &Path) {
    let broken = members
        .windows(2)
        .find(|pair| matches!(pair, [a, b] if b.index != a.index + 1));
    if let Some([before, after]) = broken {
        cx.at(
            Code::WriterMember,
            at,
            format!(
                "`{}` does not follow directly on `{}` in the chain",
                after.phase.name, before.phase.name
            ),
        )
        .help("list consecutive phases, in the order of the chain");
    }
}

/// A member's role, gates, guard and edge.
fn fits(
    cx: &mut Context<'_>,
    draft: &Draft,
    chain: &Chain<'_>,
    one: &Member<'_>,
    members: &[Member<'_>],
) {
    let phase = Path::phase(one.index);
    let name = &one.phase.name;
    if let Some(role) = draft.role_of(one.phase) {
        covered(cx, role.writes.as_deref(), one);
        if role.commits {
            cx.at(
                Code::WriterChain,
                &one.path.key("phase"),
                format!("the role of `{name}` may commit; a writer may not"),
            )
            .help("remove `commits: true`; the results of writers are joined by jig");
        }
    }
    for (index, gate) in one.phase.gates.iter().enumerate() {
        let allowed = matches!(
            gate.name,
            GateName::ArtifactsExist | GateName::DiffMatchesClaims | GateName::FilesNonEmpty
        );
        if !allowed {
            cx.at(
                Code::WriterChain,
                &phase.key("gates").index(index),
                format!("the gate `{}` cannot judge a writer alone", gate.name),
            )
            .help("use `checks` of the member, or a gate of a phase after the group");
        }
    }
    if one.phase.on_fail.is_some() {
        cx.at(
            Code::WriterChain,
            &phase.key("on_fail"),
            format!("the writer `{name}` cannot have a repair edge"),
        )
        .help("judge the joined result in a phase after the group");
    }
    if let Some(guard) = &one.phase.guard
        && members.len() > 1
        && Envelope::BASE_FIELDS.contains(&guard.field())
    {
        cx.at(
            Code::WriterChain,
            &phase.key("if"),
            format!(
                "`{name}` depends on `{}`, which every sibling reports",
                guard.field()
            ),
        );
    }
    let _ = chain;
}

fn covered(
    cx: &mut Context<'_>,
    writes: Option<&[super::super::pattern::PathPattern]>,
    one: &Member<'_>,
) {
    let Some(writes) = writes else {
        cx.at(
            Code::WriterWrites,
            &one.path.key("phase"),
            format!("the role of `{}` must state `writes`", one.phase.name),
        );
        return;
    };
    for (index, owned) in one.member.owns.iter().enumerate() {
        if !writes.iter().any(|pattern| pattern.matches(owned)) {
            cx.at(
                Code::WriterWrites,
                &one.path.key("owns").index(index),
                format!("the role of `{}` may not write `{owned}`", one.phase.name),
            )
            .help("add it to the role's `writes`");
        }
    }
}

fn folded(path: &RepoPath) -> String {
    String::from_utf8_lossy(path.as_bytes()).to_lowercase()
}

/// Owned paths are distinct files, whatever the file system makes of case.
fn paths(cx: &mut Context<'_>, writers: &ParallelWriters, at: &Path) {
    // Folded path → first spelling and its member.
    let mut known: BTreeMap<String, (&RepoPath, usize)> = BTreeMap::new();
    for (place, member) in writers.members.iter().enumerate() {
        for (index, owned) in member.owns.iter().enumerate() {
            let path = at.index(place).key("owns").index(index);
            let fold = folded(owned);
            let Some((before, holder)) = known.get(&fold).copied() else {
                known.insert(fold, (owned, place));
                continue;
            };
            if before != owned {
                cx.at(
                    Code::WriterOverlap,
                    &path,
                    format!("`{owned}` and `{before}` are one file where case does not count"),
                );
            } else if holder == place {
                cx.at(
                    Code::WriterOverlap,
                    &path,
                    format!("`{owned}` is listed twice"),
                );
            } else {
                known.insert(fold, (owned, place));
            }
        }
    }
    for (place, member) in writers.members.iter().enumerate() {
        for (index, owned) in member.owns.iter().enumerate() {
            let fold = folded(owned);
            let parents = fold
                .match_indices('/')
                .filter_map(|(cut, _)| fold.get(..cut));
            let outer = parents.filter_map(|parent| known.get(parent)).next();
            if let Some((outer, _)) = outer {
                cx.at(
                    Code::WriterOverlap,
                    &at.index(place).key("owns").index(index),
                    format!("`{owned}` lies inside `{outer}`, which is owned too"),
                );
            }
        }
    }
}

/// `shared` is exactly what two members own.
fn shared(cx: &mut Context<'_>, writers: &ParallelWriters, top: &Path) {
    let mut holders: BTreeMap<&RepoPath, HashSet<usize>> = BTreeMap::new();
    for (place, member) in writers.members.iter().enumerate() {
        for owned in &member.owns {
            holders.entry(owned).or_default().insert(place);
        }
    }
    let twice = |path: &RepoPath| holders.get(path).is_some_and(|members| members.len() > 1);
    let listed: HashSet<&RepoPath> = writers.shared.iter().collect();
    for path in holders
        .keys()
        .filter(|path| twice(path) && !listed.contains(**path))
    {
        cx.at(
            Code::WriterShared,
            &top.key("shared"),
            format!("`{path}` has two owners and is not in `shared`"),
        )
        .help("list it under `shared` if both members really change it");
    }
    let mut seen = HashSet::new();
    for (index, path) in writers.shared.iter().enumerate() {
        let why = if !seen.insert(path) {
            "is listed twice"
        } else if !twice(path) {
            "does not have two owners"
        } else {
            continue;
        };
        cx.at(
            Code::WriterShared,
            &top.key("shared").index(index),
            format!("`{path}` {why}"),
        );
    }
}

/// No two members hold the same resource.
fn locks(cx: &mut Context<'_>, writers: &ParallelWriters, at: &Path) {
    let mut held: Vec<(Lock, usize)> = Vec::new();
    for (place, member) in writers.members.iter().enumerate() {
        let mut own = Vec::new();
        for (index, text) in member.locks.iter().enumerate() {
            let Ok(lock) = text.parse::<Lock>() else {
                continue;
            };
            if let Some((other, holder)) = held.iter().find(|(other, _)| other.overlaps(&lock)) {
                let other_phase = writers
                    .members
                    .get(*holder)
                    .map(|member| member.phase.as_str());
                cx.at(
                    Code::WriterLock,
                    &at.index(place).key("locks").index(index),
                    format!(
                        "`{lock}` meets `{other}` of `{}`",
                        other_phase.unwrap_or_default()
                    ),
                )
                .help("members that need the same resource cannot run at the same time");
            }
            own.push((lock, place));
        }
        held.append(&mut own);
    }
}

/// No edge leads into the group: its members run together or not at all.
fn edges(cx: &mut Context<'_>, chain: &Chain<'_>, members: &[Member<'_>]) {
    for (index, phase) in chain.phases() {
        let Some(edge) = &phase.on_fail else { continue };
        if members.iter().any(|member| member.phase.name == edge.run) {
            cx.at(
                Code::WriterChain,
                &Path::phase(index).key("on_fail").key("run"),
                format!(
                    "the repair edge of `{}` runs the writer `{}` alone",
                    phase.name, edge.run
                ),
            )
            .help("repair with an agent phase outside the group");
        }
    }
}

fn conflict(cx: &mut Context<'_>, chain: &Chain<'_>, writers: &ParallelWriters, top: &Path) {
    let Some(conflict) = &writers.on_conflict else {
        return;
    };
    let path = top.key("on_conflict").key("run");
    let name = conflict.run.as_str();
    let why = match chain.find(name) {
        Found::Nothing => return chain.unknown(cx, Code::EdgeTarget, &path, name),
        Found::Broken => return,
        Found::Phase(_, phase) if !phase.is_agent() => "is a code phase; an agent must reconcile",
        Found::Phase(..)
            if writers
                .members
                .iter()
                .any(|member| member.phase.as_str() == name) =>
        {
            "is a writer itself"
        }
        Found::Phase(..) => return,
    };
    cx.at(Code::WriterChain, &path, format!("`{name}` {why}"));
}

/// A joined result is never accepted on the word of its writers.
fn verified(cx: &mut Context<'_>, chain: &Chain<'_>, members: &[Member<'_>], top: &Path) {
    let Some(last) = members.iter().map(|member| member.index).max() else {
        return;
    };
    let verified = chain
        .phases()
        .filter(|(index, _)| *index > last)
        .any(|(_, phase)| {
            !phase.is_agent()
                || phase
                    .gates
                    .iter()
                    .any(|gate| gate.name == GateName::TestsPass)
        });
    if !verified {
        cx.at(
            Code::WriterChain,
            top,
            "nothing after the writers verifies their joined result",
        )
        .help("add a code phase, or a `tests_pass` gate, after the group");
    }
}
