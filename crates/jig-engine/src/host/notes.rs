//! What agents left in the handoff directory: the commit message, and the notes
//! that are worth keeping after the directory goes.

use std::io;
use std::path::{Path, PathBuf};

use jig_protocol::text;

use crate::beneath;
use crate::redact::Redactor;

/// The file a builder leaves for whoever commits.
const MESSAGE_FILE: &str = "commit-message";

/// More text than this is no commit message.
const MESSAGE_BYTES: usize = 16 * 1024;

/// Notes that are kept: each so large, so many, so deep.
const NOTE_BYTES: usize = 1024 * 1024;
const NOTE_FILES: usize = 500;
const NOTE_DEPTH: usize = 8;

/// The message of jig's own commit: what the builder left, else one that names
/// the definition and the run.
pub(super) fn commit_message(handoff: &Path, redactor: &Redactor, fallback: &str) -> String {
    let left = beneath::read_plain_file(handoff, Path::new(MESSAGE_FILE), MESSAGE_BYTES);
    let Ok(Some((bytes, _))) = left else {
        return fallback.to_owned();
    };
    let message = text::lossy(&redactor.bytes(&bytes));
    let message: String = message
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect();
    let message = message.trim();
    if message.is_empty() {
        fallback.to_owned()
    } else {
        format!("{message}\n")
    }
}

/// Copies the notes below `handoff`, redacted, to `to`, and gives how many were
/// kept. Only plain files are notes; links are not followed, names that are no
/// plain text are written in their quoted form.
///
/// # Errors
/// When a copy cannot be written.
pub(super) fn keep_notes(handoff: &Path, to: &Path, redactor: &Redactor) -> io::Result<usize> {
    let mut kept = 0;
    for path in files(handoff) {
        if kept < NOTE_FILES && keep_note(handoff, &path, to, redactor)? {
            kept += 1;
        }
    }
    Ok(kept)
}

/// How many notes there are below `handoff`.
pub(super) fn count(handoff: &Path) -> usize {
    files(handoff).len()
}

/// The plain files below `handoff`, as far down as notes are looked for.
fn files(handoff: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![(PathBuf::new(), 0)];
    while let Some((dir, depth)) = pending.pop() {
        for (name, is_dir) in list(&handoff.join(&dir)) {
            let path = dir.join(&name);
            if !is_dir {
                found.push(path);
            } else if depth < NOTE_DEPTH {
                pending.push((path, depth + 1));
            }
        }
    }
    found
}

/// Names in a directory, links and special files left out; none when it is no
/// directory or cannot be read.
fn list(dir: &Path) -> Vec<(std::ffi::OsString, bool)> {
    let is_real = dir.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    let Some(entries) = is_real.then(|| std::fs::read_dir(dir).ok()).flatten() else {
        return Vec::new();
    };
    let mut names: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            (kind.is_dir() || kind.is_file()).then(|| (entry.file_name(), kind.is_dir()))
        })
        .collect();
    names.sort();
    names
}

fn keep_note(handoff: &Path, path: &Path, to: &Path, redactor: &Redactor) -> io::Result<bool> {
    let Some((bytes, more)) = beneath::read_plain_file(handoff, path, NOTE_BYTES)? else {
        return Ok(false);
    };
    let mut note = redactor.bytes(&bytes).into_owned();
    if more {
        note.extend_from_slice(b"\n[cut: the note was longer]\n");
    }
    let name = redactor.text(&path.to_string_lossy()).into_owned();
    beneath::write_beneath(to, Path::new(&name), &note)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn handoff() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let handoff = dir.path().join("handoff");
        std::fs::create_dir(&handoff).unwrap();
        (dir, handoff)
    }

    #[test]
    fn the_message_is_the_builders_or_names_the_run() {
        let (dir, handoff) = handoff();
        let redactor = Redactor::new([("TOKEN", "hunter22")]);
        let message = || commit_message(&handoff, &redactor, "jig: x (y)");
        assert_eq!(message(), "jig: x (y)");
        std::fs::write(handoff.join(MESSAGE_FILE), "  \n\t\n").unwrap();
        assert_eq!(message(), "jig: x (y)");
        let left = "Use hunter22 well\r\n\nBody\0\x1b[31m \u{e9}\n\n";
        std::fs::write(handoff.join(MESSAGE_FILE), left).unwrap();
        assert_eq!(message(), "Use [redacted:TOKEN] well\n\nBody[31m \u{e9}\n");
        std::fs::remove_file(handoff.join(MESSAGE_FILE)).unwrap();
        std::fs::write(dir.path().join("secret"), "outside").unwrap();
        symlink("../secret", handoff.join(MESSAGE_FILE)).unwrap();
        assert_eq!(message(), "jig: x (y)");
    }

    #[test]
    fn notes_are_copied_redacted_and_never_through_links() {
        let (dir, handoff) = handoff();
        let logs = dir.path().join("logs");
        std::fs::create_dir(&logs).unwrap();
        std::fs::create_dir_all(handoff.join("deep/er")).unwrap();
        std::fs::write(handoff.join("deep/er/note-hunter22"), "say hunter22").unwrap();
        std::fs::write(dir.path().join("secret"), "outside").unwrap();
        symlink("../secret", handoff.join("link")).unwrap();
        symlink("..", handoff.join("up")).unwrap();
        let redactor = Redactor::new([("TOKEN", "hunter22")]);
        assert_eq!(keep_notes(&handoff, &logs, &redactor).unwrap(), 1);
        let note = std::fs::read_to_string(logs.join("deep/er/note-[redacted:TOKEN]")).unwrap();
        assert_eq!(note, "say [redacted:TOKEN]");
        assert_eq!(std::fs::read_dir(&logs).unwrap().count(), 1);
        assert_eq!(
            keep_notes(&dir.path().join("none"), &logs, &redactor).unwrap(),
            0
        );
    }
}
