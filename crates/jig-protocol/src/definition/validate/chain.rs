//! The chain as a whole: unique names, owners, what runtimes can do.

use std::collections::HashMap;

use super::super::code::Code;
use super::super::cursor::{Context, Path};
use super::super::decode::Draft;
use super::super::diagnostic::quoted;
use super::super::model::{Phase, Role, RuntimeName};
use super::super::suggest::nearest;

/// The phases by name.
pub(super) struct Chain<'d> {
    places: HashMap<&'d str, usize>,
    draft: &'d Draft,
}

/// What a name refers to.
pub(super) enum Found<'d> {
    /// A phase that could be decoded, and its place in the chain.
    Phase(usize, &'d Phase),
    /// A phase that is declared but has problems of its own.
    Broken,
    /// Nothing.
    Nothing,
}

impl<'d> Chain<'d> {
    pub(super) fn new(draft: &'d Draft) -> Self {
        let mut places = HashMap::new();
        for (index, slot) in draft.phases.iter().enumerate() {
            if let Some(name) = &slot.name {
                places.entry(name.as_str()).or_insert(index);
            }
        }
        Self { places, draft }
    }

    pub(super) fn find(&self, name: &str) -> Found<'d> {
        let Some(index) = self.places.get(name).copied() else {
            return Found::Nothing;
        };
        match self
            .draft
            .phases
            .get(index)
            .and_then(|slot| slot.phase.as_ref())
        {
            Some(phase) => Found::Phase(index, phase),
            None => Found::Broken,
        }
    }

    /// The place of a phase, decodable or not.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Every phase that could be decoded, with its place.
    pub(super) fn phases(&self) -> impl Iterator<Item = (usize, &'d Phase)> + use<'d> {
        self.draft
            .phases
            .iter()
            .enumerate()
            .filter_map(|(index, slot)| Some((index, slot.phase.as_ref()?)))
    }

    /// Reports a name that refers to no phase.
    pub(super) fn unknown(&self, cx: &mut Context<'_>, code: Code, path: &Path, name: &str) {
        let mut known: Vec<&str> = self.places.keys().copied().collect();
        known.sort_unstable();
        let problem = cx.at(code, path, format!("there is no phase {}", quoted(name)));
        if let Some(near) = nearest(name, &known) {
            problem.help(format!("did you mean `{near}`?"));
        }
    }
}

impl Draft {
    /// The role that owns a phase, when it could be decoded.
    pub(super) fn role_of(&self, phase: &Phase) -> Option<&Role> {
        self.roster.get(phase.owner()?)?.as_ref()
    }

    /// The members of `parallel`, in order.
    pub(super) fn group(&self) -> impl Iterator<Item = &str> {
        self.parallel.iter().map(|(name, _)| name.as_str())
    }

    /// The writers' phases, in order.
    pub(super) fn writing(&self) -> impl Iterator<Item = &str> {
        self.writers
            .iter()
            .flat_map(|writers| &writers.members)
            .map(|member| member.phase.as_str())
    }
}

/// Phase names are unique, ignoring case.
pub(super) fn names(cx: &mut Context<'_>, draft: &Draft) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, slot) in draft.phases.iter().enumerate() {
        let Some(name) = &slot.name else { continue };
        let Some(before) = seen.insert(name.as_str().to_ascii_lowercase(), index) else {
            continue;
        };
        let first = cx.place(&Path::phase(before).key("name"));
        cx.at(
            Code::RepeatedName,
            &Path::phase(index).key("name"),
            format!(
                "two phases are called {}, ignoring case",
                quoted(name.as_str())
            ),
        )
        .also(first, "the other one")
        .help("a name refers to one phase; give each its own");
    }
}

/// Owners are in the roster.
pub(super) fn owners(cx: &mut Context<'_>, draft: &Draft) {
    let known: Vec<&str> = draft.roster.keys().map(AsRef::as_ref).collect();
    for (index, slot) in draft.phases.iter().enumerate() {
        let Some(owner) = slot.phase.as_ref().and_then(Phase::owner) else {
            continue;
        };
        if draft.roster.contains_key(owner) {
            continue;
        }
        let problem = cx.at(
            Code::Owner,
            &Path::phase(index).key("owner"),
            format!("there is no role {} in the roster", quoted(owner.as_str())),
        );
        match nearest(owner.as_str(), &known) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem.help("declare the role under `roster`"),
        };
    }
}

/// A pinned runtime can enforce what its roles ask for.
pub(super) fn runtimes(cx: &mut Context<'_>, draft: &Draft) {
    for (name, role) in &draft.roster {
        let Some(role) = role else { continue };
        let Some(runtime) = role.runtime.as_ref().or(draft.runtime.as_ref()) else {
            continue;
        };
        let acp = runtime.acp_agent().is_some();
        if !acp && runtime.as_str() != RuntimeName::CODEX {
            continue;
        }
        let path = Path::default().key("roster").key(name.as_str());
        let mut refuse = |key: &str, what: &str| {
            cx.at(
                Code::Unsupported,
                &path.key(key),
                format!("the runtime `{runtime}` cannot enforce {what}"),
            )
            .help(format!("remove `{key}`, or run the role on `claude-code`"));
        };
        // No tools at all is an allowlist too.
        let lists_tools = |tools: &Vec<String>| acp || !tools.is_empty();
        if role.tools.as_ref().is_some_and(lists_tools) {
            refuse("tools", "a tool allowlist");
        }
        if role.budget_usd.is_some_and(|budget| budget > 0.0) {
            refuse("budget_usd", "a cap of one send");
        }
        if acp && role.effort.is_some() {
            refuse("effort", "an effort");
        }
    }
}
