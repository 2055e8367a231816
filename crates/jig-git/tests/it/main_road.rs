//! From a lender to a delivered branch.

use jig_git::changes::{ChangeKind, GuardOptions, Selection};

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_travels_from_capture_to_the_lenders_branch() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[
        ("src/a.txt", "one\n"),
        ("b.txt", "two\n"),
        (".gitignore", "*.log\n"),
    ]);
    let before_refs = git_in(&lender, &["for-each-ref"]);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    assert_eq!(git_in(attempt.tree(), &["status", "--porcelain"]), "");

    let (_, after, changes) = attempt
        .around(|tree| {
            write(tree.join("src/a.txt"), "one and a half\n");
            write(tree.join("src/new.txt"), "new\n");
            write(tree.join("debug.log"), "noise\n");
            std::fs::remove_file(tree.join("b.txt")).unwrap();
        })
        .await;
    let kinds: Vec<_> = changes
        .paths
        .iter()
        .map(|c| (c.path.to_string(), c.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            ("b.txt".to_owned(), ChangeKind::Removed),
            ("debug.log".to_owned(), ChangeKind::Added),
            ("src/a.txt".to_owned(), ChangeKind::Modified),
            ("src/new.txt".to_owned(), ChangeKind::Added),
        ]
    );
    assert!(attempt.guard.is_ignored(&path("debug.log"), false));
    assert!(changes.metadata.is_empty(), "{:?}", changes.metadata);

    let repo = &attempt.repo;
    let snapshot = repo
        .snapshot_commit(&attempt.guard, &after, "snapshot", NOW)
        .await
        .unwrap();
    let names = git_in(
        attempt.tree(),
        &["diff", "--name-status", "HEAD", &snapshot.to_string()],
    );
    assert_eq!(names, "D\tb.txt\nM\tsrc/a.txt\nA\tsrc/new.txt");
    repo.checkpoint(&attempt.guard, &after, "build", 1, NOW)
        .await
        .unwrap();

    let head = repo
        .commit_result(&attempt.guard, &after, "feat: change", NOW)
        .await
        .unwrap()
        .unwrap();
    let check = repo
        .check_commit(&attempt.guard, &after, head)
        .await
        .unwrap();
    assert!(
        check.differing.is_empty() && check.uncommitted.is_empty(),
        "{check:?}"
    );
    let imported = repo.import(head).await.unwrap();
    assert_eq!(repo.import(head).await.unwrap(), imported);
    assert_eq!(
        git_in(&lender, &["rev-parse", &imported.branch]),
        head.to_string()
    );
    let log = git_in(
        &lender,
        &[
            "log",
            "--format=%an <%ae> %at %s",
            &format!("main..{}", imported.branch),
        ],
    );
    assert_eq!(log, "jig <jig@localhost> 1700000000 feat: change");
    git_in(&lender, &["fsck", "--strict"]);

    repo.release_pin().await.unwrap();
    git_in(
        &lender,
        &[
            "update-ref",
            "-d",
            &format!("refs/heads/{}", imported.branch),
        ],
    );
    assert_eq!(git_in(&lender, &["for-each-ref"]), before_refs);
    assert_eq!(git_in(&lender, &["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_brings_back_what_was_there_before_the_entry() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("src/a.txt", "one\n"), ("b.txt", "two\n")]);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let (_, dirty, _) = attempt
        .around(|tree| write(tree.join("src/a.txt"), "by the first phase\n"))
        .await;
    write(attempt.tree().join("src/a.txt"), "by a dying agent\n");
    write(attempt.tree().join("junk/x"), "junk\n");
    std::fs::remove_file(attempt.tree().join("b.txt")).unwrap();
    let after = attempt.guard.capture(Some(&dirty)).await.unwrap();
    let report = attempt
        .guard
        .restore(&dirty, &after, Selection::All)
        .await
        .unwrap();
    assert!(report.is_complete(), "{:?}", report.remaining);
    assert!(attempt.guard.compare(&dirty, &report.capture).is_empty());
    assert_eq!(
        std::fs::read(attempt.tree().join("src/a.txt")).unwrap(),
        b"by the first phase\n"
    );
    assert_eq!(
        std::fs::read(attempt.tree().join("b.txt")).unwrap(),
        b"two\n"
    );
    assert!(!attempt.tree().join("junk").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_object_of_the_lender_does_not_become_the_result() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n")]);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    // Where the object of the coming content would lie, another one lies.
    let loose = |id: &str| lender.join(".git/objects").join(&id[..2]).join(&id[2..]);
    write(fixture.dir.path().join("wanted"), "two\n");
    write(fixture.dir.path().join("evil"), "evil\n");
    let name = |file: &str, args: &[&str]| {
        let file = fixture.dir.path().join(file);
        git_in(&lender, &[args, &[file.to_str().unwrap()]].concat())
    };
    let wanted = name("wanted", &["hash-object", "--no-filters"]);
    let evil = name("evil", &["hash-object", "--no-filters", "-w"]);
    std::fs::create_dir_all(loose(&wanted).parent().unwrap()).unwrap();
    std::fs::copy(loose(&evil), loose(&wanted)).unwrap();

    let (_, capture, _) = attempt
        .around(|tree| write(tree.join("a.txt"), "two\n"))
        .await;
    let result = attempt
        .repo
        .commit_result(&attempt.guard, &capture, "work", NOW)
        .await
        .unwrap()
        .unwrap();
    let imported = attempt.repo.import(result).await;
    // Either nothing is delivered, or what was judged.
    match imported {
        Ok(imported) => assert_eq!(
            git_in(&lender, &["show", &format!("{}:a.txt", imported.branch)]),
            "two"
        ),
        Err(_) => assert_eq!(git_in(&lender, &["for-each-ref", "refs/heads/jig"]), ""),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_no_memory_holds_is_named_and_not_committed() {
    let fixture = Fixture::new();
    let lender = fixture.lender(&[("a.txt", "one\n")]);
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let most = jig_protocol::limits::CONTENT_BUDGET_BYTES as u64;
    let (_, capture, _) = attempt
        .around(|tree| {
            let file = std::fs::File::create(tree.join("huge")).unwrap();
            file.set_len(most + 1).unwrap();
        })
        .await;
    let refused = attempt
        .repo
        .commit_result(&attempt.guard, &capture, "work", NOW)
        .await
        .unwrap_err();
    let text = refused.to_string();
    assert!(text.starts_with("huge has 2147483649 bytes"), "{text}");
    assert_eq!(
        git_in(attempt.tree(), &["rev-parse", "HEAD"]),
        git_in(&lender, &["rev-parse", "HEAD"])
    );
}
