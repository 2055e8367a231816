//! Nothing that a repository names is ever executed by jig.

use std::path::Path;

use jig_git::changes::{GuardOptions, Selection};
use jig_git::{AttemptRepo, Repository};

use crate::support::*;

const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "post-update",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-receive",
    "prepare-commit-msg",
    "reference-transaction",
    "update",
];

/// A program that records that it ran, and the record's path.
fn recorder(dir: &Path) -> (String, std::path::PathBuf) {
    let record = dir.join("ran");
    let program = dir.join("recorder");
    write(
        &program,
        format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", record.display()),
    );
    chmod(&program, 0o755);
    (program.display().to_string().replace(' ', "\\ "), record)
}

/// Plants the program everywhere a configuration can name one.
fn plant(git_dir: &Path, program: &str) {
    for hook in HOOKS {
        let path = git_dir.join("hooks").join(hook);
        write(&path, format!("#!/bin/sh\nexec {program} {hook}\n"));
        chmod(&path, 0o755);
    }
    let mut config = std::fs::read_to_string(git_dir.join("config")).unwrap();
    let quoted = program.replace('\\', "\\\\");
    config.push_str(&format!(
        "[core]\n\tfsmonitor = {quoted}\n\tsshCommand = {quoted}\n\teditor = {quoted}\n\tpager = {quoted}\n\
         \taskPass = {quoted}\n\tgitProxy = {quoted}\n\talternateRefsCommand = {quoted}\n\
         [filter \"evil\"]\n\tclean = {quoted}\n\tsmudge = {quoted}\n\tprocess = {quoted}\n\trequired = true\n\
         [diff]\n\texternal = {quoted}\n[diff \"evil\"]\n\ttextconv = {quoted}\n\tcommand = {quoted}\n\
         [merge \"evil\"]\n\tdriver = {quoted}\n[credential]\n\thelper = {quoted}\n[gpg]\n\tprogram = {quoted}\n\
         [commit]\n\tgpgSign = true\n[url \"ext::{quoted} \"]\n\tinsteadOf = /\n[uploadpack]\n\tpackObjectsHook = {quoted}\n\
         [alias]\n\tstatus = !{quoted}\n\tupdate-ref = !{quoted}\n[pager]\n\tstatus = {quoted}\n"
    ));
    write(git_dir.join("config"), config);
}

fn assert_nothing_ran(record: &Path) {
    let ran = std::fs::read_to_string(record).unwrap_or_default();
    assert_eq!(ran, "", "a planted program was executed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lender_full_of_programs_runs_none_of_them() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[
        ("a.txt", "one\n"),
        (".gitattributes", "* filter=evil diff=evil merge=evil\n"),
    ]);
    let (program, record) = recorder(fixture.dir.path());
    plant(&lender.join(".git"), &program);
    write(lender.join("dirty.txt"), "x");

    let repository = fixture.repository(&lender).await;
    let dirty = repository.dirty_paths(&fixture.git).await.unwrap();
    assert!(dirty.contains(&path("dirty.txt")), "{dirty:?}");
    repository
        .resolve_base(&fixture.git, Some("main"))
        .await
        .unwrap();
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let (before, after, changes) = attempt
        .around(|tree| write(tree.join("a.txt"), "two\n"))
        .await;
    assert!(changes.metadata.is_empty(), "{:?}", changes.metadata);
    let head = attempt
        .repo
        .commit_result(&attempt.guard, &after, "m", NOW)
        .await
        .unwrap()
        .unwrap();
    attempt.repo.import(head).await.unwrap();
    attempt
        .guard
        .restore(&before, &after, Selection::All)
        .await
        .unwrap();
    attempt.repo.release_pin().await.unwrap();

    let here = AttemptRepo::in_place(
        &fixture.git,
        &repository,
        &fixture.dir.path().join("in place"),
    )
    .await
    .unwrap();
    let guard = here.guard(GuardOptions::default()).unwrap();
    let first = guard.capture(None).await.unwrap();
    here.snapshot_commit(&guard, &first, "m", NOW)
        .await
        .unwrap();
    assert_nothing_ran(&record);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_full_of_programs_is_seen_without_running_one() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let (program, record) = recorder(fixture.dir.path());
    let git_dir = attempt.repo.git_dir().to_owned();
    let (before, after, changes) = attempt
        .around(|tree| {
            plant(&git_dir, &program);
            plant(&lender.join(".git"), &program);
            write(tree.join(".gitattributes"), "* filter=evil diff=evil\n");
            write(tree.join("a.txt"), "dirty\n");
        })
        .await;
    assert!(
        changes.metadata.len() > 2 * HOOKS.len(),
        "{:?}",
        changes.metadata.len()
    );
    let report = attempt
        .guard
        .restore(&before, &after, Selection::All)
        .await
        .unwrap();
    assert!(report.is_complete(), "{:?}", report.remaining);
    for owner in [
        jig_git::changes::Owner::Attempt,
        jig_git::changes::Owner::Lender,
    ] {
        attempt
            .guard
            .put_back_metadata(&before, &after, owner, &std::collections::BTreeSet::new())
            .await
            .unwrap();
    }
    let again = attempt.guard.capture(Some(&report.capture)).await.unwrap();
    assert!(attempt.guard.compare(&before, &again).is_empty());
    assert_nothing_ran(&record);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_git_of_the_environment_is_not_followed() {
    // `discover` goes by the path alone; a repository elsewhere is not reached
    // through variables, which a run of git would otherwise inherit.
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n")]);
    let found = Repository::discover(&fixture.git, &lender).await.unwrap();
    assert_eq!(
        found.git_dir,
        std::fs::canonicalize(lender.join(".git")).unwrap()
    );
}
