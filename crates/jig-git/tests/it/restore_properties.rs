//! Whatever an agent does to a tree, a restore undoes it exactly.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use jig_git::changes::{GuardOptions, Selection};
use proptest::prelude::*;

use crate::support::*;

/// Something done to a tree. Places are numbers into [`NAMES`].
#[derive(Debug, Clone)]
enum Act {
    Write(Place, Vec<u8>),
    Append(Place),
    Directory(Place),
    Remove(Place),
    Link(Place, usize),
    Mode(Place, u32),
    Rename(Place, Place),
    HardLink(Place, Place),
    Pipe(Place),
    Repository(Place),
}

type Place = (usize, Option<usize>);

const NAMES: &[&[u8]] = &[
    b"a",
    b"b.txt",
    b"sub",
    b"dir",
    b"new\nline",
    b"caf\xe9",
    b"-rf",
    b".gitignore",
    b"x.log",
    b"a b",
    b"\"q\"",
    b".github",
];

fn place() -> impl Strategy<Value = Place> {
    (0..NAMES.len(), proptest::option::of(0..NAMES.len()))
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (place(), proptest::collection::vec(any::<u8>(), 0..40)).prop_map(|(p, c)| Act::Write(p, c)),
        2 => place().prop_map(Act::Append),
        2 => place().prop_map(Act::Directory),
        2 => place().prop_map(Act::Remove),
        2 => (place(), 0..NAMES.len()).prop_map(|(p, t)| Act::Link(p, t)),
        2 => (place(), prop_oneof![Just(0o644_u32), Just(0o755), Just(0o600), Just(0o444), Just(0o555), Just(0o000)])
            .prop_map(|(p, m)| Act::Mode(p, m)),
        2 => (place(), place()).prop_map(|(a, b)| Act::Rename(a, b)),
        1 => (place(), place()).prop_map(|(a, b)| Act::HardLink(a, b)),
        1 => place().prop_map(Act::Pipe),
        1 => place().prop_map(Act::Repository),
    ]
}

fn at(root: &Path, (first, second): Place) -> PathBuf {
    let path = root.join(os(NAMES[first]));
    second.map_or(path.clone(), |second| path.join(os(NAMES[second])))
}

/// Does what can be done; what the file system refuses is not done.
fn perform(root: &Path, act: &Act) {
    let below_link = |path: &Path| path.parent().is_some_and(|p| p != root && p.is_symlink());
    match act {
        Act::Write(p, content) => {
            let path = at(root, *p);
            if !below_link(&path) && !path.is_symlink() && !is_pipe(&path) {
                let _ = std::fs::write(path, content);
            }
        }
        Act::Append(p) => {
            let path = at(root, *p);
            if path.is_file() && !path.is_symlink() && !below_link(&path) {
                let mut content = std::fs::read(&path).unwrap_or_default();
                content.push(b'+');
                let _ = std::fs::write(path, content);
            }
        }
        Act::Directory(p) => drop(std::fs::create_dir_all(at(root, *p))),
        Act::Remove(p) => {
            let path = at(root, *p);
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
        Act::Link(p, target) => drop(std::os::unix::fs::symlink(os(NAMES[*target]), at(root, *p))),
        Act::Mode(p, mode) => {
            let path = at(root, *p);
            if !path.is_symlink() && !below_link(&path) {
                let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode));
            }
        }
        Act::Rename(a, b) => drop(std::fs::rename(at(root, *a), at(root, *b))),
        Act::HardLink(a, b) => {
            if !at(root, *a).is_symlink() {
                let _ = std::fs::hard_link(at(root, *a), at(root, *b));
            }
        }
        Act::Pipe(p) => {
            let _ = std::process::Command::new("mkfifo")
                .arg("--")
                .arg(at(root, *p))
                .output();
        }
        Act::Repository(p) => {
            let path = at(root, *p);
            if std::fs::create_dir_all(path.join(".git/objects")).is_ok() {
                let _ = std::fs::write(path.join(".git/HEAD"), "ref: refs/heads/x\n");
            }
        }
    }
}

fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.symlink_metadata()
        .is_ok_and(|meta| meta.file_type().is_fifo())
}

/// What the tree holds, by a walk that shares nothing with the product's.
fn picture(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut groups: BTreeMap<u64, PathBuf> = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        let mut entries: Vec<_> = std::fs::read_dir(&directory)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        entries.sort();
        for path in entries {
            let meta = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if name == Path::new(".git") {
                continue;
            }
            let mode = meta.permissions().mode();
            let text = if meta.is_dir() {
                pending.push(path.clone());
                format!("dir {mode:o}")
            } else if meta.is_symlink() {
                format!("link {}", std::fs::read_link(&path).unwrap().display())
            } else if meta.is_file() {
                let content = std::fs::read(&path).unwrap();
                let first = groups.entry(meta.ino()).or_insert_with(|| name.clone());
                format!(
                    "file {mode:o} {} {} {content:?}",
                    meta.nlink(),
                    first.display()
                )
            } else {
                format!("special {mode:o}")
            };
            found.insert(name, text);
        }
    }
    found
}

fn check(prepare: &[Act], entry: &[Act]) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let fixture = Fixture::new();
        let lender = fixture.lender(&[
            ("a", "pinned a\n"),
            ("sub/b.txt", "pinned b\n"),
            ("sub/a", "x"),
            ("dir/a b", "y"),
        ]);
        let attempt = fixture.attempt(&lender, 1, GuardOptions::default()).await;
        let clean = attempt.guard.capture(None).await.unwrap();
        for act in prepare {
            perform(attempt.tree(), act);
        }
        let before = attempt.guard.capture(Some(&clean)).await.unwrap();
        let picture_before = picture(attempt.tree());
        for act in entry {
            perform(attempt.tree(), act);
        }
        let after = attempt.guard.capture(Some(&before)).await.unwrap();
        let changes = attempt.guard.compare(&before, &after);
        let changed = picture(attempt.tree()) != picture_before;
        assert_eq!(!changes.is_empty(), changed, "{changes:?}");
        let report = attempt
            .guard
            .restore(&before, &after, Selection::All)
            .await
            .unwrap();
        assert!(report.is_complete(), "{:?}", report.remaining);
        assert_eq!(picture(attempt.tree()), picture_before);
        assert!(attempt.guard.compare(&before, &report.capture).is_empty());
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_restored_capture_equals_the_one_before(
        prepare in proptest::collection::vec(act(), 0..12),
        entry in proptest::collection::vec(act(), 1..16),
    ) {
        check(&prepare, &entry);
    }
}

#[test]
fn a_hard_link_group_is_rebuilt_as_one_file() {
    let (a, b) = ((0, None), (2, Some(1)));
    check(&[Act::Remove(b), Act::HardLink(a, b)], &[Act::Append(a)]);
    check(
        &[Act::Remove(b), Act::HardLink(a, b)],
        &[Act::Remove(a), Act::Write(a, b"other".to_vec())],
    );
    check(&[Act::Remove(b), Act::HardLink(a, b)], &[Act::Remove(b)]);
}

#[test]
fn a_directory_replaced_by_a_link_comes_back() {
    check(
        &[],
        &[
            Act::Rename((2, None), (3, Some(5))),
            Act::Link((2, None), 3),
        ],
    );
    check(
        &[Act::Directory((5, None))],
        &[Act::Remove((5, None)), Act::Write((5, None), vec![1])],
    );
}
