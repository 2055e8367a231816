//! Git metadata: of the attempt and of the operator's repository.

use std::os::unix::fs::PermissionsExt;

use jig_engine::boundary::Verdict;

use crate::fixture::{Attempt, BUILDER, COMMAND, FREE, Fixture, breaches};

/// A program that leaves a mark when anybody runs it, and the mark's path.
fn recorder(fixture: &Fixture) -> (String, std::path::PathBuf) {
    let (program, mark) = (
        fixture.repo.scratch().join("recorder"),
        fixture.repo.scratch().join("was-run"),
    );
    let text = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", mark.display());
    std::fs::write(&program, text).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    (program.display().to_string(), mark)
}

fn assert_never_run(mark: &std::path::Path, script: &str) {
    let ran = std::fs::read_to_string(mark).unwrap_or_default();
    assert_eq!(ran, "", "{script}");
}

/// Acts, judges, then does everything jig would go on to do.
async fn planted(script: &str) -> (Fixture, Attempt, Verdict) {
    let fixture = Fixture::new(&[("src/a.rs", "a\n"), ("b.txt", "b\n")]);
    let mut attempt = fixture.attempt().await;
    let (program, mark) = recorder(&fixture);
    let script = script.replace("PROGRAM", &program);
    let verdict = attempt.entry(FREE, &script).await;
    assert_never_run(&mark, &script);
    let delivery = jig_engine::host::deliver(
        &fixture.config,
        &attempt.prepared,
        &attempt.boundary,
        &crate::fixture::no_secrets(),
        "t",
    )
    .await;
    assert!(delivery.is_err(), "{script}: {delivery:?}");
    assert!(!fixture.repo.refs().contains("refs/heads/jig/"), "{script}");
    assert_never_run(&mark, &script);
    (fixture, attempt, verdict)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_run_a_program_is_a_breach_and_never_runs() {
    for (script, name, outcome) in [
        (
            "mkdir -p $GIT_DIR_OF_ATTEMPT/hooks; cp PROGRAM $GIT_DIR_OF_ATTEMPT/hooks/post-commit",
            "git/hooks/post-commit",
            "restored metadata",
        ),
        (
            "git config core.fsmonitor PROGRAM",
            "git/config",
            "restored metadata",
        ),
        (
            "git config core.hooksPath /tmp",
            "git/config",
            "restored metadata",
        ),
        (
            "git config filter.x.clean PROGRAM; git config filter.x.smudge PROGRAM; \
             echo '* filter=x' > .gitattributes; echo c > src/a.rs",
            "git/config",
            "restored metadata",
        ),
        (
            "git config include.path /tmp/none",
            "git/config",
            "restored metadata",
        ),
        (
            "mkdir -p $GIT_DIR_OF_ATTEMPT/info; echo '* filter=x' > $GIT_DIR_OF_ATTEMPT/info/attributes",
            "git/info/attributes",
            "restored metadata",
        ),
        (
            "echo /tmp >> $GIT_DIR_OF_ATTEMPT/objects/info/alternates",
            "git/objects/info/alternates",
            "restored metadata",
        ),
        (
            "echo 'gitdir: /tmp/other' > .git",
            "tree/.git",
            "restored metadata",
        ),
        ("rm .git; git init -q .", "tree/.git", "restored metadata"),
    ] {
        let (_fixture, _attempt, verdict) = planted(script).await;
        let found = breaches(&verdict);
        assert!(
            found
                .iter()
                .any(|(path, what)| path.ends_with(name) && what == outcome),
            "{script}: {found:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_repository_is_watched_and_not_written() {
    for (script, name, says) in [
        (
            "git config -f $LENDER/config url.PROGRAM.insteadOf x; \
             git config -f $LENDER/config core.sshCommand PROGRAM",
            ".git/config",
            "left as it is",
        ),
        (
            "mkdir -p $LENDER/hooks; cp PROGRAM $LENDER/hooks/reference-transaction",
            ".git/hooks/reference-transaction",
            "left as it is",
        ),
        (
            "git --git-dir $LENDER update-ref refs/heads/sneaky HEAD",
            "refs/heads/sneaky",
            "if that was you",
        ),
        (
            "echo 'ref: refs/heads/other' > $LENDER/HEAD",
            ".git/HEAD",
            "if that was you",
        ),
    ] {
        let (fixture, attempt, verdict) = planted(script).await;
        let found = breaches(&verdict);
        assert!(
            found
                .iter()
                .any(|(path, what)| path.ends_with(name) && what.contains(says)),
            "{script}: {found:?}"
        );
        assert!(attempt.boundary.is_tampered());
        drop(fixture);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_is_a_breach_also_where_outputs_or_everything_may_be_written() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let mut attempt = fixture.attempt().await;
    let script = "mkdir -p $GIT_DIR_OF_ATTEMPT/hooks; echo x > $GIT_DIR_OF_ATTEMPT/hooks/pre-commit; \
                  mkdir -p target/hooks; echo x > target/hooks/pre-commit";
    let verdict = attempt.entry(FREE, script).await;
    assert_eq!(verdict.breaches.len(), 1, "{verdict:?}");
    assert!(
        !attempt
            .prepared
            .dirs
            .git()
            .join("hooks/pre-commit")
            .exists()
    );
    assert!(attempt.exists("target/hooks/pre-commit"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_sets_is_put_back_and_its_commit_stays() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let mut attempt = fixture.attempt().await;
    let verdict = attempt.entry(FREE, "echo b > a").await;
    assert!(verdict.breaches.is_empty());
    let config = std::fs::read(attempt.prepared.dirs.git().join("config")).unwrap();
    let script = "git config core.hooksPath .husky/_; git add -A; git commit -qm done";
    let verdict = attempt.entry(COMMAND, script).await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    assert!(verdict.head_moved);
    assert_eq!(verdict.metadata_restored.len(), 1);
    let now = std::fs::read(attempt.prepared.dirs.git().join("config")).unwrap();
    assert_eq!(config, now);
    assert_eq!(attempt.git(&["log", "-1", "--format=%s"]), "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_a_killed_git_left_is_no_breach_and_goes() {
    let fixture = Fixture::new(&[("src/a", "a\n")]);
    let mut attempt = fixture.attempt().await;
    let verdict = attempt
        .entry(
            BUILDER,
            "touch $GIT_DIR_OF_ATTEMPT/index.lock; echo b > src/a",
        )
        .await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    assert!(!attempt.prepared.dirs.git().join("index.lock").exists());
    let verdict = attempt
        .entry(COMMAND, "git add -A; git commit -qm ok")
        .await;
    assert!(
        verdict.head_moved && verdict.breaches.is_empty(),
        "{verdict:?}"
    );
}
