//! Bytes of a checkout and blobs: what jig makes of them is what git makes.

use jig_git::changes::{GuardOptions, Selection};
use proptest::prelude::*;

use crate::support::*;

const ATTRIBUTES: &str = "\
*.crlf text eol=crlf\n\
*.lf text eol=lf\n\
*.auto text=auto\n\
*.autocrlf text=auto eol=crlf\n\
*.id ident\n\
*.idcrlf ident text eol=crlf\n\
*.u16 text working-tree-encoding=UTF-16\n\
*.u16le text working-tree-encoding=UTF-16LE-BOM eol=crlf\n\
*.latin text working-tree-encoding=ISO-8859-1\n\
*.bin binary\n\
*.raw -text\n\
*.filtered filter=evil text eol=crlf\n";

const KINDS: &[&str] = &[
    "crlf", "lf", "auto", "autocrlf", "id", "idcrlf", "u16", "u16le", "latin", "bin", "raw",
    "filtered", "plain",
];

/// Edits one line of each kind of file and expects a one-line diff.
#[tokio::test(flavor = "multi_thread")]
async fn a_one_line_edit_is_a_one_line_diff_under_every_attribute() {
    let fixture = Fixture::new();
    let lender = fixture.lender_with(&[], &[]);
    write(lender.join(".gitattributes"), ATTRIBUTES);
    let text = "first\nsecond é\nthird $Id$ x\n";
    for kind in KINDS {
        let name = lender.join(format!("f.{kind}"));
        match *kind {
            "u16" | "u16le" => write(name, utf16(text, *kind == "u16le")),
            "latin" => write(name, text.chars().map(|c| c as u8).collect::<Vec<_>>()),
            _ => write(name, text),
        }
    }
    fixture.commit_all(&lender, "base");
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let crlf = std::fs::read(attempt.tree().join("f.crlf")).unwrap();
    assert!(
        crlf.windows(2).any(|pair| pair == b"\r\n"),
        "checked out with CRLF"
    );
    let id = std::fs::read_to_string(attempt.tree().join("f.id")).unwrap();
    assert!(id.contains("$Id: "), "expanded: {id}");

    let (before, after, changes) = attempt
        .around(|tree| {
            for kind in KINDS {
                let name = tree.join(format!("f.{kind}"));
                let bytes = std::fs::read(&name).unwrap();
                let (from, to): (Vec<u8>, Vec<u8>) = match *kind {
                    "u16" | "u16le" => (
                        "first".bytes().flat_map(|b| [b, 0]).collect(),
                        "FIRST".bytes().flat_map(|b| [b, 0]).collect(),
                    ),
                    _ => (b"first".to_vec(), b"FIRST".to_vec()),
                };
                let edited = replace(&bytes, &from, &to).or_else(|| {
                    let be = |text: &str| text.bytes().flat_map(|b| [0, b]).collect::<Vec<_>>();
                    replace(&bytes, &be("first"), &be("FIRST"))
                });
                write(
                    &name,
                    edited.unwrap_or_else(|| panic!("{kind}: nothing to edit in {bytes:?}")),
                );
            }
        })
        .await;
    assert_eq!(changes.paths.len(), KINDS.len());
    let head = attempt
        .repo
        .commit_result(&attempt.guard, &after, "edit", NOW)
        .await
        .unwrap()
        .unwrap();
    let imported = attempt.repo.import(head).await.unwrap();
    let stat = git_in(
        &lender,
        &["diff", "--numstat", "--text", "main", &imported.branch],
    );
    for line in stat.lines() {
        let expected = if line.ends_with("f.bin") {
            "-\t-\t"
        } else {
            "1\t1\t"
        };
        assert!(line.starts_with(expected), "{line}");
    }
    assert_eq!(stat.lines().count(), KINDS.len());

    let report = attempt
        .guard
        .restore(&before, &after, Selection::All)
        .await
        .unwrap();
    assert!(report.is_complete(), "{:?}", report.remaining);
    let left = attempt.guard.compare(&before, &report.capture);
    assert!(left.paths.is_empty(), "{left:?}");
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let at = bytes
        .windows(from.len())
        .position(|window| window == from)?;
    let mut out = bytes[..at].to_vec();
    out.extend_from_slice(to);
    out.extend_from_slice(&bytes[at + from.len()..]);
    Some(out)
}

fn utf16(text: &str, crlf: bool) -> Vec<u8> {
    let text = if crlf {
        text.replace('\n', "\r\n")
    } else {
        text.to_owned()
    };
    std::iter::once(0xfeff)
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect()
}

/// Lines with every mixture of ends and `$Id$`.
fn content() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: &[&[u8]] = &[
        b"line",
        b"\n",
        b"\r\n",
        b"\r",
        b"$Id$",
        b"$Id: 0123 $",
        b"$Id: a b $",
        b"$Id",
        b"$Id:\n$",
        b"\x00",
        b"\x1a",
        b"caf\xc3\xa9",
    ];
    let piece = proptest::sample::select(PIECES);
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 60, failure_persistence: None, ..ProptestConfig::default() })]
    /// For files of the base and for new ones, jig's tree is the one that git's
    /// own `add` makes, and jig's restore writes what git's checkout wrote.
    #[test]
    fn jig_converts_as_git_does(
        base in proptest::collection::vec(content(), KINDS.len()),
        edited in proptest::collection::vec(content(), KINDS.len()),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(compare_with_git(&base, &edited));
    }
}

/// Kinds whose content must be valid in an encoding are left to the other test.
fn is_free(kind: &str) -> bool {
    !matches!(kind, "u16" | "u16le" | "latin")
}

async fn compare_with_git(base: &[Vec<u8>], edited: &[Vec<u8>]) {
    let fixture = Fixture::new();
    let lender = fixture.lender_with(&[], &[]);
    write(lender.join(".gitattributes"), ATTRIBUTES);
    for (kind, bytes) in KINDS.iter().zip(base).filter(|(kind, _)| is_free(kind)) {
        write(lender.join(format!("base.{kind}")), bytes);
    }
    fixture.commit_all(&lender, "base");
    let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
    let names: Vec<String> = KINDS
        .iter()
        .filter(|kind| is_free(kind))
        .map(|kind| format!("base.{kind}"))
        .collect();
    let read = |name: &String| std::fs::read(attempt.tree().join(name)).unwrap();
    let checked_out: Vec<Vec<u8>> = names.iter().map(read).collect();
    let (before, after, _) = attempt
        .around(|tree| {
            for (kind, bytes) in KINDS.iter().zip(edited).filter(|(kind, _)| is_free(kind)) {
                write(tree.join(format!("base.{kind}")), bytes);
                write(tree.join(format!("new.{kind}")), bytes);
            }
        })
        .await;
    let ours = attempt
        .repo
        .snapshot_commit(&attempt.guard, &after, "m", NOW)
        .await
        .unwrap();
    git_in(attempt.tree(), &["add", "--all"]);
    let tree = git_in(attempt.tree(), &["write-tree"]);
    let differing = git_in(
        attempt.tree(),
        &["diff", "--name-only", &tree, &ours.to_string()],
    );
    assert_eq!(differing, "", "git and jig store other blobs");

    let report = attempt
        .guard
        .restore(&before, &after, Selection::All)
        .await
        .unwrap();
    assert!(report.is_complete(), "{:?}", report.remaining);
    let restored: Vec<Vec<u8>> = names.iter().map(read).collect();
    for ((name, restored), checked_out) in names.iter().zip(restored).zip(checked_out) {
        let texts = [restored, checked_out].map(|bytes| bytes.escape_ascii().to_string());
        assert_eq!(
            texts[0], texts[1],
            "{name}: git and jig check out other bytes"
        );
    }
}
