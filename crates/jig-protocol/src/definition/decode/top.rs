//! The top level of a definition.

use std::collections::BTreeMap;

use super::super::code::Code;
use super::super::cursor::{Context, Fields, Path};
use super::super::grammar;
use super::super::model::{
    CachePolicy, Clocks, ParallelWriters, Phase, Publish, Role, RuntimeName, SandboxRules,
};
use super::super::name::Name;
use super::super::pattern::DirGrant;
use super::super::yaml::Kind;
use super::{chain, policy, roster, writers};

/// What could be decoded, with holes where something was wrong.
pub(in super::super) struct Draft {
    pub(in super::super) name: Option<Name>,
    pub(in super::super) description: String,
    pub(in super::super) runtime: Option<RuntimeName>,
    /// `None` for a role that is declared but could not be decoded.
    pub(in super::super) roster: BTreeMap<Name, Option<Role>>,
    pub(in super::super) phases: Vec<Slot>,
    /// The members as written, with their paths.
    pub(in super::super) parallel: Vec<(Name, Path)>,
    /// How many members were written, those with problems included.
    pub(in super::super) parallel_written: Option<usize>,
    pub(in super::super) writers: Option<ParallelWriters>,
    /// The checks as written, with their paths.
    pub(in super::super) acceptance: Vec<(String, Path)>,
    pub(in super::super) publish: Option<Publish>,
    pub(in super::super) build_outputs: Vec<DirGrant>,
    pub(in super::super) caches: CachePolicy,
    pub(in super::super) budget_usd: Option<f64>,
    pub(in super::super) limits: Clocks,
    pub(in super::super) sandbox: SandboxRules,
}

/// One entry of `phases`: declared, perhaps not decodable.
pub(in super::super) struct Slot {
    pub(in super::super) name: Option<Name>,
    pub(in super::super) phase: Option<Phase>,
}

/// Decodes the whole tree; `None` when it is no map.
pub(in super::super) fn definition(cx: &mut Context<'_>) -> Option<Draft> {
    let root = cx.root();
    let path = Path::default();
    let top = Fields::open(cx, &root, &path, &grammar::DEFINITION)?;
    let name = top.parsed(cx, "name", Code::Name);
    let description = top.text(cx, "description").unwrap_or_default();
    let runtime = runtime(cx, &top);
    let roster = roster::roster(cx, &top);
    let phases = phases(cx, &top);
    Some(Draft {
        name,
        description,
        runtime,
        roster,
        phases,
        parallel: parallel(cx, &top),
        parallel_written: match top.get("parallel").map(|node| &node.kind) {
            Some(Kind::List(items)) => Some(items.len()),
            _ => None,
        },
        writers: writers::writers(cx, &top),
        acceptance: top.texts(cx, "acceptance").unwrap_or_default(),
        publish: policy::publish(cx, &top),
        build_outputs: top
            .parsed_list(cx, "build_outputs", Code::Grant)
            .unwrap_or_default(),
        caches: top
            .choice(cx, "caches", &[CachePolicy::Shared, CachePolicy::Off])
            .unwrap_or_default(),
        budget_usd: top.dollars(cx, "budget_usd"),
        limits: policy::clocks(cx, &top),
        sandbox: policy::sandbox(cx, &top),
    })
}

/// The `runtime` of a definition or a role.
pub(super) fn runtime(cx: &mut Context<'_>, fields: &Fields<'_>) -> Option<RuntimeName> {
    fields.runtime(cx, "runtime")
}

fn phases(cx: &mut Context<'_>, top: &Fields<'_>) -> Vec<Slot> {
    let Some(items) = top.list(cx, "phases") else {
        return Vec::new();
    };
    if items.is_empty() {
        cx.at(
            Code::Blank,
            &top.at("phases"),
            "a definition needs at least one phase",
        );
    }
    items
        .into_iter()
        .map(|(node, path)| chain::phase(cx, node, &path))
        .collect()
}

/// A flat list of names; a list inside it is a second group.
fn parallel(cx: &mut Context<'_>, top: &Fields<'_>) -> Vec<(Name, Path)> {
    let Some(items) = top.list(cx, "parallel") else {
        return Vec::new();
    };
    let mut members = Vec::new();
    for (node, path) in items {
        if matches!(node.kind, Kind::List(_)) {
            cx.at(
                Code::GroupShape,
                &path,
                "a list inside `parallel` would be a second group; a definition has one",
            )
            .help("write the members as one flat list");
            continue;
        }
        let Some(text) = super::super::cursor::text(cx, node, &path) else {
            continue;
        };
        if let Some(name) = super::super::cursor::parse_as(cx, &text, &path, Code::Name) {
            members.push((name, path));
        }
    }
    members
}
