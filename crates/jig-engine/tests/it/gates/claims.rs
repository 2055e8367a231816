//! `artifacts_exist`, `files_non_empty`, `diff_matches_claims`.

use std::os::unix::fs::symlink;

use jig_engine::gates::{EntryChanges, Gone};
use jig_protocol::definition::GateName;
use serde_json::json;

use super::{Bench, shown};

#[tokio::test(flavor = "multi_thread")]
async fn claimed_artifacts_are_looked_at_and_never_outside_the_tree() {
    let bench = Bench::new();
    let tree = bench.tree();
    std::fs::write(tree.join("full"), "x".repeat(1587)).unwrap();
    std::fs::write(tree.join("empty"), "").unwrap();
    std::fs::create_dir(tree.join("dir")).unwrap();
    symlink("full", tree.join("inside")).unwrap();
    symlink("/etc/passwd", tree.join("outside")).unwrap();
    let claims = json!({"artifacts": [
        "full", "./dir", "inside", "empty", "missing", "outside", "/etc/passwd", "../x", ""
    ]});
    let run = bench
        .run(GateName::ArtifactsExist, None, claims.clone())
        .await;
    insta::assert_snapshot!(shown(&run).join("\n"), @r"
    + full: exists (1.5KB)
    + ./dir: exists (directory)
    + inside: exists (1.5KB)
    + empty: exists (0B)
    - missing: does not exist
    - outside: is a link that leads out of the work tree
    - /etc/passwd: is not a path inside the work tree
    - ../x: is not a path inside the work tree
    - : is not a path inside the work tree
    ");
    assert!(!run.report.passed);
    let run = bench.run(GateName::FilesNonEmpty, None, claims).await;
    insta::assert_snapshot!(shown(&run).join("\n"), @r"
    + full: 1.5KB
    + inside: 1.5KB
    - empty: is empty
    ");
}

/// Not by its name, in a spelling some file system folds, nor over a link.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_gits_own_is_never_an_artifact() {
    let bench = Bench::new();
    let tree = bench.tree();
    for git in [".git", "sub/.git"] {
        std::fs::create_dir_all(tree.join(git)).unwrap();
        std::fs::write(tree.join(git).join("config"), "[core]").unwrap();
    }
    std::fs::write(tree.join(".gitignore"), "x").unwrap();
    symlink(".git", tree.join("alias")).unwrap();
    symlink("sub/.git/config", tree.join("settings")).unwrap();
    std::fs::create_dir_all(tree.join(".GIT")).unwrap();
    std::fs::write(tree.join(".GIT/config"), "[core]").unwrap();
    let claims = [
        ".git",
        "./.git/",
        "sub/../.git/config",
        "sub/.git/config",
        ".GIT/config",
        "git~1/config",
        "\".git/config\"",
        "alias",
        "alias/config",
        "settings",
    ];
    let run = bench
        .run(GateName::ArtifactsExist, None, json!({"artifacts": claims}))
        .await;
    let refused = claims.map(|claim| format!("- {claim}: is git's own and never an artifact"));
    assert_eq!(shown(&run), refused);
    assert!(!run.report.passed);
    // Nor does one of them count as a file that holds something.
    let run = bench
        .run(GateName::FilesNonEmpty, None, json!({"artifacts": claims}))
        .await;
    assert!(!run.report.passed, "{run:?}");
    assert!(shown(&run)[0].contains("checked nothing"), "{run:?}");
    let run = bench
        .run(
            GateName::ArtifactsExist,
            None,
            json!({"artifacts": [".gitignore", "sub"]}),
        )
        .await;
    assert!(run.report.passed, "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn absent_fails_empty_is_one_check_and_nothing_checked_fails() {
    let bench = Bench::new();
    std::fs::create_dir(bench.tree().join("dir")).unwrap();
    for gate in [GateName::ArtifactsExist, GateName::FilesNonEmpty] {
        let absent = bench.run(gate, None, json!({})).await;
        assert!(!absent.report.passed && absent.report.checks.len() == 1);
        let none = bench.run(gate, None, json!({"artifacts": []})).await;
        assert_eq!(shown(&none), ["+ artifacts: claims none"]);
        assert!(none.report.passed);
    }
    let nothing = bench
        .run(
            GateName::FilesNonEmpty,
            None,
            json!({"artifacts": ["dir", "missing"]}),
        )
        .await;
    assert!(!nothing.report.passed);
    assert!(
        shown(&nothing)[0].contains("checked nothing"),
        "{nothing:?}"
    );
}

fn changes(list: &[(&str, Gone)]) -> EntryChanges {
    EntryChanges {
        paths: list
            .iter()
            .map(|(path, gone)| ((*path).into(), *gone))
            .collect(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_and_changes_must_agree_both_ways() {
    let mut bench = Bench::new();
    bench.changed = Ok(changes(&[
        ("src/a.rs", Gone::No),
        ("old.txt", Gone::Yes),
        ("quiet", Gone::No),
    ]));
    let claims = json!({"changed_files": ["./src/a.rs", "old.txt", "src/b.rs", "../out"]});
    let run = bench.run(GateName::DiffMatchesClaims, None, claims).await;
    insta::assert_snapshot!(shown(&run).join("\n"), @r"
    + ./src/a.rs: was changed
    + old.txt: was removed
    - src/b.rs: is claimed but did not change
    - ../out: is not a path inside the work tree
    - quiet: was changed but not claimed
    ");
    let all = json!({"changed_files": ["src/a.rs", "old.txt", "quiet"]});
    assert!(
        bench
            .run(GateName::DiffMatchesClaims, None, all)
            .await
            .report
            .passed
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_the_wrong_shape_fail_and_say_so() {
    let mut bench = Bench::new();
    for (claims, expected) in [
        (json!({}), "- changed_files: is missing"),
        (
            json!({"changed_files": null}),
            "- changed_files: must be a list of paths, not null",
        ),
        (
            json!({"changed_files": "a"}),
            "- changed_files: must be a list of paths, not a string",
        ),
        (
            json!({"changed_files": ["a", 1]}),
            "- changed_files[1]: must be a path, not a number",
        ),
    ] {
        let run = bench.run(GateName::DiffMatchesClaims, None, claims).await;
        assert!(shown(&run)[0].starts_with(expected), "{:?}", shown(&run));
        assert!(!run.report.passed);
    }
    let run = bench
        .run(
            GateName::DiffMatchesClaims,
            None,
            json!({"changed_files": []}),
        )
        .await;
    assert_eq!(
        shown(&run),
        ["+ changed_files: claims nothing changed, and nothing did"]
    );
    bench.changed = Err("git was away".into());
    let run = bench
        .run(
            GateName::DiffMatchesClaims,
            None,
            json!({"changed_files": []}),
        )
        .await;
    assert!(!run.report.passed && shown(&run)[0].contains("git was away"));
}
