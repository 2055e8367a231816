//! Build outputs: granted to everybody, never delivered.

use crate::fixture::{BUILDER, FREE, Fixture, READER, breaches, paths};

#[tokio::test(flavor = "multi_thread")]
async fn outputs_are_nobodys_changes() {
    for (actor, touched) in [(READER, &[][..]), (FREE, &["note"]), (BUILDER, &[])] {
        let fixture = Fixture::new(&[("a", "a\n")]);
        let mut attempt = fixture.attempt().await;
        let note = if touched.is_empty() {
            ""
        } else {
            "echo n > note;"
        };
        let script = format!("{note} mkdir -p target/x; echo o > target/x/o; mkfifo target/pipe");
        let verdict = attempt.entry(actor, &script).await;
        assert!(verdict.breaches.is_empty(), "{verdict:?}");
        assert_eq!(paths(&verdict.outputs), ["target/pipe", "target/x/o"]);
        assert_eq!(paths(&verdict.touched), touched);
        let total: Vec<_> = attempt.boundary.changed_paths_total().into_iter().collect();
        assert_eq!(paths(&total), touched);
        assert!(attempt.exists("target/x/o"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_never_covers_what_the_base_tracks() {
    let fixture = Fixture::new(&[("target/tracked", "t\n"), ("target/gone", "g\n")]);
    let mut attempt = fixture.attempt().await;
    let verdict = attempt
        .entry(
            BUILDER,
            "echo x > target/tracked; rm target/gone; echo n > target/new",
        )
        .await;
    assert_eq!(paths(&verdict.outputs), ["target/new"]);
    assert_eq!(
        breaches(&verdict),
        [
            ("target/gone".to_owned(), "restored".to_owned()),
            ("target/tracked".to_owned(), "restored".to_owned())
        ]
    );
    assert_eq!(attempt.read("target/tracked"), "t\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_or_link_in_the_place_of_the_granted_directory_is_no_output() {
    for script in ["echo x > target", "ln -s /tmp target"] {
        let fixture = Fixture::new(&[("a", "a\n")]);
        let mut attempt = fixture.attempt().await;
        let verdict = attempt.entry(BUILDER, script).await;
        assert_eq!(
            breaches(&verdict),
            [("target".into(), "deleted".into())],
            "{script}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_survive_a_breach_of_something_else() {
    let fixture = Fixture::new(&[("a", "a\n"), (".gitignore", "/target\n")]);
    let mut attempt = fixture.attempt().await;
    let verdict = attempt
        .entry(BUILDER, "mkdir target; echo o > target/o; echo x > stray")
        .await;
    assert_eq!(breaches(&verdict), [("stray".into(), "deleted".into())]);
    assert_eq!(paths(&verdict.outputs), ["target/o"]);
    assert_eq!(attempt.read("target/o"), "o\n");
}

/// Only what the entry that runs can be put back to is kept: a build that is
/// made anew in every phase would fill any budget.
#[tokio::test(flavor = "multi_thread")]
async fn kept_content_is_given_back_when_an_entry_begins() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let mut attempt = fixture.attempt().await;
    for round in 0..4 {
        let script = format!("mkdir -p target; echo {round} > target/o; echo {round} > kept");
        let verdict = attempt.entry(FREE, &script).await;
        assert!(verdict.breaches.is_empty(), "{verdict:?}");
    }
    let before = attempt.boundary.before_entry(FREE.kind).await.unwrap();
    let content = attempt.prepared.repo.directory().join("content");
    let hashes = std::fs::read_dir(content).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.len() == 64
    });
    assert_eq!(hashes.count(), 1, "`target/o` and `kept` are the same");
    attempt.act("echo x > kept; echo x > target/o");
    attempt.boundary.restore(&before).await.unwrap();
    assert_eq!(attempt.read("kept"), "3\n");
    assert_eq!(attempt.read("target/o"), "3\n");
}
