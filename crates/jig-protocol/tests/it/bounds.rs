//! The arithmetic of sends, runs and dollars.

use jig_protocol::definition::bounds::{correction_budget, sends_per_run};
use jig_protocol::definition::{Bounds, Definition, bounds, explain, not_yet_runnable, parse};

fn definition(phases: &str, rest: &str) -> Definition {
    let roles: String = ["a", "b", "c", "w"]
        .iter()
        .map(|name| {
            let writes = if *name == "w" { "[\"**\"]" } else { "[]" };
            format!(
                "  {name}: {{model: m, system_prompt: s, user_prompt: u, writes: {writes}, budget_usd: {}}}\n",
                if *name == "w" { 2 } else { 1 }
            )
        })
        .collect();
    let text = format!("name: sample\nroster:\n{roles}phases:\n{phases}{rest}");
    let parsed = parse(&text);
    for problem in &parsed.diagnostics {
        assert!(
            problem.code.as_str().starts_with('W'),
            "{}",
            problem.render("x", &text, false)
        );
    }
    parsed.definition.unwrap()
}

fn agent(name: &str, owner: &str, rest: &str) -> String {
    format!("  - {{name: {name}, kind: agent, owner: {owner}{rest}}}\n")
}

fn code(name: &str, rest: &str) -> String {
    format!("  - {{name: {name}, kind: code, command: x{rest}}}\n")
}

fn runs(bounds: &Bounds) -> Vec<u64> {
    bounds.phases.iter().map(|phase| phase.runs).collect()
}

/// Without gates: 3 entries (2 deaths) of 4 emissions, and 5 repeats.
const PLAIN: u64 = 3 * 4 + 5;
/// With gates at their default: 3 rounds of 4 emissions in each entry.
const GATED: u64 = 3 * 3 * 4 + 5;

#[test]
fn one_run_of_a_phase() {
    for (gates, budget, sends) in [
        ("", 2, PLAIN),
        (", gates: [{name: artifacts_exist}]", 2, GATED),
        (", gates: [{name: artifacts_exist, budget: 0}]", 2, GATED),
        (
            ", gates: [{name: artifacts_exist, budget: 1}]",
            1,
            2 * 2 * 4 + 5,
        ),
        (
            ", gates: [{name: artifacts_exist, budget: 1}, {name: files_non_empty, budget: 4}]",
            4,
            5 * 5 * 4 + 5,
        ),
        (
            ", gates: [{name: artifacts_exist}, {name: files_non_empty, budget: 1}]",
            1,
            2 * 2 * 4 + 5,
        ),
    ] {
        let definition = definition(&agent("work", "a", gates), "");
        let phase = &definition.phases[0];
        assert_eq!(correction_budget(phase), budget, "{gates}");
        assert_eq!(sends_per_run(phase), sends, "{gates}");
        let bounds = bounds(&definition);
        assert_eq!(bounds.chain_sends, sends);
        assert_eq!(u64::from(bounds.worst_case_sends), sends.min(64));
        assert_eq!(bounds.capped, sends > 64);
    }
}

#[test]
fn code_phases_send_nothing() {
    let definition = definition(
        &code("test", ", gates: [{name: tests_pass, command: x}]"),
        "",
    );
    let bounds = bounds(&definition);
    assert_eq!(
        (bounds.worst_case_sends, bounds.worst_case_spend),
        (0, Some(0.0))
    );
}

#[test]
fn edges_add_their_target_and_the_phase_again() {
    let chain = agent("plan", "a", "")
        + &agent("build", "w", "")
        + &code("lint", "")
        + &code(
            "test",
            ", on_fail: {run: build, then: rerun-self, budget: 3}",
        );
    assert_eq!(runs(&bounds(&definition(&chain, ""))), [1, 4, 1, 4]);
    let chain = chain.replace(
        "run: build, then: rerun-self",
        "run: plan, then: rerun-chain",
    );
    let replayed = bounds(&definition(&chain, ""));
    assert_eq!(runs(&replayed), [4, 4, 4, 4]);
    assert_eq!(replayed.chain_sends, 8 * PLAIN);
}

#[test]
fn a_group_runs_again_as_a_whole() {
    let edge = |budget: u32| {
        format!(
            ", on_fail: {{when: approved == false, run: build, then: rerun-self, budget: {budget}}}"
        )
    };
    let chain = agent("build", "w", "")
        + &agent("one", "a", &edge(3))
        + &agent("two", "b", &edge(2))
        + &agent("three", "c", "");
    let grouped = bounds(&definition(&chain, "parallel: [one, two, three]\n"));
    assert_eq!(grouped.group_runs, 6);
    assert_eq!(runs(&grouped), [6, 6, 6, 6]);
    let alone = bounds(&definition(&chain, ""));
    assert_eq!((alone.group_runs, runs(&alone)), (0, vec![6, 4, 3, 1]));
}

#[test]
fn ci_rounds_run_the_rest_of_the_chain_again() {
    let chain = agent("plan", "a", "")
        + &agent("build", "w", "")
        + &code(
            "test",
            ", on_fail: {run: build, then: rerun-self, budget: 1}",
        )
        + &agent("review", "b", "");
    let ci = |wait: bool| {
        let more = if wait {
            "wait: true, on_fail: {run: build, budget: 2}"
        } else {
            "wait: false"
        };
        bounds(&definition(
            &chain,
            &format!("publish: {{ci: {{{more}}}}}\n"),
        ))
    };
    // Per round: the repair, one use of the test's edge, the review.
    assert_eq!(ci(true).ci_sends, 2 * (2 + 1) * PLAIN);
    assert_eq!(ci(false).ci_sends, 0);
}

#[test]
fn spend_is_the_dearest_way_to_use_the_sends() {
    let spend = |chain: &str, rest: &str| bounds(&definition(chain, rest)).worst_case_spend;
    // 17 sends of $1.
    assert_eq!(spend(&agent("plan", "a", ""), ""), Some(17.0));
    // 41 sends of $2 come first, 23 of $1 are left of 64.
    let chain = agent("plan", "a", ", gates: [{name: files_non_empty}]")
        + &agent("build", "w", ", gates: [{name: files_non_empty}]");
    assert_eq!(spend(&chain, ""), Some(41.0 * 2.0 + 23.0));
    // The ceiling may be passed by one send.
    assert_eq!(spend(&chain, "budget_usd: 10\n"), Some(12.0));
    let mut open = definition(&chain, "");
    for role in open.roster.values_mut() {
        role.budget_usd = None;
    }
    assert_eq!(bounds(&open).worst_case_spend, None);
}

#[test]
fn what_cannot_run_yet_is_named() {
    let plain = definition(
        &agent("work", "a", ", gates: [{name: artifacts_exist}]"),
        "",
    );
    assert!(not_yet_runnable(&plain).is_empty());
    let chain = agent("one", "a", ", gates: [{name: tests_intact}]") + &agent("two", "b", "");
    let grouped = definition(&chain, "parallel: [one, two]\n");
    assert_eq!(not_yet_runnable(&grouped), ["parallel", "tests_intact"]);
    let writers = parse(include_str!("definitions/ok-writers.yaml"))
        .definition
        .unwrap();
    assert_eq!(not_yet_runnable(&writers), ["parallel_writers"]);
}

#[test]
fn explained() {
    let chain = agent("plan", "a", "")
        + &agent(
            "build",
            "w",
            ", gates: [{name: files_non_empty, budget: 1}]",
        )
        + &code(
            "test",
            ", on_fail: {run: plan, then: rerun-chain, budget: 2}",
        )
        + &agent(
            "one",
            "b",
            ", on_fail: {when: approved == false, run: build, then: rerun-self, budget: 1, exhausted: proceed}",
        )
        + &agent("two", "c", ", if: risk != \"very low\"");
    let rest = "description: Shows everything.\nparallel: [one, two]\nacceptance: [all_phases_passed, files_non_empty]\npublish: {hold_when: risk != low, ci: {wait: true, on_fail: {run: build, budget: 2}}}\nbudget_usd: 5\n";
    let explained = explain(&definition(&chain, rest));
    insta::assert_snapshot!(explained.text);
    insta::assert_snapshot!(explained.mermaid);
}
