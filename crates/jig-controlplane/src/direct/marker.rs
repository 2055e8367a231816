//! Liveness markers: a file that is locked for as long as its run lives.
//!
//! The kernel drops the lock with the process, however it dies; no process id is
//! trusted. The marker is made before the run is admitted and removed after its
//! end is recorded, so an unlocked marker always means that something must be
//! put in order, and a missing one says nothing.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_protocol::ids::RunId;
use jig_protocol::time::Clock;

use crate::store::open_private_file;

const POLL: Duration = Duration::from_millis(10);
/// A scanner holds a new marker for one look at the database.
const TRIES: u32 = 6_000;

/// A marker that this process has locked.
#[derive(Debug)]
pub(super) struct Marker {
    path: PathBuf,
    _locked: File,
}

/// A run's marker, relative to the data directory.
pub(super) fn relative_path(run: RunId) -> String {
    format!("runs/{run}.lock")
}

impl Marker {
    /// Makes and locks the marker of a new run.
    pub(super) async fn create(path: &Path, clock: &dyn Clock) -> io::Result<Self> {
        for _ in 0..TRIES {
            let file = open_private_file(path)?;
            match file.try_lock() {
                // A scanner may have found it unlocked and removed it.
                Ok(()) if is_at(&file, path)? => {
                    return Ok(Self {
                        path: path.to_path_buf(),
                        _locked: file,
                    });
                }
                Ok(()) => {}
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) => {
                    let next = clock.monotonic().saturating_add(POLL);
                    clock.sleep_until(next).await;
                }
            }
        }
        Err(io::Error::from(io::ErrorKind::WouldBlock))
    }

    /// Takes over the marker of a dead run; `None` when its run lives, or when
    /// the marker is gone.
    pub(super) fn adopt(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::options().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            Ok(()) if is_at(&file, path)? => Ok(Some(Self {
                path: path.to_path_buf(),
                _locked: file,
            })),
            Ok(()) | Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the marker: everything it stood for is recorded.
    pub(super) fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Whether `path` still names the opened file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Every marker of a data directory, in the order of the runs' ids.
pub(super) fn all(runs_dir: &Path) -> io::Result<Vec<(RunId, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(runs_dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let run = name.and_then(|name| name.strip_suffix(".lock")?.parse().ok());
        if let Some(run) = run {
            found.push((run, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a direct run may still be going on in `data_dir`: its marker is
/// locked, or nobody can tell. Takes the lock for one look.
#[must_use]
pub fn may_be_running(data_dir: &Path, run: RunId) -> bool {
    let file = match File::open(data_dir.join(relative_path(run))) {
        Ok(file) => file,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    // Not held to the end of the program: `file` is closed here.
    file.try_lock().is_err()
}

/// Whether any direct run may still be going on in `data_dir`.
///
/// # Errors
/// When the markers cannot be listed. No directory of markers means none.
pub fn any_may_be_running(data_dir: &Path) -> io::Result<bool> {
    match all(&data_dir.join("runs")) {
        Ok(markers) => Ok(markers
            .into_iter()
            .any(|(run, _)| may_be_running(data_dir, run))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
