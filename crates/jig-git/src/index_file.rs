//! Writing an index from a commit, with the stat data of a capture.

use gix::ObjectId;
use gix::index::entry::stat::Time;
use gix::index::entry::{Mode, Stat};
use gix::index::{File, State};

use crate::attempt_repo::AttemptRepo;
use crate::changes::{Capture, Entry, EntryKind, TreeGuard};
use crate::commit::CommitError;
use crate::pinned_tree::PinnedKind;

/// Writes `<git dir>/index`: the entries of `head`'s tree, nothing else.
pub(crate) fn write(
    repo: &AttemptRepo,
    guard: &TreeGuard,
    capture: &Capture,
    head: Option<ObjectId>,
) -> Result<(), CommitError> {
    let objects = repo.objects();
    let mut state = match head {
        None => State::new(objects.hash()),
        Some(head) => {
            let tree = objects.commit_tree(&head)?;
            let validate = gix::validate::path::component::Options {
                protect_windows: false,
                protect_hfs: false,
                protect_ntfs: true,
            };
            State::from_tree(&tree, objects.handle(), validate)
                .map_err(|error| objects.damaged(&tree, error.to_string()))?
        }
    };
    fill_stats(&mut state, guard, capture);
    let path = repo.git_dir().join("index");
    let temporary = repo.git_dir().join("index.jig-new");
    let io = |path: &std::path::Path, source| CommitError::Io {
        path: path.to_owned(),
        source,
    };
    // Nothing is running, so a lock is only what a killed git left behind.
    for stale in [&temporary, &repo.git_dir().join("index.lock")] {
        match std::fs::remove_file(stale) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io(stale, error));
            }
            _ => {}
        }
    }
    let mut bytes = Vec::new();
    File::from_state(state, &path)
        .write_to(&mut bytes, gix::index::write::Options::default())
        .map_err(|error| io(&path, std::io::Error::other(error.to_string())))?;
    std::fs::write(&temporary, &bytes).map_err(|source| io(&temporary, source))?;
    std::fs::rename(&temporary, &path).map_err(|source| io(&path, source))
}

/// Spares git reading files that are known to be what the index says.
fn fill_stats(state: &mut State, guard: &TreeGuard, capture: &Capture) {
    let paths: Vec<_> = state
        .entries()
        .iter()
        .map(|entry| entry.path(state).to_vec())
        .collect();
    for (entry, path) in state.entries_mut().iter_mut().zip(paths) {
        let path = jig_protocol::repo_path::RepoPath::from_bytes(path);
        let Some(found) = capture.get(&path) else {
            continue;
        };
        let kind = match entry.mode {
            Mode::FILE => PinnedKind::File,
            Mode::FILE_EXECUTABLE => PinnedKind::Executable,
            Mode::SYMLINK => PinnedKind::Link,
            _ => continue,
        };
        if guard.known_leaf(found) == Some((kind, entry.id)) {
            entry.stat = stat_of(found);
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the index keeps the low 32 bits"
)]
fn stat_of(entry: &Entry) -> Stat {
    debug_assert!(entry.kind != EntryKind::Directory);
    let stat = &entry.stat;
    let time = |time: &crate::changes::FileTime| Time {
        secs: time.seconds as u32,
        nsecs: time.nanos,
    };
    Stat {
        mtime: time(&stat.modified),
        ctime: time(&stat.changed),
        dev: stat.device as u32,
        ino: stat.inode as u32,
        uid: stat.user,
        gid: stat.group,
        size: stat.size as u32,
    }
}
