//! What an entry may and may not write.

use jig_engine::boundary::Verdict;

use crate::fixture::{Attempt, BUILDER, FREE, Fixture, READER, breaches, paths};

async fn attempt() -> (Fixture, Attempt) {
    let fixture = Fixture::new(&[
        ("src/a.rs", "a\n"),
        ("keep.txt", "keep\n"),
        ("dir/inner.txt", "inner\n"),
        ("run.sh", "#!/bin/sh\n"),
        (".gitignore", "*.log\nbuild/\n"),
    ]);
    let attempt = fixture.attempt().await;
    (fixture, attempt)
}

/// Asserts that every path is a breach with this outcome, and that git sees
/// nothing changed.
fn assert_undone(attempt: &Attempt, verdict: &Verdict, expected: &[(&str, &str)]) {
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(path, outcome)| ((*path).to_owned(), (*outcome).to_owned()))
        .collect();
    assert_eq!(breaches(verdict), expected);
    assert_eq!(attempt.git(&["status", "--porcelain", "--ignored"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_write_outside_is_undone_and_named() {
    for (script, expected) in [
        ("echo x > new.txt", &[("new.txt", "deleted")][..]),
        ("echo x >> keep.txt", &[("keep.txt", "restored")]),
        ("rm keep.txt", &[("keep.txt", "restored")]),
        ("chmod 600 keep.txt", &[("keep.txt", "restored")]),
        ("chmod +x keep.txt", &[("keep.txt", "restored")]),
        ("ln -s /etc/passwd link", &[("link", "deleted")]),
        (
            "rm keep.txt; ln -s run.sh keep.txt",
            &[("keep.txt", "restored")],
        ),
        ("echo x > trace.log", &[("trace.log", "deleted")]),
        (
            "mkdir -p build/x; echo x > build/x/y",
            &[("build/x/y", "deleted")],
        ),
        ("mkdir empty", &[("empty", "deleted")]),
        ("rm -r dir", &[("dir/inner.txt", "restored")]),
        (
            "rm -r dir; echo x > dir",
            &[("dir", "restored"), ("dir/inner.txt", "restored")],
        ),
        (
            "rm -r dir; ln -s /tmp dir",
            &[("dir", "restored"), ("dir/inner.txt", "restored")],
        ),
        (
            "ln keep.txt hard",
            &[("hard", "deleted"), ("keep.txt", "restored")],
        ),
        (
            "printf x > \"$(printf 'new\\nline')\"",
            &[("\"new\\nline\"", "deleted")],
        ),
        (
            "printf x > \"$(printf 'bad\\377')\"",
            &[("\"bad\\377\"", "deleted")],
        ),
        (
            "printf x > 'with \"quotes\" and spaces'",
            &[("with \"quotes\" and spaces", "deleted")],
        ),
        ("printf x > ./-rf", &[("-rf", "deleted")]),
        ("printf x > ':(glob)*'", &[(":(glob)*", "deleted")]),
    ] {
        let (_fixture, mut attempt) = attempt().await;
        let verdict = attempt.entry(BUILDER, script).await;
        assert_undone(&attempt, &verdict, expected);
        assert_eq!(attempt.read("keep.txt"), "keep\n", "{script}");
        assert!(verdict.touched.is_empty(), "{script}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn renames_are_two_paths_whether_staged_or_not() {
    for stage in ["", "git add -A;"] {
        let (_fixture, mut attempt) = attempt().await;
        let inside = format!("mv src/a.rs src/b.rs; {stage}");
        let verdict = attempt.entry(BUILDER, &inside).await;
        assert_eq!(paths(&verdict.touched), ["src/a.rs", "src/b.rs"]);
        assert!(verdict.breaches.is_empty(), "{verdict:?}");

        let out = format!("mv src/b.rs moved.rs; {stage}");
        let verdict = attempt.entry(BUILDER, &out).await;
        assert_eq!(breaches(&verdict), [("moved.rs".into(), "deleted".into())]);
        assert_eq!(paths(&verdict.touched), ["src/b.rs"]);
        assert!(!attempt.exists("moved.rs"));

        let into = format!("mv keep.txt src/keep.txt; {stage}");
        let verdict = attempt.entry(BUILDER, &into).await;
        assert_eq!(breaches(&verdict), [("keep.txt".into(), "restored".into())]);
        assert_eq!(attempt.read("keep.txt"), "keep\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn permitted_and_forbidden_changes_are_told_apart() {
    let (_fixture, mut attempt) = attempt().await;
    let script =
        "echo b > src/b.rs; echo x > stray; echo y >> run.sh; mkdir src/new; echo z > src/new/z";
    let verdict = attempt.entry(BUILDER, script).await;
    assert_eq!(paths(&verdict.touched), ["src/b.rs", "src/new/z"]);
    assert_eq!(
        breaches(&verdict),
        [
            ("run.sh".to_owned(), "restored".to_owned()),
            ("stray".to_owned(), "deleted".to_owned())
        ]
    );
    assert_eq!(attempt.read("src/new/z"), "z\n");
    let total = attempt.boundary.changed_paths_total();
    assert_eq!(
        paths(&total.into_iter().collect::<Vec<_>>()),
        ["src/b.rs", "src/new/z"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_an_earlier_phase_is_as_protected_as_a_tracked_one() {
    let (_fixture, mut attempt) = attempt().await;
    let verdict = attempt
        .entry(FREE, "printf one > note; printf two >> keep.txt")
        .await;
    assert_eq!(paths(&verdict.touched), ["keep.txt", "note"]);
    // As many lines and bytes as before.
    let script = "printf eno > note; printf 'kepp\\ntwo' > keep.txt";
    let verdict = attempt.entry(BUILDER, script).await;
    assert_eq!(verdict.breaches.len(), 2);
    assert_eq!(attempt.read("note"), "one");
    assert_eq!(attempt.read("keep.txt"), "keep\ntwo");
    // Reverting somebody's work is a change like any other.
    let verdict = attempt
        .entry(BUILDER, "git checkout -q -- keep.txt; rm note")
        .await;
    assert_eq!(
        breaches(&verdict),
        [
            ("keep.txt".to_owned(), "restored".to_owned()),
            ("note".to_owned(), "restored".to_owned())
        ]
    );
    assert_eq!(attempt.read("keep.txt"), "keep\ntwo");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_allowlist_lets_in_what_no_commit_can_hold() {
    for (script, first) in [
        ("mkfifo pipe", "pipe"),
        ("git init -q nest; echo x > nest/f", "nest/.git"),
        ("mkdir -p sub/.GIT; echo x > sub/.GIT/config", "sub/.GIT"),
        ("echo x > 'git~1'", "git~1"),
        (
            "mkdir -p .claude; echo '{}' > .claude/settings.json",
            ".claude/settings.json",
        ),
        (
            "mkdir -p .claude/hooks; echo x > .claude/hooks/pre",
            ".claude/hooks/pre",
        ),
        ("echo '{}' > .mcp.json", ".mcp.json"),
        (
            "mkdir .codex; echo x > .codex/config.toml",
            ".codex/config.toml",
        ),
        ("mkdir p; ln -s ../p .claude", ".claude"),
    ] {
        for writes in [None, Some(["**"].as_slice())] {
            let (_fixture, mut attempt) = attempt().await;
            let verdict = attempt
                .entry(crate::fixture::Actor { writes, ..FREE }, script)
                .await;
            let found = breaches(&verdict);
            assert!(
                found.iter().any(|(path, _)| path.starts_with(first)),
                "{script}: {found:?}"
            );
            assert!(
                found.iter().all(|(_, outcome)| outcome == "deleted"),
                "{found:?}"
            );
            assert!(!attempt.exists(first), "{script}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_may_not_even_write_and_write_back() {
    let (_fixture, mut attempt) = attempt().await;
    let script =
        "cp keep.txt /tmp/jig-$$; echo x > keep.txt; cat /tmp/jig-$$ > keep.txt; rm /tmp/jig-$$";
    let verdict = attempt.entry(FREE, script).await;
    assert_eq!(paths(&verdict.transient), ["keep.txt"]);
    assert!(verdict.breaches.is_empty());
    let verdict = attempt.entry(READER, script).await;
    assert_eq!(breaches(&verdict), [("keep.txt".into(), "restored".into())]);
    let verdict = attempt.entry(READER, "cat keep.txt > /dev/null").await;
    assert_eq!(verdict, Verdict::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn ignored_paths_are_judged_and_kept_out_of_what_changed() {
    let (_fixture, mut attempt) = attempt().await;
    let verdict = attempt
        .entry(
            FREE,
            "echo x > a.log; mkdir build; echo y > build/z; echo n > note",
        )
        .await;
    assert_eq!(paths(&verdict.ignored), ["a.log", "build/z"]);
    assert_eq!(paths(&verdict.touched), ["note"]);
    let total = attempt.boundary.changed_paths_total();
    assert_eq!(paths(&total.into_iter().collect::<Vec<_>>()), ["note"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ignore_line_hides_nothing() {
    let (_fixture, mut attempt) = attempt().await;
    let script = "echo 'hidden*' >> .gitignore; echo x > hidden.rs; \
        echo 'other*' >> \"$GIT_DIR_OF_ATTEMPT/info/exclude\" 2>/dev/null || true";
    let verdict = attempt
        .entry(
            BUILDER,
            "echo 'hidden*' > src/.gitignore; echo x > src/hidden.rs",
        )
        .await;
    assert_eq!(paths(&verdict.touched), ["src/.gitignore", "src/hidden.rs"]);
    let verdict = attempt.entry(BUILDER, script).await;
    let found = breaches(&verdict);
    assert!(
        found.contains(&(".gitignore".into(), "restored".into())),
        "{found:?}"
    );
    assert!(
        found.contains(&("hidden.rs".into(), "deleted".into())),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_directory_is_a_breach_and_comes_back() {
    if rustix::process::geteuid().is_root() {
        // Nothing is unreadable for root; the mode alone is judged.
        let (_fixture, mut attempt) = attempt().await;
        let verdict = attempt.entry(BUILDER, "chmod 000 dir").await;
        assert_eq!(breaches(&verdict), [("dir".into(), "restored".into())]);
        return;
    }
    let (_fixture, mut attempt) = attempt().await;
    let verdict = attempt.entry(FREE, "chmod 000 dir").await;
    assert!(!verdict.breaches.is_empty());
    assert_eq!(attempt.read("dir/inner.txt"), "inner\n");
}
