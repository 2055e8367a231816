//! After a death: exactly what it was, whoever had made it so.

use jig_engine::boundary::EntryKind;

use crate::fixture::{Attempt, BUILDER, COMMAND, FREE, Fixture};

/// Every path with its kind, mode and content, times aside.
fn listing(attempt: &Attempt) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![attempt.tree().to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_file() {
                format!("{:?}", std::fs::read(&path).unwrap())
            } else if meta.is_symlink() {
                format!("{:?}", std::fs::read_link(&path).unwrap())
            } else {
                pending.push(path.clone());
                String::new()
            };
            use std::os::unix::fs::PermissionsExt;
            let mode = meta.permissions().mode();
            found.push(format!("{} {mode:o} {content}", path.display()));
        }
    }
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_entry_is_undone_exactly_also_over_earlier_work() {
    let fixture = Fixture::new(&[
        ("src/a.rs", "a\n"),
        ("src/b.rs", "b\n"),
        (".gitignore", "*.log\n"),
    ]);
    let mut attempt = fixture.attempt().await;
    let earlier = "echo dirty >> src/a.rs; rm src/b.rs; echo n > src/new; ln -s a.rs src/link; \
        chmod +x src/new; echo l > x.log; mkdir src/empty; mkdir -p target; echo o > target/o";
    let verdict = attempt.entry(FREE, earlier).await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    let (tree, head) = (listing(&attempt), attempt.git(&["rev-parse", "HEAD"]));

    let before = attempt
        .boundary
        .before_entry(EntryKind::Agent)
        .await
        .unwrap();
    attempt.act(
        "echo more >> src/a.rs; echo back > src/b.rs; rm src/new src/link; rmdir src/empty; \
         mkdir -p deep/er; echo x > deep/er/x; chmod 700 src; echo ll > x.log; echo oo > target/p; \
         echo changed > target/o; mkfifo pipe; git add -A; git commit -qm half; \
         git update-index --assume-unchanged src/a.rs",
    );
    let undone = attempt.boundary.restore(&before).await.unwrap();
    assert!(undone.breaches.is_empty(), "{undone:?}");
    assert_eq!(listing(&attempt), tree);
    assert_eq!(attempt.git(&["rev-parse", "HEAD"]), head);

    // The fresh entry starts from there and is judged alone.
    let verdict = attempt.entry(BUILDER, "echo again >> src/a.rs").await;
    assert_eq!(crate::fixture::paths(&verdict.touched), ["src/a.rs"]);
    assert_eq!(attempt.read("src/a.rs"), "a\ndirty\nagain\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_that_a_dead_agent_changed_is_put_back_and_told() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let mut attempt = fixture.attempt().await;
    let config = std::fs::read(attempt.prepared.dirs.git().join("config")).unwrap();
    let before = attempt
        .boundary
        .before_entry(EntryKind::Agent)
        .await
        .unwrap();
    attempt.act("git config core.fsmonitor /bin/false; echo x > a");
    let undone = attempt.boundary.restore(&before).await.unwrap();
    assert_eq!(undone.breaches.len(), 1);
    let now = std::fs::read(attempt.prepared.dirs.git().join("config")).unwrap();
    assert_eq!(now, config);
    assert_eq!(attempt.read("a"), "a\n");
    assert!(attempt.boundary.is_tampered());
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_hold_the_tree_and_move_no_branch() {
    let fixture = Fixture::new(&[("src/a.rs", "a\n"), (".gitignore", "*.log\n")]);
    let mut attempt = fixture.attempt().await;
    let head = attempt.git(&["rev-parse", "HEAD"]);
    let verdict = attempt
        .entry(
            FREE,
            "echo b > src/a.rs; echo l > x.log; mkdir target; echo o > target/o",
        )
        .await;
    assert!(verdict.breaches.is_empty());
    let commit = attempt
        .boundary
        .checkpoint("build", 1)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        attempt.git(&["rev-parse", "refs/jig/checkpoints/build-1"]),
        commit
    );
    assert_eq!(attempt.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(
        attempt.git(&["diff", "--name-only", "HEAD", &commit]),
        "src/a.rs"
    );
    // Moving jig's own references is nothing that an entry did.
    let verdict = attempt.entry(COMMAND, "true").await;
    assert_eq!(verdict, jig_engine::boundary::Verdict::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_running_entry_are_seen_without_being_judged() {
    let fixture = Fixture::new(&[
        ("src/a.rs", "a\n"),
        ("gone", "g\n"),
        (".gitignore", "*.log\n"),
    ]);
    let mut attempt = fixture.attempt().await;
    let before = attempt
        .boundary
        .before_entry(EntryKind::Agent)
        .await
        .unwrap();
    attempt.act(
        "echo b > src/a.rs; rm gone; echo l > x.log; mkdir -p target empty; echo o > target/o",
    );
    let changed = attempt.boundary.changed_since_entry(&before).await.unwrap();
    let seen: Vec<String> = changed
        .paths
        .iter()
        .map(|(p, g)| format!("{p} {g:?}"))
        .collect();
    assert_eq!(seen, ["gone Yes", "src/a.rs No"]);
    let verdict = attempt.judge(BUILDER, &before).await;
    let undone = crate::fixture::breaches(&verdict);
    let undone: Vec<&str> = undone.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(undone, ["empty", "gone", "x.log"]);
}
