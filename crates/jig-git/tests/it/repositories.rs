//! Repositories of every kind: they work, or say clearly why not.

use std::path::Path;

use jig_git::changes::GuardOptions;
use jig_git::repository::{Operation, RefFormat};
use jig_git::{AttemptRepo, AttemptRepoError, Base, Head, Repository, RepositoryError};

use crate::support::*;

/// The whole road on one lender: prepare, edit, commit, import.
async fn works(fixture: &Fixture, lender: &Path, n: u8) -> String {
    let attempt = fixture.attempt(lender, n, GuardOptions::default()).await;
    let (_, after, changes) = attempt
        .around(|tree| write(tree.join("added.txt"), "added\n"))
        .await;
    assert_eq!(paths(&changes), ["added.txt"]);
    let head = attempt
        .repo
        .commit_result(&attempt.guard, &after, "m", NOW)
        .await
        .unwrap()
        .unwrap();
    let check = attempt
        .repo
        .check_commit(&attempt.guard, &after, head)
        .await
        .unwrap();
    assert!(
        check.differing.is_empty() && check.uncommitted.is_empty(),
        "{check:?}"
    );
    let imported = attempt.repo.import(head).await.unwrap();
    assert_eq!(
        git_in(lender, &["show", &format!("{}:added.txt", imported.branch)]),
        "added"
    );
    assert_eq!(
        git_in(lender, &["rev-parse", &imported.branch]),
        head.to_string()
    );
    attempt.repo.release_pin().await.unwrap();
    let refs = git_in(lender, &["for-each-ref", "--format=%(refname)"]);
    let pin = format!("refs/jig/pins/{}", attempt_id(n));
    assert!(!refs.contains(&pin), "{refs}");
    head.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_repository_starts_from_the_empty_tree() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[]);
    let repository = fixture.repository(&lender).await;
    assert_eq!(
        repository.head,
        Head::Unborn {
            name: "refs/heads/main".into()
        }
    );
    assert!(matches!(
        repository.resolve_base(&fixture.git, None).await.unwrap(),
        Base::Empty { .. }
    ));
    let head = works(&fixture, &lender, 1).await;
    assert_eq!(git_in(&lender, &["rev-list", "--count", &head]), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_repository_lends_and_is_not_worked_in() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n")]);
    let bare = fixture.dir.path().join("bare.git");
    git_in(
        fixture.dir.path(),
        &["clone", "--quiet", "--bare", "lender", "bare.git"],
    );
    let repository = fixture.repository(&bare).await;
    assert!(repository.is_bare());
    works(&fixture, &bare, 1).await;
    let error = AttemptRepo::in_place(&fixture.git, &repository, fixture.dir.path())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("bare"), "{error}");
    drop(lender);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_head_is_a_base() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n")]);
    git_in(&lender, &["checkout", "--quiet", "--detach"]);
    let repository = fixture.repository(&lender).await;
    assert!(matches!(repository.head, Head::Detached { .. }));
    works(&fixture, &lender, 1).await;
    assert_eq!(
        git_in(&lender, &["rev-parse", "--abbrev-ref", "HEAD"]),
        "HEAD"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shallow_clone_lends_what_it_has() {
    let fixture = Fixture::new();
    let origin = fixture.lender(&[("a.txt", "one\n")]);
    write(origin.join("a.txt"), "two\n");
    fixture.commit_all(&origin, "second");
    let url = format!("file://{}", origin.display());
    git_in(
        fixture.dir.path(),
        &["clone", "--quiet", "--depth=1", &url, "shallow"],
    );
    let shallow = fixture.dir.path().join("shallow");
    assert!(fixture.repository(&shallow).await.is_shallow);
    works(&fixture, &shallow, 1).await;
    git_in(&shallow, &["fsck"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_clone_works_or_names_what_is_missing() {
    let fixture = Fixture::new();
    let origin = fixture.lender(&[("a.txt", "one\n")]);
    git_in(&origin, &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", origin.display());
    git_in(
        fixture.dir.path(),
        &[
            "clone",
            "--quiet",
            "--no-checkout",
            "--filter=blob:none",
            &url,
            "partial",
        ],
    );
    let partial = fixture.dir.path().join("partial");
    let repository = fixture.repository(&partial).await;
    assert!(repository.is_partial);
    let plan = fixture.plan(&repository, 1).await;
    let error = AttemptRepo::prepare(&fixture.git, &repository, &plan)
        .await
        .unwrap_err();
    assert!(
        matches!(error, AttemptRepoError::MissingObjects { .. }),
        "{error}"
    );
    assert!(!plan.directory.join("tree").exists() && !plan.directory.join("git").exists());
    git_in(&partial, &["checkout", "--quiet", "main"]);
    works(&fixture, &partial, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sha256_repository_has_long_names_everywhere() {
    let fixture = Fixture::new();
    let lender = fixture.lender_with(&["--object-format=sha256"], &[("a.txt", "one\n")]);
    let head = works(&fixture, &lender, 1).await;
    assert_eq!(head.len(), 64);
    git_in(&lender, &["fsck", "--strict"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_with_reftables_is_read_and_its_own_changes_seen() {
    let fixture = Fixture::new();
    let probe = git_command(
        fixture.dir.path(),
        &["init", "--quiet", "--ref-format=reftable", "probe"],
    )
    .output()
    .unwrap();
    if !probe.status.success() {
        println!("skipped: this git has no reftables");
        return;
    }
    let lender = fixture.lender_with(&["--ref-format=reftable"], &[("a.txt", "one\n")]);
    let repository = fixture.repository(&lender).await;
    assert_eq!(repository.ref_format, RefFormat::Reftable);
    assert!(matches!(repository.head, Head::Branch { ref name, .. } if name == "refs/heads/main"));
    works(&fixture, &lender, 1).await;
    let attempt = fixture.attempt(&lender, 2, GuardOptions::default()).await;
    let (_, _, changes) = attempt
        .around(|_| drop(git_in(&lender, &["branch", "planted"])))
        .await;
    let names: Vec<_> = changes
        .metadata
        .iter()
        .map(|change| change.name.display().to_string())
        .collect();
    assert_eq!(names, ["refs/heads/planted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_linked_worktree_lends_and_stays_as_it_is() {
    let fixture = Fixture::new();
    let main = fixture.lender(&[("a.txt", "one\n")]);
    git_in(
        &main,
        &["worktree", "add", "--quiet", "-b", "side", "../linked"],
    );
    let linked = fixture.dir.path().join("linked");
    let repository = fixture.repository(&linked).await;
    assert_eq!(
        repository.common_dir,
        std::fs::canonicalize(main.join(".git")).unwrap()
    );
    assert!(matches!(repository.head, Head::Branch { ref name, .. } if name == "refs/heads/side"));
    works(&fixture, &linked, 1).await;
    assert_eq!(git_in(&linked, &["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lender_that_borrows_itself_lends_the_whole_chain() {
    let fixture = Fixture::new();
    fixture.lender(&[("a.txt", "one\n")]);
    let mut from = "lender".to_owned();
    for n in 0..7 {
        let to = format!("borrower-{n}");
        git_in(
            fixture.dir.path(),
            &["clone", "--quiet", "--shared", &from, &to],
        );
        if n >= 4 {
            // git itself follows only a few steps; give it the first one too.
            let file = fixture
                .dir
                .path()
                .join(&to)
                .join(".git/objects/info/alternates");
            let mut text = std::fs::read_to_string(&file).unwrap();
            text.push_str(&format!(
                "{}\n",
                fixture.dir.path().join("lender/.git/objects").display()
            ));
            write(file, text);
        }
        from = to;
    }
    works(&fixture, &fixture.dir.path().join(&from), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_of_any_bytes_links_and_subdirectories() {
    let fixture = Fixture::new();
    let odd = fixture.dir.path().join(os(b"it's \"odd\" \xff"));
    std::fs::create_dir_all(&odd).unwrap();
    git_in(&odd, &["init", "--quiet"]);
    write(odd.join("deep/er/a.txt"), "one\n");
    fixture.commit_all(&odd, "base");
    let link = fixture.dir.path().join("link");
    std::os::unix::fs::symlink(&odd, &link).unwrap();
    works(&fixture, &odd, 1).await;
    works(&fixture, &link, 2).await;
    works(&fixture, &odd.join("deep/er"), 3).await;
    works(&fixture, &odd.join(".git"), 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dirty_checkout_is_listed_and_left_alone() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n"), (".gitignore", "*.log\n")]);
    write(lender.join("a.txt"), "dirty\n");
    write(lender.join(os(b"caf\xe9 \n.txt")), "untracked\n");
    write(lender.join("x.log"), "ignored\n");
    let repository = fixture.repository(&lender).await;
    let dirty: Vec<_> = repository.dirty_paths(&fixture.git).await.unwrap();
    assert_eq!(
        dirty
            .iter()
            .map(|p| p.as_bytes().to_vec())
            .collect::<Vec<_>>(),
        [b"a.txt".to_vec(), b"caf\xe9 \n.txt".to_vec()]
    );
    works(&fixture, &lender, 1).await;
    assert_eq!(std::fs::read(lender.join("a.txt")).unwrap(), b"dirty\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_in_the_way_is_named_before_anything_is_made() {
    for name in ["jig", "JIG", "Jig/x"] {
        let fixture = Fixture::new();
        let lender = fixture.lender(&[("a.txt", "one\n")]);
        git_in(&lender, &["branch", name]);
        let repository = fixture.repository(&lender).await;
        let plan = fixture.plan(&repository, 1).await;
        let before = git_in(&lender, &["for-each-ref"]);
        let error = AttemptRepo::prepare(&fixture.git, &repository, &plan)
            .await
            .unwrap_err();
        let AttemptRepoError::Repository(RepositoryError::BranchInTheWay { branch, .. }) = error
        else {
            panic!("{name}: {error}");
        };
        assert_eq!(branch, name);
        assert_eq!(git_in(&lender, &["for-each-ref"]), before);
        assert_eq!(std::fs::read_dir(&plan.directory).unwrap().count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_repository_says_so() {
    let fixture = Fixture::new();
    let nothing = fixture.dir.path().join("nothing");
    let error = Repository::discover(&fixture.git, &nothing)
        .await
        .unwrap_err();
    assert!(
        matches!(error, RepositoryError::Unreadable { .. }),
        "{error}"
    );
    std::fs::create_dir(&nothing).unwrap();
    let error = Repository::discover(&fixture.git, &nothing)
        .await
        .unwrap_err();
    assert!(
        matches!(error, RepositoryError::NotARepository { ref path } if *path == nothing),
        "{error}"
    );
    write(nothing.join(".git"), "gitdir: /nowhere\n");
    let error = Repository::discover(&fixture.git, &nothing)
        .await
        .unwrap_err();
    assert!(matches!(error, RepositoryError::Broken { .. }), "{error}");
    let lender = fixture.lender(&[("a.txt", "one\n")]);
    let repository = fixture.repository(&lender).await;
    for revision in ["no-such", "--help", &"0".repeat(40)] {
        let error = repository
            .resolve_base(&fixture.git, Some(revision))
            .await
            .unwrap_err();
        assert!(
            matches!(error, RepositoryError::UnknownRevision { .. }),
            "{revision}: {error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_in_the_middle_of_something_is_not_worked_in() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n")]);
    git_in(&lender, &["checkout", "--quiet", "-b", "side"]);
    write(lender.join("a.txt"), "side\n");
    fixture.commit_all(&lender, "side");
    git_in(&lender, &["checkout", "--quiet", "main"]);
    write(lender.join("a.txt"), "main\n");
    fixture.commit_all(&lender, "main");
    for (args, operation, quit) in [
        (
            &["merge", "side"][..],
            Operation::Merge,
            &["merge", "--abort"][..],
        ),
        (
            &["rebase", "side"],
            Operation::Rebase,
            &["rebase", "--abort"],
        ),
        (
            &["cherry-pick", "side"],
            Operation::CherryPick,
            &["cherry-pick", "--abort"],
        ),
        (
            &["revert", "HEAD~1"],
            Operation::Revert,
            &["revert", "--abort"],
        ),
        (
            &["bisect", "start"],
            Operation::Bisect,
            &["bisect", "reset"],
        ),
    ] {
        git_command(&lender, args).output().unwrap();
        let repository = fixture.repository(&lender).await;
        assert_eq!(repository.operation, Some(operation));
        let error = AttemptRepo::in_place(&fixture.git, &repository, fixture.dir.path())
            .await
            .unwrap_err();
        assert!(error.to_string().contains(operation.as_str()), "{error}");
        git_in(&lender, quit);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn working_in_place_guards_the_checkout_itself() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    write(lender.join("b.txt"), "dirty before\n");
    let repository = fixture.repository(&lender).await;
    let directory = fixture.dir.path().join("own");
    let repo = AttemptRepo::in_place(&fixture.git, &repository, &directory)
        .await
        .unwrap();
    let guard = repo.guard(GuardOptions::default()).unwrap();
    let before = guard.capture(None).await.unwrap();
    write(lender.join("a.txt"), "edited\n");
    write(lender.join("b.txt"), "edited too\n");
    let after = guard.capture(Some(&before)).await.unwrap();
    assert_eq!(paths(&guard.compare(&before, &after)), ["a.txt", "b.txt"]);
    let report = guard
        .restore(&before, &after, jig_git::changes::Selection::All)
        .await
        .unwrap();
    assert!(report.is_complete(), "{:?}", report.remaining);
    assert_eq!(
        std::fs::read(lender.join("b.txt")).unwrap(),
        b"dirty before\n"
    );
    assert_eq!(git_in(&lender, &["status", "--porcelain"]), " M b.txt");
}

#[tokio::test(flavor = "multi_thread")]
async fn submodules_and_lfs_are_told_and_touch_nothing() {
    let fixture = Fixture::new();
    let inner = fixture.dir.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    git_in(&inner, &["init", "--quiet"]);
    write(inner.join("x"), "x");
    fixture.commit_all(&inner, "inner");
    let lender = fixture.lender(&[
        ("a.bin", "pointer\n"),
        (
            ".gitattributes",
            "*.bin filter=lfs diff=lfs merge=lfs -text\n",
        ),
    ]);
    let url = inner.display().to_string();
    git_in(&lender, &["submodule", "--quiet", "add", &url, "sub"]);
    fixture.commit_all(&lender, "submodule");
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    assert_eq!(
        attempt
            .repo
            .pinned()
            .submodules()
            .iter()
            .collect::<Vec<_>>(),
        [&path("sub")]
    );
    assert_eq!(
        attempt.repo.pinned().lfs_attribute_files().unwrap(),
        [path(".gitattributes")]
    );
    assert_eq!(
        std::fs::read(attempt.tree().join("a.bin")).unwrap(),
        b"pointer\n"
    );
    let (_, after, changes) = attempt.around(|tree| write(tree.join("sub/y"), "y")).await;
    assert_eq!(
        changes.paths[0].hazard,
        Some(jig_git::changes::Hazard::InSubmodule)
    );
    let commit = attempt
        .repo
        .snapshot_commit(&attempt.guard, &after, "m", NOW)
        .await
        .unwrap();
    assert_eq!(
        git_in(
            attempt.tree(),
            &["diff", "--name-only", "HEAD", &commit.to_string()]
        ),
        ""
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_preparation_leaves_nothing() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n")]);
    let repository = fixture.repository(&lender).await;
    let plan = fixture.plan(&repository, 1).await;
    let before = git_in(&lender, &["for-each-ref"]);
    write(plan.directory.join("tree"), "in the way");
    let error = AttemptRepo::prepare(&fixture.git, &repository, &plan)
        .await
        .unwrap_err();
    assert!(
        matches!(error, AttemptRepoError::InTheWay { .. }),
        "{error}"
    );
    assert_eq!(git_in(&lender, &["for-each-ref"]), before);
    assert_eq!(
        std::fs::read(plan.directory.join("tree")).unwrap(),
        b"in the way"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_git_that_is_too_old_is_refused_with_its_version() {
    let fixture = Fixture::new();
    let program = fixture.dir.path().join("old-git");
    write(&program, "#!/bin/sh\necho git version 2.34.1\n");
    chmod(&program, 0o755);
    let mut config = jig_git::GitConfig::new(path_env());
    config.program = program;
    let error = jig_git::Git::new(config).check_version().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "git 2.34.1 is too old: 2.41 or newer is needed"
    );
    assert!(fixture.git.check_version().await.unwrap() >= (2, 41));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_attempts_prepared_at_once_do_not_disturb_each_other() {
    let fixture = std::sync::Arc::new(Fixture::new());
    let lender = fixture.lender(&[("a.txt", "one\n")]);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 1..=8 {
        let (fixture, lender) = (fixture.clone(), lender.clone());
        tasks.spawn(async move { works(&fixture, &lender, n).await });
    }
    let mut heads = std::collections::BTreeSet::new();
    while let Some(head) = tasks.join_next().await {
        heads.insert(head.unwrap());
    }
    assert_eq!(
        git_in(&lender, &["branch", "--list", "jig/*"])
            .lines()
            .count(),
        8
    );
}
