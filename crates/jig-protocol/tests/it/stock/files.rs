//! The stock definitions as files.

use std::collections::BTreeSet;
use std::fs;

use jig_protocol::definition::{
    AcceptanceCheck, Definition, Exhausted, GateName, NOT_YET_RUNNABLE, Rerun, bounds, explain,
    features_in_use, parse,
};

use super::shell::{directory, stock};

const NAMES: [&str; 7] = [
    "factory",
    "factory-parallel",
    "plan-build-test",
    "scout",
    "simple-sdlc",
    "smoke",
    "two-phase",
];

#[test]
fn each_is_valid_without_a_warning_and_named_like_its_file() {
    let found: BTreeSet<String> = fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        found,
        BTreeSet::from(NAMES.map(|name| format!("{name}.yaml")))
    );
    for name in NAMES {
        let text = fs::read_to_string(directory().join(format!("{name}.yaml"))).unwrap();
        let parsed = parse(&text);
        let shown: String = parsed
            .diagnostics
            .iter()
            .map(|problem| problem.render(name, &text, false) + "\n")
            .collect();
        assert!(shown.is_empty(), "{shown}");
        let definition = parsed.definition.unwrap();
        assert_eq!(definition.name.as_str(), name);
        assert!(
            !definition.description.is_empty(),
            "{name} says what it is for"
        );
        assert!(explain(&definition).text.contains("Bounds of one attempt"));
        assert!(
            text.starts_with("# yaml-language-server: $schema=../../docs/definition.schema.json\n"),
            "{name} names its schema for editors"
        );
    }
}

#[test]
fn only_the_parallel_factory_needs_what_cannot_run_yet() {
    for name in NAMES {
        let waiting: Vec<&str> = features_in_use(&stock(name))
            .into_iter()
            .filter(|feature| NOT_YET_RUNNABLE.contains(feature))
            .collect();
        let expected: &[&str] = if name == "factory-parallel" {
            &["parallel"]
        } else {
            &[]
        };
        assert_eq!(waiting, expected, "{name}");
    }
}

#[test]
fn the_parallel_factory_differs_in_name_and_group_only() {
    let mut twin = stock("factory-parallel");
    let factory = stock("factory");
    assert_eq!(
        twin.parallel
            .iter()
            .map(AsRef::<str>::as_ref)
            .collect::<Vec<_>>(),
        [
            "review-correctness",
            "review-security",
            "review-maintainability"
        ]
    );
    assert_eq!(bounds(&twin).group_runs, 1 + 3 + 3 + 3);
    twin.parallel.clear();
    twin.name = factory.name.clone();
    assert_eq!(twin, factory);
    // The text too, comments at the top aside.
    let body = |name: &str| {
        let text = fs::read_to_string(directory().join(format!("{name}.yaml"))).unwrap();
        let (_, body) = text.split_once("\nname: ").unwrap();
        body.lines()
            .skip(1)
            .filter(|line| !line.is_empty() && !line.starts_with("parallel: "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(body("factory"), body("factory-parallel"));
}

fn names(definition: &Definition) -> Vec<&str> {
    definition
        .phases
        .iter()
        .map(|phase| phase.name.as_str())
        .collect()
}

#[test]
fn the_factory_is_what_it_is() {
    let factory = stock("factory");
    assert_eq!(
        names(&factory),
        [
            "plan",
            "build",
            "commit-build",
            "test",
            "review-correctness",
            "review-security",
            "review-maintainability",
            "commit-revision",
            "retest",
            "classify-risk",
            "review-risk",
        ]
    );
    for (role, writes, cap) in [
        ("planner", false, 2.0),
        ("builder", true, 8.0),
        ("correctness-reviewer", false, 4.0),
        ("security-reviewer", false, 4.0),
        ("maintainability-reviewer", false, 4.0),
        ("risk-reviewer", false, 3.0),
    ] {
        let role = &factory.roster[role];
        assert_eq!(role.is_read_only(), !writes);
        assert_eq!(role.budget_usd, Some(cap));
    }
    for review in [
        "review-correctness",
        "review-security",
        "review-maintainability",
    ] {
        let (_, phase) = factory.phase(review).unwrap();
        assert_eq!(phase.gates[0].name, GateName::VerdictConsistent);
        let edge = phase.on_fail.as_ref().unwrap();
        assert_eq!(edge.when.as_ref().unwrap().to_string(), "approved == false");
        assert_eq!(
            (edge.run.as_str(), edge.then, edge.budget, edge.exhausted),
            ("build", Rerun::RerunSelf, 3, Exhausted::FailJob)
        );
    }
    let publish = factory.publish.as_ref().unwrap();
    assert_eq!(
        publish.hold_when.as_ref().unwrap().to_string(),
        "risk != low"
    );
    assert_eq!(
        factory.acceptance,
        [
            AcceptanceCheck::AllPhasesPassed,
            AcceptanceCheck::Gate(GateName::VerdictConsistent),
            AcceptanceCheck::Gate(GateName::DiffMatchesClaims),
        ]
    );
}

#[test]
fn a_red_suite_goes_back_to_where_it_is_repaired() {
    for (name, run) in [
        ("plan-build-test", "plan"),
        ("simple-sdlc", "build"),
        ("factory", "build"),
    ] {
        let definition = stock(name);
        let edge = definition
            .phase("test")
            .unwrap()
            .1
            .on_fail
            .as_ref()
            .unwrap();
        assert_eq!(
            (edge.run.as_str(), edge.then),
            (run, Rerun::RerunChain),
            "{name}"
        );
    }
}

#[test]
fn what_is_revised_is_committed_and_tested() {
    for name in ["simple-sdlc", "factory"] {
        let definition = stock(name);
        for phase in ["commit-revision", "retest"] {
            let guard = definition.phase(phase).unwrap().1.guard.as_ref().unwrap();
            assert_eq!(guard.to_string(), "revised", "{name}");
        }
    }
}
