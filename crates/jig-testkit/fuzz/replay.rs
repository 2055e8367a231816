//! Runs the checked-in corpora as plain tests; included by the crates whose
//! properties the targets check.

use std::path::Path;

/// Calls `check` with every file of a target's corpus.
///
/// # Panics
///
/// When a check does, after naming the file; and when the corpus is empty,
/// because then nothing was checked.
pub(crate) fn replay(target: &str, check: fn(&[u8])) {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jig-testkit/fuzz/corpus");
    files(&corpora.join(target), check);
}

/// Calls `check` with every file of a directory.
///
/// # Panics
///
/// As [`replay`] does.
pub(crate) fn files(directory: &Path, check: fn(&[u8])) {
    let entries = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", directory.display());
    for file in files {
        let content = std::fs::read(&file).unwrap();
        // What went wrong has been printed by then; the file is what is missing.
        let held = std::panic::catch_unwind(|| check(&content)).is_ok();
        assert!(held, "{} fails its check, see above", file.display());
    }
}
