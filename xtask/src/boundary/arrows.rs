//! What the manifests alone tell: arrows, names, duties, and the ways down
//! through crates of ours.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::Result;

use super::layers::{CrateRules, ExceptionKind, FILE, Layers, UsedExceptions};
use super::manifests::{Arrow, ArrowKind, Manifests, Member};
use crate::finding::Finding;
use crate::workspace::Workspace;

pub(super) fn check(
    workspace: &Workspace,
    layers: &Layers,
    manifests: &Manifests,
    used: &mut UsedExceptions,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let mut checker = Checker {
        workspace,
        layers,
        manifests,
        used,
        findings,
    };
    checker.blocks_without_crate();
    for member in &manifests.members {
        match layers.of(&member.name) {
            None => checker.report(
                "boundary/block",
                &member.manifest,
                format!("{} has no block in {FILE}", member.name),
                "add a block that says its duty and what it may use",
            ),
            Some(rules) => checker.member(member, rules),
        }
        for arrow in &member.arrows {
            checker.dev_only(member, arrow);
            checker.stranger(member, arrow);
        }
    }
    Ok(())
}

struct Checker<'a> {
    workspace: &'a Workspace,
    layers: &'a Layers,
    manifests: &'a Manifests,
    used: &'a mut UsedExceptions,
    findings: &'a mut Vec<Finding>,
}

impl Checker<'_> {
    fn report(&mut self, rule: &'static str, place: &str, problem: String, remedy: &str) {
        self.findings
            .push(Finding::new(rule, place, problem, remedy));
    }

    fn blocks_without_crate(&mut self) {
        for rules in &self.layers.crates {
            if !self.manifests.is_ours(&rules.name) {
                let problem = format!("the block of {} belongs to no crate", rules.name);
                self.report(
                    "boundary/block",
                    FILE,
                    problem,
                    "remove the block or rename it",
                );
            }
        }
    }

    fn member(&mut self, member: &Member, rules: &CrateRules) {
        self.duty(member, rules);
        self.arrows_are_listed(member, rules);
        self.listed_are_used(member, rules);
        self.names(member, rules);
        self.reach_through_ours(member, rules);
    }

    fn duty(&mut self, member: &Member, rules: &CrateRules) {
        if member.description.as_deref() != Some(rules.duty.as_str()) {
            let problem = format!(
                "the description of {} is not its duty: `{}` in the manifest, `{}` in {FILE}",
                member.name,
                member.description.as_deref().unwrap_or(""),
                rules.duty
            );
            self.report(
                "boundary/duty",
                &member.manifest,
                problem,
                "make the two the same",
            );
        }
    }

    fn arrows_are_listed(&mut self, member: &Member, rules: &CrateRules) {
        for arrow in member
            .arrows
            .iter()
            .filter(|arrow| self.manifests.is_ours(&arrow.to))
        {
            let is_dev = arrow.kind == ArrowKind::Dev;
            let listed = rules.may_use.contains(&arrow.to)
                || (is_dev && rules.dev_may_use.contains(&arrow.to))
                || (is_dev && self.layers.dev_only.contains(&arrow.to));
            let kind = if is_dev {
                ExceptionKind::DevUse
            } else {
                ExceptionKind::Use
            };
            if listed || self.used.grants(self.layers, kind, &member.name, &arrow.to) {
                continue;
            }
            let place = self.place(member, arrow);
            let problem = format!(
                "the arrow {} -> {} ({}) is not listed",
                member.name,
                arrow.to,
                arrow.described()
            );
            let list = if is_dev { "dev_may_use" } else { "may_use" };
            let remedy = format!(
                "take the dependency out, or argue for it in {list} of {} in {FILE}",
                member.name
            );
            self.report("boundary/arrow", &place, problem, &remedy);
        }
    }

    fn listed_are_used(&mut self, member: &Member, rules: &CrateRules) {
        let uses = |to: &str, wanted: fn(ArrowKind) -> bool| {
            member
                .arrows
                .iter()
                .any(|arrow| arrow.to == to && wanted(arrow.kind))
        };
        let unused: Vec<_> = rules
            .may_use
            .iter()
            .filter(|to| !uses(to, |kind| kind != ArrowKind::Dev))
            .map(|to| ("may_use", to))
            .chain(
                rules
                    .dev_may_use
                    .iter()
                    .filter(|to| !uses(to, |kind| kind == ArrowKind::Dev))
                    .map(|to| ("dev_may_use", to)),
            )
            .collect();
        for (list, to) in unused {
            let problem = format!(
                "{list} of {} lists {to}, which it does not use",
                member.name
            );
            self.report("boundary/unused", FILE, problem, "take it off the list");
        }
    }

    fn names(&mut self, member: &Member, rules: &CrateRules) {
        for arrow in member
            .arrows
            .iter()
            .filter(|arrow| rules.never_name.contains(&arrow.to))
        {
            if self
                .used
                .grants(self.layers, ExceptionKind::Name, &member.name, &arrow.to)
            {
                continue;
            }
            let place = self.place(member, arrow);
            let problem = format!(
                "{} may not name {} ({})",
                member.name,
                arrow.to,
                arrow.described()
            );
            self.report(
                "boundary/name",
                &place,
                problem,
                "reach it through the crate that owns it",
            );
        }
    }

    /// Forbidden crates of ours, found without a lock file.
    fn reach_through_ours(&mut self, member: &Member, rules: &CrateRules) {
        let ways = ways_down(self.manifests, &member.name);
        for forbidden in &rules.never_reach {
            let Some(way) = ways.get(forbidden.as_str()) else {
                continue;
            };
            if self
                .used
                .grants(self.layers, ExceptionKind::Reach, &member.name, forbidden)
            {
                continue;
            }
            let problem = format!("{} reaches {forbidden}: {}", member.name, way.join(" -> "));
            self.report(
                "boundary/reach",
                &member.manifest,
                problem,
                "cut the way at one of its arrows",
            );
        }
    }

    fn dev_only(&mut self, member: &Member, arrow: &Arrow) {
        if arrow.kind != ArrowKind::Dev && self.layers.dev_only.contains(&arrow.to) {
            let place = self.place(member, arrow);
            let problem = format!(
                "{} uses {} outside its dev-dependencies ({})",
                member.name,
                arrow.to,
                arrow.described()
            );
            self.report(
                "boundary/dev-only",
                &place,
                problem,
                "move it to [dev-dependencies]",
            );
        }
    }

    /// A path dependency that is no member would escape every rule here.
    fn stranger(&mut self, member: &Member, arrow: &Arrow) {
        let Some(path) = &arrow.path else { return };
        let target = path.join("Cargo.toml").canonicalize().ok();
        let is_member = self.manifests.member(&arrow.to).is_some_and(|m| {
            target.is_some()
                && self.workspace.root().join(&m.manifest).canonicalize().ok() == target
        });
        if !is_member {
            let place = self.place(member, arrow);
            let problem = format!(
                "{} depends by path on {}, which is no member of the workspace",
                member.name, arrow.to
            );
            self.report(
                "boundary/stranger",
                &place,
                problem,
                "make it a member or take it out",
            );
        }
    }

    /// The line of the manifest that names the arrow, as well as it can be found.
    fn place(&self, member: &Member, arrow: &Arrow) -> String {
        let key = arrow.renamed.as_ref().unwrap_or(&arrow.to);
        let line = self.workspace.read(&member.manifest).ok().and_then(|text| {
            text.lines().position(|line| {
                let line = line.trim_start_matches(['[', ' ', '"']);
                line.strip_prefix(key.as_str()).is_some_and(|rest| {
                    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_')
                }) || line.contains(&format!("dependencies.{key}]"))
            })
        });
        match line {
            Some(line) => format!("{}:{}", member.manifest, line + 1),
            None => member.manifest.clone(),
        }
    }
}

/// The shortest way from a crate to each crate of ours below it, over normal and
/// build arrows, optional and platform-bound ones included.
pub(super) fn ways_down<'a>(
    manifests: &'a Manifests,
    from: &'a str,
) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut ways = BTreeMap::new();
    let mut seen = BTreeSet::from([from]);
    let mut queue = VecDeque::from([vec![from]]);
    while let Some(way) = queue.pop_front() {
        let Some(member) = way.last().and_then(|name| manifests.member(name)) else {
            continue;
        };
        for arrow in member
            .arrows
            .iter()
            .filter(|arrow| arrow.kind != ArrowKind::Dev)
        {
            if manifests.is_ours(&arrow.to) && seen.insert(&arrow.to) {
                let mut longer = way.clone();
                longer.push(&arrow.to);
                ways.insert(arrow.to.as_str(), longer.clone());
                queue.push_back(longer);
            }
        }
    }
    ways
}
