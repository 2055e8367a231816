//! After a jig that died.

use jig_engine::host::{Mode, ReclaimError, reclaim};
use jig_process::ProcessIdentity;

use crate::fixture::{FREE, Fixture, PLAIN};

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

/// What the operator staged since is theirs as well.
#[tokio::test(flavor = "multi_thread")]
async fn the_operators_files_and_index_are_kept_beside_and_named() {
    let fixture = Fixture::new(&[("a", "a\n"), ("clean", "c\n")]);
    fixture.repo.write("staged", "by the operator\n");
    fixture.repo.git(&["add", "staged"]);
    fixture.repo.write("a", "half a thought\n");
    fixture.repo.write("own/idea", "an idea\n");
    std::os::unix::fs::symlink("nowhere", fixture.repo.path().join("link")).unwrap();
    let allow_dirty = Mode::InPlace { allow_dirty: true };
    let attempt = fixture.attempt_in(allow_dirty).await;
    let dirs = attempt.prepared.dirs.clone();
    // An agent changed and removed what only the operator had.
    attempt.act("echo theirs > a; rm staged own/idea link");
    drop(attempt);
    let reason = reclaim(&dirs.root).await.unwrap().tree.unwrap().reason;
    assert!(!reason.contains("index"), "it is what it was: {reason}");
    let (_, copies) = reason.rsplit_once("before the run are in ").unwrap();
    let copy = |name: &str| std::fs::read(std::path::Path::new(copies).join(name)).unwrap();
    assert_eq!(copy("a"), b"half a thought\n");
    assert_eq!(copy("staged"), b"by the operator\n");
    assert_eq!(copy("own/idea"), b"an idea\n");
    let link = std::fs::read_link(std::path::Path::new(copies).join("link")).unwrap();
    assert_eq!(link, std::path::Path::new("nowhere"));
    assert!(!std::path::Path::new(copies).join("clean").exists());
    fixture.repo.git(&["reset", "--quiet"]);
    let before = fixture.operator_state();
    let reason = reclaim(&dirs.root).await.unwrap().tree.unwrap().reason;
    let (_, copy) = reason.rsplit_once("kept as ").unwrap();
    assert_eq!(fixture.operator_state(), before);
    std::fs::copy(copy, fixture.repo.path().join(".git/index")).unwrap();
    let staged = fixture.repo.git(&["diff", "--cached", "--name-only"]);
    assert_eq!(staged, "staged");
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_stay_only_where_nothing_has_to_be_taken_out_of_them() {
    let secretive = PLAIN.replace("writes:", "env: [KEY], sensitive_env: [KEY], writes:");
    for (text, kept) in [(PLAIN, true), (secretive.as_str(), false)] {
        let fixture = Fixture::new(&[("a", "a\n")]).defined(text);
        let attempt = fixture.attempt().await;
        let dirs = attempt.prepared.dirs.clone();
        drop(attempt);
        std::fs::write(dirs.handoff().join("note"), "for the next\n").unwrap();
        for again in [false, true] {
            let reason = reclaim(&dirs.root).await.unwrap().tree.unwrap().reason;
            assert_eq!(
                reason.contains("1 handoff notes"),
                !kept && !again,
                "{reason}"
            );
            let note = std::fs::read_to_string(dirs.logs().join("handoff/note"));
            assert_eq!(note.ok().as_deref(), kept.then_some("for the next\n"));
            assert!(!dirs.handoff().exists());
        }
    }
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
