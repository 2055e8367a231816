//! Where things are in the directory of one attempt.

use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use jig_protocol::ids::AttemptId;

/// The directory of one attempt, `<data>/attempts/<attempt>/`.
///
/// Only whoever made it writes there. Directories are 0700, files 0600.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptDirs {
    /// The attempt's own directory.
    pub root: PathBuf,
}

/// The directories that are removed on every end of an attempt, whichever.
const TRANSIENT: [&str; 6] = ["roles", "run", "members", "commands", "handoff", "content"];

impl AttemptDirs {
    /// The directory of `attempt` below the data directory; nothing is made.
    #[must_use]
    pub fn of(data_dir: &Path, attempt: AttemptId) -> Self {
        Self {
            root: data_dir.join("attempts").join(attempt.to_string()),
        }
    }

    /// The directory that is known by its path.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The work tree of an attempt that has its own.
    #[must_use]
    pub fn tree(&self) -> PathBuf {
        self.root.join("tree")
    }

    /// The attempt's own repository.
    #[must_use]
    pub fn git(&self) -> PathBuf {
        self.root.join("git")
    }

    /// HOME of a role of the roster.
    #[must_use]
    pub fn role_home(&self, role: &str) -> PathBuf {
        self.root.join("roles").join(role).join("home")
    }

    /// TMPDIR of a role of the roster.
    #[must_use]
    pub fn role_tmp(&self, role: &str) -> PathBuf {
        self.root.join("roles").join(role).join("tmp")
    }

    /// `XDG_RUNTIME_DIR` of the role at this place of the roster. Its path is
    /// short, because that of a socket is at most 107 bytes long: an agent that
    /// finds no room for one below it makes it in `/tmp`.
    #[must_use]
    pub fn role_runtime(&self, place: usize) -> PathBuf {
        self.root.join("run").join(place.to_string())
    }

    /// HOME of code phases and gate commands.
    #[must_use]
    pub fn command_home(&self) -> PathBuf {
        self.root.join("commands").join("home")
    }

    /// TMPDIR of code phases and gate commands.
    #[must_use]
    pub fn command_tmp(&self) -> PathBuf {
        self.root.join("commands").join("tmp")
    }

    /// Where agents leave notes for later phases, and a commit message.
    #[must_use]
    pub fn handoff(&self) -> PathBuf {
        self.root.join("handoff")
    }

    /// Command output, breach lists, copied notes.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The event log, one JSON object a line.
    #[must_use]
    pub fn trace(&self) -> PathBuf {
        self.root.join("trace.jsonl")
    }

    /// What reclaim and reconciliation need to know.
    #[must_use]
    pub fn manifest(&self) -> PathBuf {
        self.root.join("manifest.json")
    }

    /// Content kept for exact restore.
    #[must_use]
    pub fn content(&self) -> PathBuf {
        self.root.join("content")
    }

    /// In place: the operator's uncommitted files as they were before the run.
    #[must_use]
    pub fn operator_files(&self) -> PathBuf {
        self.root.join("operator-files")
    }

    /// Everything that is removed on every end.
    #[must_use]
    pub fn transient(&self) -> Vec<PathBuf> {
        TRANSIENT.iter().map(|name| self.root.join(name)).collect()
    }

    /// Makes the attempt's directory and those that every attempt has. An
    /// attempt's directory that is there already is an error: it is never
    /// shared.
    ///
    /// # Errors
    /// Whatever the file system says, `AlreadyExists` included.
    pub fn make(&self) -> io::Result<()> {
        if let Some(parent) = self.root.parent() {
            make_private_dir(parent)?;
        }
        std::fs::DirBuilder::new().mode(0o700).create(&self.root)?;
        // The umask may have taken bits away.
        std::fs::set_permissions(&self.root, PermissionsExt::from_mode(0o700))?;
        for dir in [
            self.command_home(),
            self.command_tmp(),
            self.handoff(),
            self.logs(),
            self.content(),
        ] {
            make_private_dir(&dir)?;
        }
        Ok(())
    }
}

/// Makes a directory and its missing parents, each 0700. One that is there
/// keeps its mode.
///
/// # Errors
/// Whatever the file system says.
pub(crate) fn make_private_dir(dir: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_directory_is_private_and_never_shared() {
        let data = tempfile::tempdir().unwrap();
        let dirs = AttemptDirs::at(data.path().join("attempts/one"));
        dirs.make().unwrap();
        for dir in [
            &dirs.root,
            &dirs.logs(),
            &dirs.handoff(),
            &dirs.command_home(),
        ] {
            let mode = std::fs::metadata(dir).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", dir.display());
        }
        assert_eq!(
            dirs.make().unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
    }
}
