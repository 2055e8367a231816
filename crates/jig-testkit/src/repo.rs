//! Real git repositories, out of reach of the user's configuration.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A repository in a temporary directory, with an empty HOME beside it.
///
/// Author, committer and dates are fixed, so that equal steps make equal
/// commits.
#[derive(Debug)]
pub struct Repo {
    /// Removed with the value.
    dir: TempDir,
    /// Seconds since the epoch of the next commit.
    next_date: std::cell::Cell<u64>,
}

/// 2026-01-01T00:00:00Z.
const FIRST_DATE: u64 = 1_767_225_600;

impl Repo {
    /// An empty repository on branch `main`.
    #[must_use]
    pub fn new() -> Self {
        Self::init(&["--initial-branch=main"])
    }

    /// An empty repository, with further arguments of `git init`, such as
    /// `--bare` or `--object-format=sha256`.
    #[must_use]
    pub fn init(args: &[&str]) -> Self {
        let dir = match tempfile::tempdir() {
            Ok(dir) => dir,
            Err(error) => panic!("a temporary directory: {error}"),
        };
        let repo = Self {
            dir,
            next_date: std::cell::Cell::new(FIRST_DATE),
        };
        make_dir(&repo.path());
        make_dir(&repo.home());
        let mut init = vec!["init", "--quiet", "--template="];
        init.extend(args);
        repo.git(&init);
        repo
    }

    /// A repository on `main` with one commit that holds `files`.
    #[must_use]
    pub fn with_files(files: &[(&str, &str)]) -> Self {
        let repo = Self::new();
        for (path, text) in files {
            repo.write(path, text);
        }
        repo.commit("first");
        repo
    }

    /// The directory that was initialised.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    /// The HOME that git is run with.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// A place for other things of the test, removed with the repository.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        self.dir.path()
    }

    /// A git command that sees neither the user's nor the system's
    /// configuration.
    #[must_use]
    pub fn command(&self, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new("git");
        command.args(args).current_dir(self.path()).env_clear();
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        command
    }

    /// The environment of [`Repo::command`].
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let date = format!("{} +0000", self.next_date.get());
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
        [
            ("PATH", path),
            ("HOME", self.home().display().to_string()),
            ("LANG", "C.UTF-8".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("GIT_AUTHOR_NAME", "Tess Ter".into()),
            ("GIT_AUTHOR_EMAIL", "tess@example.org".into()),
            ("GIT_COMMITTER_NAME", "Tess Ter".into()),
            ("GIT_COMMITTER_EMAIL", "tess@example.org".into()),
            ("GIT_AUTHOR_DATE", date.clone()),
            ("GIT_COMMITTER_DATE", date),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Runs git and returns what it wrote, without the last line end.
    ///
    /// # Panics
    ///
    /// When git fails.
    #[track_caller]
    pub fn git(&self, args: &[impl AsRef<OsStr>]) -> String {
        let output = self.try_git(args);
        let shown: Vec<_> = args.iter().map(|a| a.as_ref().to_string_lossy()).collect();
        assert!(
            output.status.success(),
            "git {} failed:\n{}",
            shown.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8_lossy(&output.stdout);
        text.strip_suffix('\n').unwrap_or(&text).to_owned()
    }

    /// Runs git, whatever comes of it.
    ///
    /// # Panics
    ///
    /// When there is no git.
    #[track_caller]
    pub fn try_git(&self, args: &[impl AsRef<OsStr>]) -> Output {
        match self.command(args).output() {
            Ok(output) => output,
            Err(error) => panic!("git: {error}"),
        }
    }

    /// Writes a file below the repository, with the directories above it.
    ///
    /// # Panics
    ///
    /// When that fails.
    #[track_caller]
    pub fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        make_dir(path.parent().unwrap_or(Path::new("/")));
        if let Err(error) = fs::write(&path, contents) {
            panic!("{}: {error}", path.display());
        }
    }

    /// Reads a file below the repository as text.
    ///
    /// # Panics
    ///
    /// When that fails.
    #[track_caller]
    #[must_use]
    pub fn read(&self, path: &str) -> String {
        match fs::read_to_string(self.path().join(path)) {
            Ok(text) => text,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// Commits everything that is there and returns the commit's id. Each
    /// commit is a minute after the one before.
    ///
    /// # Panics
    ///
    /// When git fails.
    #[track_caller]
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.next_date.set(self.next_date.get() + 60);
        self.head()
    }

    /// The id of the commit that is checked out.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[track_caller]
    #[must_use]
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Every ref with what it names, one per line, and HEAD: to be compared
    /// with a later one.
    #[must_use]
    pub fn refs(&self) -> String {
        let head = self.try_git(&["symbolic-ref", "HEAD"]).stdout;
        let refs = self.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        format!("HEAD {}{refs}", String::from_utf8_lossy(&head))
    }

    /// What differs from HEAD, also ignored files, one per line.
    #[must_use]
    pub fn status(&self) -> String {
        self.git(&[
            "status",
            "--porcelain",
            "--ignored",
            "--untracked-files=all",
        ])
    }
}

impl Default for Repo {
    fn default() -> Self {
        Self::new()
    }
}

#[track_caller]
fn make_dir(path: &Path) {
    if let Err(error) = fs::create_dir_all(path) {
        panic!("{}: {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_steps_make_equal_commits() {
        let make = || {
            let repo = Repo::with_files(&[("a", "1"), ("d/b", "2")]);
            repo.write("a", "3");
            repo.commit("second")
        };
        assert_eq!(make(), make());
    }

    #[test]
    fn the_users_configuration_is_out_of_reach() {
        let repo = Repo::new();
        let origins = repo.git(&["config", "--list", "--show-origin"]);
        assert!(
            origins
                .lines()
                .all(|line| line.starts_with("file:.git/config")),
            "{origins}"
        );
        assert_eq!(repo.status(), "");
    }
}
