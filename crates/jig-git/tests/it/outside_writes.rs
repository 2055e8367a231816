//! Writes that a role may not make: each is seen, named, and undone exactly.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use jig_git::changes::{ChangeKind, EntryKind, GuardOptions, Hazard, Selection};
use jig_protocol::repo_path::RepoPath;

use crate::support::*;

const FILES: &[(&str, &str)] = &[
    ("src/a.txt", "one\n"),
    ("src/b.txt", "two\n"),
    ("keep.txt", "keep\n"),
    ("run.sh", "#!/bin/sh\n"),
    (".gitignore", "ignored/\n*.log\n"),
];

/// Does `act`, expects exactly the paths `expected` to have changed, restores
/// them, and expects the tree to be what it was.
async fn seen_and_undone(act: impl FnOnce(&Path), expected: &[&[u8]]) {
    let fixture = Fixture::new();
    let lender = fixture.lender(FILES);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let (before, after, changes) = attempt.around(act).await;
    let found: BTreeSet<RepoPath> = changes
        .paths
        .iter()
        .map(|change| change.path.clone())
        .collect();
    let wanted: BTreeSet<RepoPath> = expected
        .iter()
        .map(|path| RepoPath::from_bytes(*path))
        .collect();
    assert_eq!(found, wanted);
    let report = attempt
        .guard
        .restore(&before, &after, Selection::Only(&found))
        .await
        .unwrap();
    assert!(report.is_complete(), "{:?}", report.remaining);
    assert!(attempt.guard.compare(&before, &report.capture).is_empty());
    assert_eq!(
        git_in(attempt.tree(), &["status", "--porcelain", "--ignored"]),
        ""
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_file() {
    seen_and_undone(
        |tree| write(tree.join("new/deep/file"), "x"),
        &[b"new/deep/file"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit() {
    seen_and_undone(
        |tree| write(tree.join("src/a.txt"), "ONE\n"),
        &[b"src/a.txt"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_the_same_size_with_its_old_times() {
    let act = |tree: &Path| {
        let file = tree.join("src/a.txt");
        let old = std::fs::metadata(&file).unwrap().modified().unwrap();
        write(&file, "oNe\n");
        std::fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_modified(old)
            .unwrap();
    };
    seen_and_undone(act, &[b"src/a.txt"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion() {
    seen_and_undone(
        |tree| std::fs::remove_file(tree.join("src/a.txt")).unwrap(),
        &[b"src/a.txt"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deletion_of_a_directory() {
    let act = |tree: &Path| std::fs::remove_dir_all(tree.join("src")).unwrap();
    seen_and_undone(act, &[b"src/a.txt", b"src/b.txt"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_out_and_a_rename_in() {
    let act = |tree: &Path| std::fs::rename(tree.join("src/a.txt"), tree.join("moved")).unwrap();
    seen_and_undone(act, &[b"src/a.txt", b"moved"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_staged_rename() {
    let act = |tree: &Path| drop(git_in(tree, &["mv", "src/a.txt", "src/c.txt"]));
    seen_and_undone_with_index(act, &["src/a.txt", "src/c.txt"]).await;
}

/// As [`seen_and_undone`], where the agent also staged things.
async fn seen_and_undone_with_index(act: impl FnOnce(&Path), expected: &[&str]) {
    let fixture = Fixture::new();
    let lender = fixture.lender(FILES);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let (before, after, changes) = attempt.around(act).await;
    assert_eq!(paths(&changes), expected);
    let report = attempt
        .guard
        .restore(&before, &after, Selection::All)
        .await
        .unwrap();
    assert!(report.is_complete(), "{:?}", report.remaining);
    attempt
        .repo
        .write_index(&attempt.guard, &report.capture)
        .await
        .unwrap();
    assert_eq!(git_in(attempt.tree(), &["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mode_change() {
    seen_and_undone(|tree| chmod(tree.join("run.sh"), 0o755), &[b"run.sh"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_symlink_and_one_that_leads_outside() {
    let act = |tree: &Path| {
        std::os::unix::fs::symlink("keep.txt", tree.join("inner")).unwrap();
        std::os::unix::fs::symlink("/etc", tree.join("outer")).unwrap();
    };
    seen_and_undone(act, &[b"inner", b"outer"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tracked_directory_replaced_by_a_link_out_of_the_tree() {
    let outside = tempfile::tempdir().unwrap();
    write(outside.path().join("a.txt"), "outside\n");
    let target = outside.path().to_owned();
    let act = move |tree: &Path| {
        std::fs::remove_dir_all(tree.join("src")).unwrap();
        std::os::unix::fs::symlink(target, tree.join("src")).unwrap();
    };
    seen_and_undone(act, &[b"src", b"src/a.txt", b"src/b.txt"]).await;
    assert_eq!(
        std::fs::read(outside.path().join("a.txt")).unwrap(),
        b"outside\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ignored_files() {
    let act = |tree: &Path| {
        write(tree.join("x.log"), "x");
        write(tree.join("ignored/y"), "y");
    };
    seen_and_undone(act, &[b"x.log", b"ignored/y"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_any_bytes() {
    let names: [&[u8]; 6] = [
        b"new\nline",
        b"caf\xe9",
        b"--force",
        b"a -> b",
        b"\"quoted\"",
        b":(glob)*",
    ];
    let act = |tree: &Path| {
        for name in names {
            write(tree.join(os(name)), "x");
        }
    };
    seen_and_undone(act, &names).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_directory() {
    seen_and_undone(
        |tree| std::fs::create_dir(tree.join("empty")).unwrap(),
        &[b"empty"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_deeper_than_handles_are_held() {
    let act = |tree: &Path| {
        let mut path = tree.to_owned();
        for _ in 0..200 {
            path.push("d");
            std::fs::create_dir(&path).unwrap();
        }
        chmod(&path, 0o000);
    };
    let deepest = ["d"; 200].join("/");
    seen_and_undone(act, &[deepest.as_bytes()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_hidden_from_git_status() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let act = |tree: &Path| {
            git_in(tree, &["update-index", flag, "src/a.txt"]);
            write(tree.join("src/a.txt"), "hidden\n");
            assert_eq!(git_in(tree, &["status", "--porcelain"]), "");
        };
        seen_and_undone_with_index(act, &["src/a.txt"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_behind_a_new_ignore_line() {
    let fixture = Fixture::new();
    let lender = fixture.lender(FILES);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let (_, _, changes) = attempt
        .around(|tree| {
            write(tree.join(".gitignore"), "secret.txt\n");
            write(tree.join("secret.txt"), "x");
        })
        .await;
    assert_eq!(paths(&changes), [".gitignore", "secret.txt"]);
    assert!(
        !attempt.guard.is_ignored(&path("secret.txt"), false),
        "only the base's rules count"
    );
    assert!(attempt.guard.is_ignored(&path("a/x.log"), false));
    assert!(attempt.guard.is_ignored(&path("ignored/deep/y"), false));
}

#[tokio::test(flavor = "multi_thread")]
async fn specials_and_repositories_are_hazards() {
    let fixture = Fixture::new();
    let lender = fixture.lender(FILES);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let (before, after, changes) = attempt
        .around(|tree| {
            assert!(
                std::process::Command::new("mkfifo")
                    .arg(tree.join("pipe"))
                    .status()
                    .unwrap()
                    .success()
            );
            drop(std::os::unix::net::UnixListener::bind(tree.join("sock")).unwrap());
            git_in(tree, &["init", "--quiet", "nested"]);
            write(tree.join("evil/.GIT/config"), "x");
            write(tree.join("src/git~1"), "x");
            std::os::unix::fs::symlink("x", tree.join(".gitmodules")).unwrap();
        })
        .await;
    for change in &changes.paths {
        let wanted = match change.path.as_bytes() {
            b"pipe" | b"sock" => Hazard::Special,
            b".gitmodules" => Hazard::LinkedGitmodules,
            _ => Hazard::DotGit,
        };
        assert_eq!(change.hazard, Some(wanted), "{}", change.path);
        assert_eq!(change.kind, ChangeKind::Added);
    }
    assert!(
        paths(&changes)
            .iter()
            .any(|path| path == "nested/.git/HEAD"),
        "{:?}",
        paths(&changes)
    );
    assert_eq!(after.get(&path("pipe")).unwrap().kind, EntryKind::Fifo);
    let all: BTreeSet<RepoPath> = changes
        .paths
        .iter()
        .map(|change| change.path.clone())
        .collect();
    let report = attempt
        .guard
        .restore(&before, &after, Selection::Only(&all))
        .await
        .unwrap();
    assert!(report.is_complete(), "{:?}", report.remaining);
    assert!(!attempt.tree().join("nested").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_is_undone_by_the_agent_is_transient() {
    let fixture = Fixture::new();
    let lender = fixture.lender(FILES);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let (_, _, changes) = attempt
        .around(|tree| {
            write(tree.join("src/a.txt"), "briefly\n");
            write(tree.join("src/a.txt"), "one\n");
        })
        .await;
    assert!(changes.is_empty(), "{changes:?}");
    assert_eq!(changes.transient, [path("src/a.txt")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_output_is_only_what_the_base_does_not_track() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("target/tracked.txt", "t\n"), ("a", "a\n")]);
    let options = GuardOptions {
        build_outputs: vec!["target/**".parse().unwrap()],
        ..GuardOptions::default()
    };
    let attempt = fixture.attempt(&lender, 1, options).await;
    let (_, after, changes) = attempt
        .around(|tree| {
            write(tree.join("target/tracked.txt"), "edited\n");
            write(tree.join("target/debug/out.o"), "o");
        })
        .await;
    assert_eq!(
        paths(&changes),
        ["target/debug/out.o", "target/tracked.txt"]
    );
    assert!(attempt.guard.is_build_output(&path("target/debug/out.o")));
    assert!(!attempt.guard.is_build_output(&path("target/tracked.txt")));
    let commit = attempt
        .repo
        .snapshot_commit(&attempt.guard, &after, "x", NOW)
        .await
        .unwrap();
    let names = git_in(
        attempt.tree(),
        &["diff", "--name-only", "HEAD", &commit.to_string()],
    );
    assert_eq!(names, "target/tracked.txt");
}

#[tokio::test(flavor = "multi_thread")]
async fn content_beyond_the_budget_is_not_restored_and_said_so() {
    let fixture = Fixture::new();
    let lender = fixture.lender(FILES);
    let options = GuardOptions {
        content_bytes: 10,
        ..GuardOptions::default()
    };
    let attempt = fixture.attempt(&lender, 1, options).await;
    let (_, before, _) = attempt
        .around(|tree| write(tree.join("big"), "more than ten bytes"))
        .await;
    assert_eq!(attempt.guard.fingerprint_only(&before), [path("big")]);
    write(attempt.tree().join("big"), "changed");
    write(attempt.tree().join("src/a.txt"), "changed");
    let after = attempt.guard.capture(Some(&before)).await.unwrap();
    let report = attempt
        .guard
        .restore(&before, &after, Selection::All)
        .await
        .unwrap();
    let remaining: Vec<_> = report
        .remaining
        .iter()
        .map(|remains| remains.path.clone())
        .collect();
    assert_eq!(remaining, [path("big")]);
    assert_eq!(report.restored, [path("src/a.txt")]);
    assert_eq!(
        std::fs::read(attempt.tree().join("src/a.txt")).unwrap(),
        b"one\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn build_outputs_leave_room_for_source() {
    let fixture = Fixture::new();
    let lender = fixture.lender(FILES);
    let options = GuardOptions {
        content_bytes: 100,
        build_outputs: vec!["target/**".parse().unwrap()],
        ..GuardOptions::default()
    };
    let attempt = fixture.attempt(&lender, 1, options).await;
    let (_, built, _) = attempt
        .around(|tree| {
            std::fs::create_dir(tree.join("target")).unwrap();
            write(tree.join("target/a"), "a".repeat(70));
            write(tree.join("target/b"), "b".repeat(20));
        })
        .await;
    assert_eq!(attempt.guard.fingerprint_only(&built), [path("target/b")]);
    write(attempt.tree().join("src/new.txt"), "n".repeat(25));
    let edited = attempt.guard.capture(Some(&built)).await.unwrap();
    assert_eq!(attempt.guard.fingerprint_only(&edited), [path("target/b")]);
    // What the latest capture does not need makes room.
    write(attempt.tree().join("target/a"), "c".repeat(30));
    let rebuilt = attempt.guard.capture(Some(&edited)).await.unwrap();
    assert!(
        attempt
            .guard
            .fingerprint_only(&rebuilt)
            .contains(&path("target/a"))
    );
    attempt.guard.forget_content_except(&rebuilt).await.unwrap();
    let again = attempt.guard.capture(Some(&rebuilt)).await.unwrap();
    assert_eq!(attempt.guard.fingerprint_only(&again), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn permitted_changes_survive_the_undoing_of_others() {
    let fixture = Fixture::new();
    let lender = fixture.lender(FILES);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let (before, after, _) = attempt
        .around(|tree| {
            write(tree.join("src/a.txt"), "permitted\n");
            write(tree.join("new/ok"), "permitted\n");
            write(tree.join("new/bad"), "breach\n");
        })
        .await;
    let breach = BTreeSet::from([path("new/bad")]);
    let report = attempt
        .guard
        .restore(&before, &after, Selection::Only(&breach))
        .await
        .unwrap();
    assert!(report.is_complete());
    assert_eq!(report.restored, [path("new/bad")]);
    let left = attempt.guard.compare(&before, &report.capture);
    assert_eq!(paths(&left), ["new/ok", "src/a.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_root_is_not_captured() {
    let fixture = Fixture::new();
    let lender = fixture.lender(FILES);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    attempt.guard.capture(None).await.unwrap();
    let moved = attempt.tree().with_file_name("elsewhere");
    std::fs::rename(attempt.tree(), &moved).unwrap();
    std::fs::create_dir(attempt.tree()).unwrap();
    let error = attempt.guard.capture(None).await.unwrap_err();
    assert!(
        matches!(error, jig_git::changes::CaptureError::RootReplaced { .. }),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_a_tree_follows_no_link_and_stops_at_no_mode() {
    let outside = tempfile::tempdir().unwrap();
    write(outside.path().join("kept"), "kept");
    let fixture = Fixture::new();
    let lender = fixture.lender(FILES);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    std::os::unix::fs::symlink(outside.path(), attempt.tree().join("node_modules")).unwrap();
    write(attempt.tree().join("locked/file"), "x");
    chmod(attempt.tree().join("locked"), 0o500);
    let mut deep = attempt.tree().to_owned();
    for _ in 0..150 {
        deep.push("deep");
        std::fs::create_dir(&deep).unwrap();
    }
    jig_git::remove_tree(attempt.tree()).unwrap();
    assert!(!attempt.tree().exists());
    assert_eq!(
        std::fs::metadata(outside.path().join("kept"))
            .unwrap()
            .permissions()
            .mode()
            & 0o400,
        0o400
    );
    jig_git::remove_tree(attempt.tree()).unwrap();
}
