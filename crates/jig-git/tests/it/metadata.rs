//! What steers git, in the attempt's repository and in the lender.

use std::path::{Path, PathBuf};

use jig_git::changes::{GuardOptions, MetadataKind, Owner};

use crate::support::*;

/// Does `act` (tree, git directory, lender), expects exactly these metadata
/// changes, puts everything back and expects none.
async fn seen_and_put_back(
    act: impl FnOnce(&Path, &Path, &Path),
    expected: &[(Owner, MetadataKind)],
) {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n")]);
    write(lender.join(".git/included"), "[user]\n\tname = Op\n");
    git_in(&lender, &["config", "include.path", "included"]);
    git_in(&lender, &["tag", "v1"]);
    git_in(&lender, &["pack-refs", "--all"]);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let git_dir = attempt.repo.git_dir().to_owned();
    let (before, after, changes) = attempt.around(|tree| act(tree, &git_dir, &lender)).await;
    let found: Vec<_> = changes
        .metadata
        .iter()
        .map(|change| (change.owner, change.kind))
        .collect();
    assert_eq!(found, expected, "{:?}", changes.metadata);
    for owner in [Owner::Attempt, Owner::Lender] {
        attempt
            .guard
            .put_back_metadata(&before, &after, owner, &std::collections::BTreeSet::new())
            .await
            .unwrap();
    }
    let again = attempt.guard.capture(Some(&after)).await.unwrap();
    let left = attempt.guard.compare(&before, &again).metadata;
    assert!(left.is_empty(), "{left:?}");
    git_in(&lender, &["rev-parse", "v1", "main"]);
    git_in(attempt.tree(), &["rev-parse", "--verify", "HEAD"]);
}

use MetadataKind::{Alternates, Config, Head, Hook, Info, Lock, Pointer, Reference, State};
use Owner::{Attempt, Lender};

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_hook() {
    let act = |_: &Path, git: &Path, lender: &Path| {
        write(git.join("hooks/post-checkout"), "#!/bin/sh\n");
        write(lender.join(".git/hooks/pre-commit"), "#!/bin/sh\n");
    };
    seen_and_put_back(act, &[(Attempt, Hook), (Lender, Hook)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_configuration_and_a_changed_included_file() {
    let act = |_: &Path, git: &Path, lender: &Path| {
        git_in(git, &["config", "core.hooksPath", ".husky/_"]);
        write(
            lender.join(".git/included"),
            "[core]\n\tsshCommand = evil\n",
        );
    };
    seen_and_put_back(act, &[(Attempt, Config), (Lender, Config)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_included_file_that_was_not_there() {
    let act = |_: &Path, git: &Path, lender: &Path| {
        write(git.join("config.worktree"), "[core]\n\tfsmonitor = evil\n");
        std::fs::remove_file(lender.join(".git/included")).unwrap();
    };
    seen_and_put_back(act, &[(Attempt, Config), (Lender, Config)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_grafts_and_alternates() {
    let act = |_: &Path, git: &Path, lender: &Path| {
        write(git.join("info/exclude"), "*\n");
        write(git.join("info/attributes"), "* filter=evil\n");
        write(git.join("objects/info/alternates"), "/tmp/evil\n");
        write(lender.join(".git/info/attributes"), "* filter=evil\n");
    };
    // In the order of paths: `info/…` before `objects/…`.
    seen_and_put_back(
        act,
        &[
            (Attempt, Info),
            (Attempt, Info),
            (Attempt, Alternates),
            (Lender, Info),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pointer_of_the_tree() {
    let act = |tree: &Path, _: &Path, _: &Path| write(tree.join(".git"), "gitdir: /tmp/evil\n");
    seen_and_put_back(act, &[(Attempt, Pointer)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_head_and_references() {
    let act = |tree: &Path, _: &Path, lender: &Path| {
        git_in(tree, &["checkout", "--quiet", "-b", "other"]);
        git_in(
            tree,
            &["commit", "--quiet", "--allow-empty", "-m", "by an agent"],
        );
        git_in(lender, &["tag", "v2"]);
        git_in(lender, &["tag", "-d", "v1"]);
        git_in(lender, &["update-ref", "refs/jig/own", "main"]);
    };
    let expected = [
        (Attempt, Head),
        (Attempt, Reference),
        (Lender, Reference),
        (Lender, Reference),
    ];
    seen_and_put_back(act, &expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn packing_references_is_no_change() {
    let act = |tree: &Path, _: &Path, lender: &Path| {
        git_in(tree, &["pack-refs", "--all"]);
        git_in(lender, &["pack-refs", "--all"]);
    };
    seen_and_put_back(act, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn git_may_tidy_up_where_the_operator_works() {
    let act = |_: &Path, _: &Path, lender: &Path| {
        git_in(lender, &["gc", "--quiet"]);
        assert!(lender.join(".git/info/refs").exists());
        write(lender.join(".git/objects/maintenance.lock"), "");
        std::os::unix::fs::symlink("/tmp", lender.join(".git/objects/aa")).unwrap();
    };
    seen_and_put_back(act, &[(Lender, Alternates)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_done_operations_and_left_locks() {
    let act = |_: &Path, git: &Path, _: &Path| {
        std::fs::create_dir(git.join("rebase-merge")).unwrap();
        write(git.join("index.lock"), "");
        write(git.join("MERGE_HEAD"), "0000\n");
    };
    seen_and_put_back(act, &[(Attempt, State), (Attempt, Lock), (Attempt, State)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_where_objects_belong() {
    let act = |_: &Path, git: &Path, _: &Path| {
        std::os::unix::fs::symlink("/tmp", git.join("objects/aa")).unwrap();
    };
    seen_and_put_back(act, &[(Attempt, Alternates)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_commit_is_seen_and_told_from_one_that_was_rewound() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n")]);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let base = attempt.repo.base().commit().unwrap();
    let (before, after, changes) = attempt
        .around(|tree| {
            write(tree.join("a.txt"), "two\n");
            git_in(tree, &["commit", "--quiet", "-am", "by an agent"]);
        })
        .await;
    assert_eq!(changes.metadata.len(), 1);
    let change = &changes.metadata[0];
    assert_eq!(change.name, PathBuf::from(attempt.repo.branch().unwrap()));
    assert_eq!(change.before, Some(base.to_string()));
    let head = attempt.repo.head_commit().await.unwrap().unwrap();
    assert_eq!(change.after, Some(head.to_string()));
    assert_eq!(before.head(), after.head());
    assert!(
        attempt
            .repo
            .is_fast_forward(Some(base), head)
            .await
            .unwrap()
    );
    assert!(
        !attempt
            .repo
            .is_fast_forward(Some(head), base)
            .await
            .unwrap()
    );
    let check = attempt
        .repo
        .check_commit(&attempt.guard, &after, head)
        .await
        .unwrap();
    assert!(check.differing.is_empty(), "{check:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_blob_is_found_in_the_commit() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n"), (".gitignore", "hidden\n")]);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let (_, after, changes) = attempt
        .around(|tree| {
            write(tree.parent().unwrap().join("evil"), "evil\n");
            let blob = git_in(tree, &["hash-object", "-w", "../evil"]);
            for name in ["a.txt", "ghost.txt", "hidden"] {
                let info = format!("100644,{blob},{name}");
                git_in(tree, &["update-index", "--add", "--cacheinfo", &info]);
            }
        })
        .await;
    assert!(changes.is_empty(), "an index is no evidence: {changes:?}");
    // A commit phase that trusts the index delivers it; that is seen …
    git_in(attempt.tree(), &["commit", "--quiet", "-m", "commit phase"]);
    let head = attempt.repo.head_commit().await.unwrap().unwrap();
    let check = attempt
        .repo
        .check_commit(&attempt.guard, &after, head)
        .await
        .unwrap();
    assert_eq!(
        check.differing,
        [path("a.txt"), path("ghost.txt"), path("hidden")]
    );
    // … and with the index written anew there is nothing to deliver.
    git_in(attempt.tree(), &["update-ref", "HEAD", "HEAD~1"]);
    attempt
        .repo
        .write_index(&attempt.guard, &after)
        .await
        .unwrap();
    assert_eq!(git_in(attempt.tree(), &["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_written_anew_has_no_flags_and_knows_clean_files() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let (_, after, _) = attempt
        .around(|tree| {
            write(tree.join("a.txt"), "edited\n");
            git_in(tree, &["update-index", "--skip-worktree", "b.txt"]);
            write(tree.join("b.txt"), "hidden\n");
            git_in(tree, &["add", "a.txt"]);
        })
        .await;
    attempt
        .repo
        .write_index(&attempt.guard, &after)
        .await
        .unwrap();
    assert_eq!(
        git_in(attempt.tree(), &["status", "--porcelain"]),
        " M a.txt
 M b.txt"
    );
    assert_eq!(
        git_in(attempt.tree(), &["ls-files", "-v"]),
        "H a.txt\nH b.txt"
    );
    git_in(attempt.tree(), &["fsck"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stays_is_not_put_back() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n")]);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let branch = attempt.repo.branch().unwrap().to_owned();
    let (before, after, _) = attempt
        .around(|tree| {
            git_in(
                tree,
                &[
                    "commit",
                    "--quiet",
                    "--allow-empty",
                    "-m",
                    "by a code phase",
                ],
            );
            git_in(tree, &["config", "core.hooksPath", ".husky/_"]);
            git_in(tree, &["tag", "stray"]);
        })
        .await;
    let stays = std::collections::BTreeSet::from([PathBuf::from(&branch)]);
    attempt
        .guard
        .put_back_metadata(&before, &after, Owner::Attempt, &stays)
        .await
        .unwrap();
    let again = attempt.guard.capture(Some(&after)).await.unwrap();
    let left = attempt.guard.compare(&before, &again).metadata;
    let names: Vec<_> = left
        .iter()
        .map(|change| change.name.display().to_string())
        .collect();
    assert_eq!(names, [branch]);
}
