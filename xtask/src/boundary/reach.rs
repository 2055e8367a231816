//! What only the resolved tree tells: forbidden packages and features, however
//! deep they lie.

use std::collections::BTreeMap;

use super::arrows::ways_down;
use super::layers::{CrateRules, ExceptionKind, Layers, UsedExceptions};
use super::manifests::{Manifests, Member};
use super::tree::Tree;
use crate::finding::Finding;
use crate::workspace::Workspace;

/// Reports whether every tree could be read.
pub(super) fn check(
    workspace: &Workspace,
    layers: &Layers,
    manifests: &Manifests,
    used: &mut UsedExceptions,
    findings: &mut Vec<Finding>,
) -> bool {
    let mut unreadable: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for member in &manifests.members {
        match Tree::read(workspace, &member.name) {
            Ok(tree) => member_tree(layers, manifests, member, &tree, used, findings),
            Err(error) => unreadable
                .entry(cause(&error))
                .or_default()
                .push(&member.name),
        }
    }
    let complete = unreadable.is_empty();
    for (cause, names) in unreadable {
        findings.push(Finding::new(
            "boundary/unreadable",
            "Cargo.lock",
            format!(
                "the tree below {} cannot be read: {cause}",
                names.join(", ")
            ),
            "bring Cargo.lock up to date and run `cargo fetch`, then check again",
        ));
    }
    complete
}

/// What cargo said, without the command line, which is another for every crate, and
/// without its remarks about waiting.
fn cause(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let said = text
        .split_once('\n')
        .map_or(text.as_str(), |(_, said)| said);
    let lines = said
        .lines()
        .filter(|line| !line.trim_start().starts_with("Blocking"));
    lines.collect::<Vec<_>>().join("\n")
}

fn member_tree(
    layers: &Layers,
    manifests: &Manifests,
    member: &Member,
    tree: &Tree,
    used: &mut UsedExceptions,
    findings: &mut Vec<Finding>,
) {
    for package in &layers.dev_only {
        if let Some(path) = tree.path_to(package) {
            let problem = format!("{} carries {package} into the product: {path}", member.name);
            findings.push(reach(member, problem));
        }
    }
    let Some(rules) = layers.of(&member.name) else {
        return;
    };
    for package in &rules.never_reach {
        let Some(path) = tree.path_to(package) else {
            continue;
        };
        if used.grants(layers, ExceptionKind::Reach, &member.name, package) {
            continue;
        }
        // Ways through crates of ours are already reported from the manifests.
        if !ways_down(manifests, &member.name).contains_key(package.as_str()) {
            findings.push(reach(
                member,
                format!("{} reaches {package}: {path}", member.name),
            ));
        }
    }
    features(layers, member, rules, tree, used, findings);
}

fn features(
    layers: &Layers,
    member: &Member,
    rules: &CrateRules,
    tree: &Tree,
    used: &mut UsedExceptions,
    findings: &mut Vec<Finding>,
) {
    for wanted in &rules.never_feature {
        let Some((package, feature)) = wanted.split_once('/') else {
            continue;
        };
        let Some(path) = tree.path_to_feature(package, feature) else {
            continue;
        };
        if !used.grants(layers, ExceptionKind::Feature, &member.name, wanted) {
            findings.push(Finding::new(
                "boundary/feature",
                &member.manifest,
                format!("{} turns on {wanted}: {path}", member.name),
                "turn the feature off where it is asked for",
            ));
        }
    }
}

fn reach(member: &Member, problem: String) -> Finding {
    Finding::new(
        "boundary/reach",
        &member.manifest,
        problem,
        "cut the way at one of its arrows",
    )
}
