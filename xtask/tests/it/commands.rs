//! Parts that are runs of cargo, on workspaces that cargo has something to say about.

use xtask::check::{PARTS, part};
use xtask::commands::{self, Outcome};
use xtask::finding::Finding;

use crate::fixture::{Fixture, none, only};

fn crate_with(text: &str) -> Fixture {
    let fixture = Fixture::empty();
    fixture.package("a", "");
    let lib = format!("{}{text}", fixture.read("crates/a/src/lib.rs"));
    fixture.write("crates/a/src/lib.rs", &lib);
    fixture.lock();
    fixture
}

#[track_caller]
fn ran(outcome: anyhow::Result<Outcome>) -> Vec<Finding> {
    match outcome.unwrap() {
        Outcome::Ran(findings) => findings,
        Outcome::Skipped(why) => panic!("skipped: {why}"),
    }
}

#[test]
fn format_lints_and_documentation_fail_on_what_they_are_for() {
    let clean = crate_with("\n/// F.\npub fn f() {}\n");
    none(&ran(commands::fmt(&clean.workspace())));
    none(&ran(commands::clippy(&clean.workspace())));
    none(&ran(commands::docs(&clean.workspace())));

    let unformatted = crate_with("\n/// F.\npub fn f( ) {}\n");
    assert!(
        ran(commands::fmt(&unformatted.workspace()))[0]
            .remedy
            .contains("cargo fmt")
    );
    assert!(
        unformatted.read("crates/a/src/lib.rs").contains("f( )"),
        "a check writes nothing"
    );
    let linted = crate_with("\n/// F.\npub fn f(x: &Vec<u8>) -> usize {\n    x.len()\n}\n");
    assert_eq!(ran(commands::clippy(&linted.workspace())).len(), 1);
    let undocumented = crate_with("\npub fn f() {}\n");
    assert_eq!(
        ran(commands::clippy(&undocumented.workspace())).len(),
        1,
        "missing_docs is an error"
    );
    let broken_link = crate_with("\n/// See [`Gone`].\npub fn f() {}\n");
    assert_eq!(ran(commands::docs(&broken_link.workspace())).len(), 1);
}

#[test]
fn tests_doc_tests_and_examples_all_count() {
    none(&ran(commands::test(
        &crate_with("\n#[test]\nfn t() {}\n").workspace(),
    )));

    let failing = crate_with("\n#[test]\nfn t() {\n    panic!();\n}\n");
    assert_eq!(ran(commands::test(&failing.workspace())).len(), 1);

    let doc = crate_with(
        "\n#[test]\nfn t() {}\n\n/// ```\n/// assert!(false);\n/// ```\npub fn f() {}\n",
    );
    let findings = ran(commands::test(&doc.workspace()));
    assert!(
        only(&findings, "command", &findings[0].place.clone())
            .place
            .ends_with("--doc")
    );

    let example = crate_with("\n#[test]\nfn t() {}\n");
    example.write(
        "crates/a/examples/e.rs",
        "fn main() {\n    std::process::exit(3);\n}\n",
    );
    let findings = ran(commands::test(&example.workspace()));
    assert!(
        only(&findings, "command", &findings[0].place.clone())
            .place
            .ends_with("--example e")
    );
}

#[test]
fn tests_run_without_nextest_too() {
    let fixture = crate_with("");
    let cargo = fixture.program(
        "cargo",
        "[ \"$1\" != nextest ] && echo \"$*\" >> \"$(dirname \"$0\")/log\"",
    );
    none(&ran(commands::test(&fixture.workspace().with_cargo(cargo))));
    let log = fixture.read("log");
    assert_eq!(log.lines().count(), 2, "{log}");
    assert!(
        log.starts_with("test --workspace --locked --no-fail-fast --lib --bins --tests\n"),
        "{log}"
    );
    assert!(log.ends_with("test --workspace --locked --doc\n"), "{log}");
}

#[test]
fn nextest_runs_more_tests_at_once_than_there_are_processors() {
    let fixture = crate_with("");
    let cargo = fixture.program("cargo", "echo \"$*\" >> \"$(dirname \"$0\")/log\"");
    none(&ran(commands::test(&fixture.workspace().with_cargo(cargo))));
    let log = fixture.read("log");
    let (_, threads) = log
        .lines()
        .find_map(|line| {
            line.split_once("nextest run --workspace --locked --no-fail-fast --test-threads=")
        })
        .unwrap_or_else(|| panic!("{log}"));
    let processors = std::thread::available_parallelism().unwrap().get();
    assert!(threads.parse::<usize>().unwrap() > processors, "{log}");
}

#[test]
fn a_stale_lock_file_is_found_and_left_alone() {
    let fixture = crate_with("");
    none(&ran(commands::fetch(&fixture.workspace())));
    let lock = fixture.read("Cargo.lock");
    fixture.package("b", "");
    assert_eq!(ran(commands::fetch(&fixture.workspace())).len(), 1);
    assert_eq!(fixture.read("Cargo.lock"), lock);
}

#[test]
fn definitions_go_to_the_validator_and_have_to_be_there() {
    let fixture = Fixture::empty();
    let cargo = fixture.program(
        "cargo",
        "echo \"$@\" > arguments; case \"$*\" in *bad*) exit 1;; esac",
    );
    let workspace = fixture.workspace().with_cargo(cargo);
    assert!(
        commands::definitions(&workspace).is_err(),
        "no definition at all"
    );

    fixture.write("examples/definitions/good.yaml", "name: good\n");
    fixture.write("examples/other/ignored.yaml", "");
    none(&ran(commands::definitions(&workspace)));
    assert!(
        fixture
            .read("arguments")
            .ends_with("def validate --strict examples/definitions/good.yaml\n")
    );

    fixture.write("examples/definitions/bad.yml", "");
    assert_eq!(ran(commands::definitions(&workspace)).len(), 1);
}

#[test]
fn the_build_without_a_system_is_skipped_only_where_its_target_is_missing() {
    let fixture = Fixture::empty();
    let cargo = fixture.program("cargo", "exit 1");
    let rustc = fixture.program("rustc", "pwd");
    let workspace = fixture.workspace().with_cargo(cargo).with_rustc(rustc);
    assert!(matches!(
        commands::wasm(&workspace),
        Ok(Outcome::Skipped(_))
    ));

    fixture.write("lib/rustlib/wasm32-unknown-unknown/x", "");
    assert_eq!(
        ran(commands::wasm(&workspace)).len(),
        1,
        "cargo build failed"
    );

    let broken = fixture
        .workspace()
        .with_rustc(fixture.program("rustc", "exit 1"));
    assert!(commands::wasm(&broken).is_err());
}

#[test]
fn a_failing_or_missing_cargo_deny_is_a_finding() {
    let fixture = Fixture::empty();
    let cargo = fixture.program(
        "cargo",
        "[ \"$*\" = 'deny --offline --locked check bans licenses sources' ]",
    );
    none(&ran(commands::deny(&fixture.workspace().with_cargo(cargo))));
    let missing = fixture.program("cargo-without", "exit 101");
    assert_eq!(
        ran(commands::deny(&fixture.workspace().with_cargo(missing))).len(),
        1
    );
}

#[test]
fn every_part_is_known_by_its_name_and_the_check_runs_the_house() {
    let names: Vec<&str> = PARTS
        .iter()
        .filter(|p| p.in_check)
        .map(|p| p.name)
        .collect();
    let house = [
        "fmt",
        "clippy",
        "boundary",
        "words",
        "size",
        "generated",
        "definitions",
        "test",
        "docs",
    ];
    assert!(house.iter().all(|name| names.contains(name)), "{names:?}");
    assert!(
        PARTS
            .iter()
            .all(|p| part(p.name).is_some_and(|found| found.about == p.about))
    );
    assert!(part("no-such-part").is_none());
}
