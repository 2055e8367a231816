//! After a jig that died.

use jig_engine::host::{Mode, ReclaimError, reclaim};
use jig_process::ProcessIdentity;

use crate::fixture::{FREE, Fixture};

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_is_stopped_first_and_the_tree_is_kept() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let mut attempt = fixture.attempt().await;
    let verdict = attempt.entry(FREE, "echo half > a").await;
    assert!(verdict.breaches.is_empty());
    let dirs = attempt.prepared.dirs.clone();
    std::fs::write(dirs.role_home("builder").join("login"), "secret").unwrap();
    let mut left = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let identity = ProcessIdentity::of(left.id()).unwrap().unwrap();
    attempt.prepared.manifest.record(&identity).unwrap();
    // The dead jig holds nothing any more.
    drop(attempt);
    let waiter = std::thread::spawn(move || left.wait().unwrap());
    let reclaimed = reclaim(&dirs.root).await.unwrap();
    assert!(!waiter.join().unwrap().success());
    assert_eq!(reclaimed.stopped, 1);
    let tree = reclaimed.tree.unwrap();
    assert_eq!(
        std::fs::read_to_string(tree.path.join("a")).unwrap(),
        "half\n"
    );
    for dir in dirs.transient() {
        assert!(!dir.exists(), "{}", dir.display());
    }
    assert!(dirs.git().exists());
    // Acting twice is the same as acting once.
    let again = reclaim(&dirs.root).await.unwrap();
    assert_eq!((again.stopped, again.tree.is_some()), (0, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_only_has_the_pid_is_left_alone() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let attempt = fixture.attempt().await;
    let mut innocent = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let json = format!(
        r#"{{"boot_id":"another boot","pid":{},"start_time":1}}"#,
        innocent.id()
    );
    let stale: ProcessIdentity = serde_json::from_str(&json).unwrap();
    attempt.prepared.manifest.record(&stale).unwrap();
    let reclaimed = reclaim(&attempt.prepared.dirs.root).await.unwrap();
    assert_eq!(reclaimed.stopped, 0);
    assert!(innocent.try_wait().unwrap().is_none(), "it still runs");
    innocent.kill().unwrap();
    innocent.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_checkout_is_named_and_not_touched() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let attempt = fixture
        .attempt_in(Mode::InPlace { allow_dirty: false })
        .await;
    attempt.act("echo half > a");
    let before = fixture.operator_state();
    let reclaimed = reclaim(&attempt.prepared.dirs.root).await.unwrap();
    let tree = reclaimed.tree.unwrap();
    assert!(tree.in_place);
    assert_eq!(
        tree.path.canonicalize().unwrap(),
        fixture.repo.path().canonicalize().unwrap()
    );
    assert_eq!(fixture.operator_state(), before);
    assert_eq!(fixture.repo.read("a"), "half\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_removed_while_nobody_knows_what_runs() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let attempt = fixture.attempt().await;
    let dirs = &attempt.prepared.dirs;
    std::fs::write(dirs.manifest(), "{").unwrap();
    let error = reclaim(&dirs.root).await.unwrap_err();
    assert!(matches!(error, ReclaimError::Manifest(_)), "{error}");
    assert!(dirs.command_home().exists());
    let gone = fixture.config.data_dir.join("attempts/none");
    let nothing = reclaim(&gone).await.unwrap();
    assert_eq!((nothing.stopped, nothing.tree), (0, None));
}
