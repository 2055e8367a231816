//! In the operator's checkout itself.

use jig_engine::boundary::EntryKind;
use jig_engine::host::{DisposePolicy, Mode, PrepareError, dispose};
use jig_protocol::outcome::PublishMarker;
use jig_testkit::Repo;

use crate::fixture::{BUILDER, COMMAND, FREE, Fixture, breaches, no_secrets};

const CLEAN: Mode = Mode::InPlace { allow_dirty: false };
const DIRTY: Mode = Mode::InPlace { allow_dirty: true };

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_worked_in_is_refused_and_left_alone() {
    let merging = Repo::with_files(&[("a", "a\n")]);
    merging.git(&["switch", "--quiet", "--create", "side"]);
    merging.write("a", "side\n");
    merging.commit("side");
    merging.git(&["switch", "--quiet", "main"]);
    merging.write("a", "main\n");
    merging.commit("main");
    assert!(
        !merging
            .try_git(&["merge", "--quiet", "side"])
            .status
            .success()
    );
    let dirty = Repo::with_files(&[("a", "a\n")]);
    dirty.write("a", "dirty\n");
    dirty.write("untracked", "u\n");
    for (repo, expected) in [
        (Repo::init(&["--bare", "--initial-branch=main"]), "bare"),
        (Repo::new(), "no commit"),
        (merging, "merge"),
        (dirty, "untracked"),
    ] {
        let fixture = Fixture::on(repo);
        let is_bare = !fixture.repo.path().join(".git").exists();
        let before = if is_bare {
            String::new()
        } else {
            fixture.operator_state()
        };
        // A merge is dirty too; what matters more is said.
        let mode = if expected == "untracked" {
            CLEAN
        } else {
            DIRTY
        };
        let error = fixture
            .try_prepare(mode, &fixture.repo.path())
            .await
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        if !is_bare {
            assert_eq!(fixture.operator_state(), before, "{expected}");
        }
        let attempts = fixture.config.data_dir.join("attempts");
        assert_eq!(std::fs::read_dir(attempts).map_or(0, Iterator::count), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_that_moved_since_admission_is_refused() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let first = fixture.repo.head();
    fixture.repo.write("a", "b\n");
    fixture.repo.commit("second");
    let spec = jig_engine::host::PrepareSpec {
        run_id: jig_protocol::ids::RunId::from_parts(crate::fixture::NOW, [1; 10]),
        job_id: jig_protocol::ids::JobId::from_parts(crate::fixture::NOW, [1; 10]),
        attempt_id: jig_protocol::ids::AttemptId::from_parts(crate::fixture::NOW, [1; 10]),
        attempt_number: 1,
        lender: &fixture.repo.path(),
        base: &first,
        mode: CLEAN,
        definition: &fixture.definition,
    };
    let error = jig_engine::host::prepare(&fixture.config, &spec)
        .await
        .unwrap_err();
    assert!(matches!(error, PrepareError::Moved { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_land_on_the_checked_out_branch_and_nothing_is_delivered() {
    let fixture = Fixture::new(&[("src/a.rs", "a\n")]);
    fixture.repo.git(&["config", "user.name", "Op"]);
    fixture
        .repo
        .git(&["config", "user.email", "op@example.org"]);
    let mut attempt = fixture.attempt_in(CLEAN).await;
    assert_eq!(attempt.prepared.branch.as_deref(), Some("refs/heads/main"));
    let verdict = attempt
        .entry(BUILDER, "echo b > src/a.rs; echo x > stray")
        .await;
    assert_eq!(breaches(&verdict), [("stray".into(), "deleted".into())]);
    let verdict = attempt
        .entry(COMMAND, "git add -A; git commit -qm done")
        .await;
    assert!(
        verdict.head_moved && verdict.breaches.is_empty(),
        "{verdict:?}"
    );
    assert_eq!(attempt.boundary.checkpoint("build", 1).await.unwrap(), None);
    let delivery = super::deliver::deliver(&fixture, &attempt).await.unwrap();
    assert_eq!(delivery.marker, PublishMarker::NotAttempted);
    let policy = DisposePolicy {
        accepted: true,
        changed: true,
        keep: false,
        unsafe_to_touch: false,
    };
    let disposed = dispose(&attempt.prepared, &no_secrets(), policy).await;
    assert_eq!((disposed.tree_kept, disposed.problems.len()), (None, 0));
    assert_eq!(fixture.repo.git(&["log", "--format=%s"]), "done\nfirst");
    assert_eq!(fixture.repo.status(), "");
    assert!(!fixture.repo.refs().contains("jig"));
}

#[tokio::test(flavor = "multi_thread")]
async fn dirty_files_and_the_index_come_back_exactly() {
    let fixture = Fixture::new(&[("src/a.rs", "a\n"), ("b", "b\n")]);
    fixture.repo.write("b", "dirty b\n");
    fixture.repo.write("src/a.rs", "staged\n");
    fixture.repo.git(&["add", "src/a.rs"]);
    fixture.repo.write("src/a.rs", "staged and edited\n");
    fixture.repo.write("untracked", "u\n");
    let status = fixture.repo.status();
    let mut attempt = fixture.attempt_in(DIRTY).await;

    let before = attempt
        .boundary
        .before_entry(EntryKind::Agent)
        .await
        .unwrap();
    attempt.act("echo x > b; rm untracked; echo y >> src/a.rs; git add -A");
    attempt.boundary.restore(&before).await.unwrap();
    assert_eq!(attempt.read("b"), "dirty b\n");
    assert_eq!(attempt.read("untracked"), "u\n");
    assert_eq!(attempt.read("src/a.rs"), "staged and edited\n");

    let verdict = attempt
        .entry(BUILDER, "git checkout -q -- b; rm untracked")
        .await;
    assert_eq!(verdict.breaches.len(), 2, "{verdict:?}");
    let verdict = attempt.entry(COMMAND, "git status > /dev/null").await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    let policy = DisposePolicy {
        accepted: false,
        changed: false,
        keep: false,
        unsafe_to_touch: false,
    };
    let disposed = dispose(&attempt.prepared, &no_secrets(), policy).await;
    assert!(disposed.problems.is_empty(), "{disposed:?}");
    assert_eq!(fixture.repo.status(), status);
    assert_eq!(fixture.repo.git(&["show", ":src/a.rs"]), "staged");
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_of_the_checkout_is_watched_and_put_back() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let config = std::fs::read(fixture.repo.path().join(".git/config")).unwrap();
    let mut attempt = fixture.attempt_in(CLEAN).await;
    let verdict = attempt
        .entry(FREE, "git config core.fsmonitor /bin/false; git branch other; echo b > a; git commit -qam x --author='A <a@b>' || true")
        .await;
    assert!(verdict.breaches.len() >= 2, "{verdict:?}");
    assert!(attempt.boundary.is_tampered());
    let now = std::fs::read(fixture.repo.path().join(".git/config")).unwrap();
    assert_eq!(now, config);
    assert!(!fixture.repo.refs().contains("refs/heads/other"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_attempts_are_never_in_one_checkout_at_the_same_time() {
    let fixture = Fixture::new(&[("a.rs", "a\n")]);
    let before = fixture.operator_state();
    let path = fixture.repo.path();
    let first = fixture.try_prepare(CLEAN, &path).await.unwrap();
    // Of another data directory: what they share is the checkout alone.
    let elsewhere = tempfile::tempdir().unwrap();
    let mut config = fixture.config.clone();
    config.data_dir = elsewhere.path().join("data");
    let second = fixture.try_prepare_in(&config, DIRTY, &path).await;
    assert!(
        matches!(&second, Err(PrepareError::Occupied { path }) if *path == fixture.repo.path()),
        "{second:?}"
    );
    assert_eq!(fixture.operator_state(), before);
    assert!(!config.data_dir.join("attempts").exists());
    // Trees of their own disturb nobody.
    fixture
        .try_prepare_in(&config, Mode::OwnTree, &path)
        .await
        .unwrap();
    drop(first);
    config.data_dir = elsewhere.path().join("later");
    fixture.try_prepare_in(&config, DIRTY, &path).await.unwrap();
}
