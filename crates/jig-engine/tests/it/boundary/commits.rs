//! What is committed is what was judged.

use crate::fixture::{Actor, Attempt, BUILDER, COMMAND, FREE, Fixture, READER, breaches};

const COMMITTER: Actor<'static> = Actor {
    commits: true,
    ..BUILDER
};

async fn attempt() -> (Fixture, Attempt) {
    let fixture = Fixture::new(&[("src/a.rs", "a\n"), ("b.txt", "b\n")]);
    let attempt = fixture.attempt().await;
    (fixture, attempt)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_may_not_commit_is_undone_with_its_commit() {
    let (_fixture, mut attempt) = attempt().await;
    let base = attempt.git(&["rev-parse", "HEAD"]);
    let verdict = attempt
        .entry(
            BUILDER,
            "echo evil > b.txt; git add -A; git commit -qm sneaky",
        )
        .await;
    let found = breaches(&verdict);
    assert!(
        found.contains(&("b.txt".into(), "restored".into())),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|(path, what)| path.starts_with("refs/heads/jig/") && what == "restored metadata"),
        "{found:?}"
    );
    assert_eq!(attempt.git(&["rev-parse", "HEAD"]), base);
    assert_eq!(attempt.read("b.txt"), "b\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_attempts_branch_moves_and_only_forward() {
    for (actor, script) in [
        (COMMITTER, "git branch other"),
        (
            COMMITTER,
            "git switch -qc other; echo b > src/a.rs; git commit -qam x",
        ),
        (COMMITTER, "git checkout -q --detach"),
        (COMMITTER, "git tag v1"),
        (COMMITTER, "git commit -q --amend -m rewritten"),
        (COMMAND, "git tag v1"),
        (COMMAND, "git switch -qc other"),
        (COMMAND, "git update-ref refs/heads/main HEAD"),
        (COMMAND, "git commit -q --amend -m rewritten"),
    ] {
        let (_fixture, mut attempt) = attempt().await;
        let (refs, head) = (
            attempt.git(&["for-each-ref"]),
            attempt.git(&["symbolic-ref", "HEAD"]),
        );
        let verdict = attempt.entry(actor, script).await;
        assert!(!verdict.breaches.is_empty(), "{script}");
        assert_eq!(attempt.git(&["for-each-ref"]), refs, "{script}");
        assert_eq!(attempt.git(&["symbolic-ref", "HEAD"]), head, "{script}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_commit_commits_what_is_in_the_tree() {
    let (_fixture, mut attempt) = attempt().await;
    let verdict = attempt
        .entry(
            COMMITTER,
            "echo c > src/c.rs; git add -A; git commit -qm c; echo d > src/d.rs",
        )
        .await;
    assert!(
        verdict.breaches.is_empty() && verdict.head_moved,
        "{verdict:?}"
    );
    // A later phase may edit what was committed, and commit something else.
    let verdict = attempt.entry(BUILDER, "echo cc > src/c.rs").await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    let verdict = attempt
        .entry(COMMAND, "git add src/d.rs; git commit -qm d")
        .await;
    assert!(
        verdict.breaches.is_empty() && verdict.head_moved,
        "{verdict:?}"
    );
    assert_eq!(attempt.boundary.final_check().await.unwrap(), []);
}

/// Writes a blob into the index at this path, and nothing into the tree.
fn plant(path: &str) -> String {
    format!(
        "id=$(echo evil | git hash-object -w --stdin); \
         git update-index --add --cacheinfo 100644,$id,{path}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_planted_in_the_index_is_a_breach() {
    for (actor, path) in [
        (BUILDER, "b.txt"),
        (BUILDER, "new.txt"),
        (READER, "src/a.rs"),
    ] {
        let (_fixture, mut attempt) = attempt().await;
        let verdict = attempt.entry(actor, &plant(path)).await;
        let outcome = "planted in the index, which nothing is committed from";
        assert_eq!(breaches(&verdict), [(path.to_owned(), outcome.to_owned())]);
        // Charged once, and to nobody else.
        let verdict = attempt.entry(actor, "git update-index -q --refresh").await;
        assert!(verdict.breaches.is_empty(), "{verdict:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_staged_is_no_breach_where_it_may_be_written_or_is_there() {
    let (_fixture, mut attempt) = attempt().await;
    for (actor, script) in [
        // An earlier state of the own work, and the index that is left behind.
        (BUILDER, "echo 1 > src/a.rs; git add -A; echo 2 > src/a.rs"),
        (READER, "git update-index -q --refresh || true"),
        (READER, "git add -A"),
        (READER, "git stash -q && git stash pop -q"),
        (READER, "git reset -q"),
        (READER, "rm $GIT_DIR_OF_ATTEMPT/index"),
        (READER, "git add -A; git rm -q --cached b.txt"),
        (
            READER,
            "head -c 100 /dev/urandom > $GIT_DIR_OF_ATTEMPT/index",
        ),
        (
            READER,
            "rm $GIT_DIR_OF_ATTEMPT/index; mkfifo $GIT_DIR_OF_ATTEMPT/index",
        ),
    ] {
        let verdict = attempt.entry(actor, script).await;
        let planted = breaches(&verdict)
            .into_iter()
            .any(|(_, outcome)| outcome.contains("planted"));
        assert!(!planted, "{script}: {verdict:?}");
        if verdict.breaches.is_empty() {
            continue;
        }
        assert!(
            script.contains("stash") || script.contains("mkfifo"),
            "{script}: {verdict:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_foreign_index_is_ever_committed() {
    let (_fixture, mut attempt) = attempt().await;
    let script = format!("{}; echo ok > src/a.rs", plant("src/new.rs"));
    let verdict = attempt.entry(BUILDER, &script).await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    let verdict = attempt
        .entry(COMMAND, "git add src; git commit -qm done")
        .await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    assert_eq!(attempt.git(&["show", "HEAD:src/a.rs"]), "ok");
    assert_eq!(
        attempt.git(&["ls-tree", "--name-only", "HEAD", "src/"]),
        "src/a.rs"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_holds_what_the_tree_does_not_is_a_breach() {
    let (_fixture, mut attempt) = attempt().await;
    let before = attempt.git(&["rev-parse", "HEAD"]);
    let script = "echo evil > src/a.rs; git add -A; git commit -qm evil; echo good > src/a.rs";
    for actor in [COMMITTER, COMMAND] {
        let verdict = attempt.entry(actor, script).await;
        assert_eq!(
            breaches(&verdict),
            [("src/a.rs".into(), "commit_differs_from_tree".into())]
        );
        assert_eq!(attempt.git(&["rev-parse", "HEAD"]), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn index_flags_hide_no_edit() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let (_fixture, mut attempt) = attempt().await;
        let script = format!("git update-index {flag} b.txt; echo evil > b.txt");
        let verdict = attempt.entry(BUILDER, &script).await;
        assert_eq!(breaches(&verdict), [("b.txt".into(), "restored".into())]);
        // Permitted, it is committed like anything else.
        let verdict = attempt.entry(FREE, &script).await;
        assert!(verdict.breaches.is_empty());
        let verdict = attempt
            .entry(COMMAND, "git add -A; git commit -qm all")
            .await;
        assert!(verdict.breaches.is_empty(), "{verdict:?}");
        assert_eq!(attempt.git(&["show", "HEAD:b.txt"]), "evil");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_compares_with_is_the_tree_not_the_branch() {
    let (_fixture, mut attempt) = attempt().await;
    let verdict = attempt
        .entry(
            BUILDER,
            "echo risky > src/a.rs; git update-index --assume-unchanged src/a.rs",
        )
        .await;
    assert!(verdict.breaches.is_empty());
    let before = attempt
        .boundary
        .before_entry(jig_engine::boundary::EntryKind::Code)
        .await
        .unwrap();
    let head = attempt.boundary.head_sha(&before).await.unwrap();
    // Also when a gate has looked at the tree meanwhile.
    attempt.act("echo meanwhile > b.txt");
    let meanwhile = attempt.boundary.changed_since_entry(&before).await.unwrap();
    assert_eq!(meanwhile.paths.len(), 1);
    assert_eq!(head, attempt.boundary.head_sha(&before).await.unwrap());
    attempt.git(&["checkout", "-q", "b.txt"]);
    let base = attempt.prepared.base_sha();
    assert_eq!(
        attempt.git(&["diff", "--name-only", &base, &head]),
        "src/a.rs"
    );
    let verdict = attempt.judge(COMMAND, &before).await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_between_entries_is_found_before_acceptance() {
    let (_fixture, mut attempt) = attempt().await;
    let verdict = attempt.entry(BUILDER, "echo ok > src/a.rs").await;
    assert!(verdict.breaches.is_empty());
    assert_eq!(attempt.boundary.final_check().await.unwrap(), []);
    attempt.act("echo late > b.txt");
    let found = attempt.boundary.final_check().await.unwrap();
    assert_eq!(crate::fixture::paths(&found), ["b.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_later_commit_takes_back_was_committed_all_the_same() {
    let (_fixture, mut attempt) = attempt().await;
    let before = attempt.git(&["rev-parse", "HEAD"]);
    let script = "echo secret > leak; git add leak; git commit -qm leak; \
        git rm -q leak; git commit -qm clean; echo ok > src/a.rs; git commit -qam ok";
    let verdict = attempt.entry(COMMITTER, script).await;
    let found = breaches(&verdict);
    assert!(!found.is_empty());
    assert!(
        found
            .iter()
            .all(|(path, what)| path == "leak" && what.contains("in commit")),
        "{found:?}"
    );
    assert_eq!(attempt.git(&["rev-parse", "HEAD"]), before);
    // Through a merge as well.
    let script = "git checkout -q --detach; echo s > leak2; git add leak2; git commit -qm side; \
        side=$(git rev-parse HEAD); git checkout -q -; echo two > src/a.rs; git commit -qam main; \
        git merge -q --no-ff -s ours -m merged $side";
    let verdict = attempt.entry(COMMITTER, script).await;
    let found = breaches(&verdict);
    assert!(
        found
            .iter()
            .any(|(path, what)| path == "leak2" && what.contains("in commit")),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_work_of_earlier_entries_may_be_committed_by_a_phase_that_writes_nothing() {
    let (_fixture, mut attempt) = attempt().await;
    let verdict = attempt
        .entry(FREE, "echo two > src/a.rs; echo new > added; rm b.txt")
        .await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    let committing = Actor {
        writes: Some(&[]),
        ..COMMAND
    };
    let verdict = attempt
        .entry(committing, "git add -A; git commit -qm all")
        .await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    assert!(verdict.head_moved);
    assert_eq!(attempt.git(&["show", "HEAD:added"]), "new");
    // Its own contents it may not commit, wherever it leaves the tree.
    let before = attempt.git(&["rev-parse", "HEAD"]);
    let script = "cp added kept; echo planted > added; git commit -qam planted; \
        cp kept added; rm kept; git commit -qam back";
    let committing = Actor {
        writes: Some(&["kept"]),
        ..COMMAND
    };
    let verdict = attempt.entry(committing, script).await;
    let found = breaches(&verdict);
    assert!(
        found
            .iter()
            .any(|(path, what)| path == "added" && what.contains("in commit")),
        "{found:?}"
    );
    assert_eq!(attempt.git(&["rev-parse", "HEAD"]), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn build_outputs_and_ignored_files_are_never_committed() {
    for actor in [COMMITTER, COMMAND] {
        let fixture = Fixture::new(&[("src/a.rs", "a\n"), (".gitignore", "*.log\n")]);
        let mut attempt = fixture.attempt().await;
        let base = attempt.git(&["rev-parse", "HEAD"]);
        // What adds all there is commits none of it.
        let verdict = attempt
            .entry(
                actor,
                "mkdir -p target/x; echo o > target/x/o; echo l > src/x.log; git add -A; \
                 git commit -q --allow-empty -m all",
            )
            .await;
        assert!(
            verdict.breaches.is_empty() && verdict.head_moved,
            "{verdict:?}"
        );
        let head = attempt.git(&["rev-parse", "HEAD"]);
        assert_eq!(attempt.git(&["diff", "--name-only", &base, &head]), "");
        // What insists is taken back, also from a history that removed it again.
        for (script, path, outcome) in [
            ("git add -f target", "target/x/o", "output_committed"),
            ("git add -f src/x.log", "src/x.log", "ignored_committed"),
            (
                "git add -f target; git commit -qm there; git rm -rq --cached target",
                "target/x/o",
                "output_committed",
            ),
        ] {
            let script = format!("git reset -q; {script}; git commit -qm it");
            let verdict = attempt.entry(actor, &script).await;
            assert_eq!(
                breaches(&verdict),
                [(path.to_owned(), outcome.to_owned())],
                "{script}"
            );
            assert_eq!(attempt.git(&["rev-parse", "HEAD"]), head, "{script}");
            assert!(attempt.exists("target/x/o") && attempt.exists("src/x.log"));
        }
    }
}
