//! Delivering: what the operator gets is exactly what was judged.

use jig_engine::host::{DeliverError, Delivery};
use jig_protocol::outcome::PublishMarker;

use crate::fixture::{Attempt, BUILDER, COMMAND, FREE, Fixture, no_secrets};

pub(super) async fn deliver(
    fixture: &Fixture,
    attempt: &Attempt,
) -> Result<Delivery, DeliverError> {
    jig_engine::host::deliver(
        &fixture.config,
        &attempt.prepared,
        &attempt.boundary,
        &no_secrets(),
        "jig: plain (run)",
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn uncommitted_work_becomes_one_commit_on_its_own_branch() {
    let fixture = Fixture::new(&[
        ("src/a.rs", "a\n"),
        ("gone", "g\n"),
        (".gitignore", "*.log\n"),
    ]);
    let before = fixture.operator_state();
    let mut attempt = fixture.attempt().await;
    let script = "echo b > src/a.rs; rm gone; echo n > new; chmod +x new; ln -s new link; \
        echo l > x.log; mkdir target; echo o > target/o; mkdir empty";
    let verdict = attempt.entry(FREE, script).await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    let delivery = deliver(&fixture, &attempt).await.unwrap();
    assert_eq!(delivery.marker, PublishMarker::LocalBranch);
    let (branch, commit) = (delivery.branch.unwrap(), delivery.commit.unwrap());
    assert_eq!(fixture.operator_state(), before);
    assert_eq!(fixture.repo.git(&["rev-parse", &branch]), commit);
    let changed = fixture
        .repo
        .git(&["diff", "--name-status", "--no-renames", "main", &branch]);
    assert_eq!(changed, "D\tgone\nA\tlink\nA\tnew\nM\tsrc/a.rs");
    let format = "--format=%an <%ae>|%cn|%B|%P";
    let shown = fixture.repo.git(&["log", "-1", format, &branch]);
    let base = fixture.repo.head();
    assert_eq!(
        shown,
        format!("jig <jig@localhost>|jig|jig: plain (run)\n|{base}")
    );
    // Its objects are the lender's own.
    fixture.repo.git(&["fsck", "--strict", "--no-dangling"]);
    // Doing it again is the same as doing it once.
    assert_eq!(
        deliver(&fixture, &attempt).await.unwrap().commit,
        Some(commit)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_builders_message_is_used_and_its_commits_are_kept() {
    let fixture = Fixture::new(&[("src/a.rs", "a\n")]);
    let mut attempt = fixture.attempt().await;
    let verdict = attempt.entry(BUILDER, "echo b > src/a.rs").await;
    assert!(verdict.breaches.is_empty());
    let verdict = attempt
        .entry(COMMAND, "git add -A; git commit -qm 'by the phase'")
        .await;
    assert!(verdict.head_moved);
    let verdict = attempt.entry(BUILDER, "echo c > src/c.rs").await;
    assert!(verdict.breaches.is_empty());
    let handoff = attempt.prepared.dirs.handoff();
    std::fs::write(handoff.join("commit-message"), "Add c\n\nBecause.\n").unwrap();
    let branch = deliver(&fixture, &attempt).await.unwrap().branch.unwrap();
    let subjects = fixture.repo.git(&["log", "--format=%s", &branch]);
    assert_eq!(subjects, "Add c\nby the phase\nfirst");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_changed_is_nothing_to_publish() {
    let fixture = Fixture::new(&[("a", "a\n"), (".gitignore", "*.log\n")]);
    let mut attempt = fixture.attempt().await;
    let verdict = attempt
        .entry(FREE, "echo l > x.log; mkdir target; echo o > target/o")
        .await;
    assert!(verdict.breaches.is_empty());
    let delivery = deliver(&fixture, &attempt).await.unwrap();
    assert_eq!(delivery.marker, PublishMarker::NothingToPublish);
    assert!(!fixture.repo.refs().contains("refs/heads/jig/"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_one_line_edit_is_a_one_line_diff_whatever_the_attributes() {
    let fixture = Fixture::new(&[
        (
            ".gitattributes",
            "*.txt text eol=crlf\n*.id ident\n*.u16 text working-tree-encoding=UTF-16LE\n",
        ),
        ("a.txt", "one\ntwo\nthree\n"),
        ("b.id", "$Id$\none\ntwo\n"),
    ]);
    let wide: Vec<u8> = "one\ntwo\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    fixture.repo.write("c.u16", wide);
    fixture.repo.commit("with attributes");
    let mut attempt = fixture.attempt().await;
    assert_eq!(attempt.read("a.txt"), "one\r\ntwo\r\nthree\r\n");
    assert!(attempt.read("b.id").starts_with("$Id: "));
    let script = "sed -i 's/two/2/' a.txt b.id; printf 't\\0h\\0r\\0\\n\\0' >> c.u16";
    let verdict = attempt.entry(FREE, script).await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    let branch = deliver(&fixture, &attempt).await.unwrap().branch.unwrap();
    let stat = fixture.repo.git(&["diff", "--numstat", "main", &branch]);
    assert_eq!(stat, "1\t1\ta.txt\n1\t1\tb.id\n1\t0\tc.u16");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_any_bytes_are_delivered() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let mut attempt = fixture.attempt().await;
    let script = "printf x > \"$(printf 'new\\nline')\"; printf x > \"$(printf 'bad\\377')\"; \
        printf x > 'a -> b'; printf x > ./-rf; printf x > 'caf\u{e9}'";
    let verdict = attempt.entry(FREE, script).await;
    assert_eq!(verdict.touched.len(), 5, "{verdict:?}");
    let branch = deliver(&fixture, &attempt).await.unwrap().branch.unwrap();
    let names = fixture
        .repo
        .git(&["diff", "--name-only", "-z", "main", &branch]);
    assert_eq!(names.matches('\0').count(), 5, "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_something_else_is_not_overwritten() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let mut attempt = fixture.attempt().await;
    let name = attempt.prepared.branch.clone().unwrap();
    let verdict = attempt.entry(FREE, "echo b > a").await;
    assert!(verdict.breaches.is_empty());
    fixture.repo.git(&["update-ref", &name, "main"]);
    assert!(deliver(&fixture, &attempt).await.is_err());
    assert_eq!(fixture.repo.git(&["rev-parse", &name]), fixture.repo.head());
}
