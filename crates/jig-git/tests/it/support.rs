//! Repositories to test with.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use jig_git::changes::{Capture, Changes, GuardOptions, TreeGuard};
use jig_git::{AttemptPlan, AttemptRepo, Git, GitConfig, Repository};
use jig_protocol::ids::{AttemptId, JobId};
use jig_protocol::repo_path::RepoPath;
use jig_protocol::time::Timestamp;

/// The moment of every commit that a test lets jig make.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// A directory with a lender and room for attempts.
pub(crate) struct Fixture {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) git: Git,
}

/// An attempt with its guard.
pub(crate) struct Attempt {
    pub(crate) repo: AttemptRepo,
    pub(crate) guard: TreeGuard,
}

pub(crate) fn path_env() -> OsString {
    std::env::var_os("PATH").unwrap()
}

/// Real git as an operator would run it, with nothing of the user's.
pub(crate) fn git_in(dir: &Path, args: &[&str]) -> String {
    String::from_utf8(git_bytes(dir, args))
        .unwrap()
        .trim_end()
        .to_owned()
}

pub(crate) fn git_bytes(dir: &Path, args: &[&str]) -> Vec<u8> {
    let output = git_command(dir, args).output().unwrap();
    assert!(
        output.status.success(),
        "git {args:?} in {}: {}",
        dir.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

pub(crate) fn git_command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", path_env())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Op")
        .env("GIT_AUTHOR_EMAIL", "op@example.com")
        .env("GIT_AUTHOR_DATE", "1600000000 +0000")
        .env("GIT_COMMITTER_NAME", "Op")
        .env("GIT_COMMITTER_EMAIL", "op@example.com")
        .env("GIT_COMMITTER_DATE", "1600000000 +0000");
    command
}

pub(crate) fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    let path = path.as_ref();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

pub(crate) fn chmod(path: impl AsRef<Path>, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

pub(crate) fn path(text: &str) -> RepoPath {
    RepoPath::from(text)
}

/// An id whose last part is `n`.
pub(crate) fn attempt_id(n: u8) -> AttemptId {
    AttemptId::from_parts(NOW, [0, 0, 0, 0, 0, 0, 0, 0, 0, n])
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("jig git ")
            .tempdir()
            .unwrap();
        let git = Git::new(GitConfig::new(path_env()));
        Self { dir, git }
    }

    pub(crate) fn lender_path(&self) -> PathBuf {
        self.dir.path().join("lender")
    }

    /// A lender with `files` committed on `main`.
    pub(crate) fn lender(&self, files: &[(&str, &str)]) -> PathBuf {
        self.lender_with(&[], files)
    }

    pub(crate) fn lender_with(&self, init: &[&str], files: &[(&str, &str)]) -> PathBuf {
        let lender = self.lender_path();
        std::fs::create_dir_all(&lender).unwrap();
        let mut args = vec!["init", "--quiet"];
        args.extend(init);
        git_in(&lender, &args);
        for (name, content) in files {
            write(lender.join(name), content);
        }
        if !files.is_empty() {
            self.commit_all(&lender, "base");
        }
        lender
    }

    pub(crate) fn commit_all(&self, repo: &Path, message: &str) -> String {
        git_in(repo, &["add", "--all", "--force"]);
        git_in(repo, &["commit", "--quiet", "--allow-empty", "-m", message]);
        git_in(repo, &["rev-parse", "HEAD"])
    }

    pub(crate) async fn repository(&self, path: &Path) -> Repository {
        Repository::discover(&self.git, path).await.unwrap()
    }

    pub(crate) async fn plan(&self, lender: &Repository, n: u8) -> AttemptPlan {
        let directory = self
            .dir
            .path()
            .join("data/attempts")
            .join(attempt_id(n).to_string());
        std::fs::create_dir_all(&directory).unwrap();
        AttemptPlan {
            directory,
            attempt: attempt_id(n),
            job: JobId::from_parts(NOW, [7; 10]),
            number: u32::from(n),
            base: lender.resolve_base(&self.git, None).await.unwrap(),
        }
    }

    /// Prepares attempt `n` on what the repository at `lender` has checked out.
    pub(crate) async fn attempt(&self, lender: &Path, n: u8, options: GuardOptions) -> Attempt {
        let lender = self.repository(lender).await;
        let plan = self.plan(&lender, n).await;
        let repo = AttemptRepo::prepare(&self.git, &lender, &plan)
            .await
            .unwrap();
        let guard = repo.guard(options).unwrap();
        Attempt { repo, guard }
    }
}

impl Attempt {
    pub(crate) fn tree(&self) -> &Path {
        self.repo.tree()
    }

    /// Captures, lets `act` happen, captures again and compares.
    pub(crate) async fn around(&self, act: impl FnOnce(&Path)) -> (Capture, Capture, Changes) {
        let before = self.guard.capture(None).await.unwrap();
        act(self.tree());
        let after = self.guard.capture(Some(&before)).await.unwrap();
        let changes = self.guard.compare(&before, &after);
        (before, after, changes)
    }
}

/// The changed paths, as texts.
pub(crate) fn paths(changes: &Changes) -> Vec<String> {
    changes
        .paths
        .iter()
        .map(|change| change.path.to_string())
        .collect()
}
