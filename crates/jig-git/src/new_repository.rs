//! A repository that did not exist before: for demonstrations.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::run::{Git, GitError, Invocation};

/// A file of a new repository.
#[derive(Debug, Clone, Copy)]
pub struct NewFile<'a> {
    /// Its path, relative to the root.
    pub path: &'a str,
    /// What is in it.
    pub content: &'a str,
    /// Whether it may be executed.
    pub executable: bool,
}

/// Why a repository could not be made.
#[derive(Debug, thiserror::Error)]
pub enum NewRepositoryError {
    /// A file or directory could not be written.
    #[error("could not write {}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Makes a repository at `root`, which is made too, with `files` committed by
/// jig on the branch `main`.
///
/// # Errors
/// When something cannot be written or git fails; what was made so far stays.
pub async fn create_repository(
    git: &Git,
    root: &Path,
    files: &[NewFile<'_>],
    message: &str,
) -> Result<(), NewRepositoryError> {
    for file in files {
        write(root, file)?;
    }
    let git_dir = root.join(".git");
    let here = |args: &[&str]| Invocation::new(args).git_dir(&git_dir).work_tree(root);
    let init = ["init", "--quiet", "--template=", "--initial-branch=main"];
    git.run(Invocation::new(init).directory(root)).await?;
    git.run(here(&["add", "--all", "--", "."])).await?;
    let identity = |run: Invocation| {
        run.env("GIT_AUTHOR_NAME", "jig")
            .env("GIT_AUTHOR_EMAIL", "jig@localhost")
            .env("GIT_COMMITTER_NAME", "jig")
            .env("GIT_COMMITTER_EMAIL", "jig@localhost")
    };
    git.run(identity(here(&["commit", "--quiet", "-m", message])))
        .await?;
    Ok(())
}

fn write(root: &Path, file: &NewFile<'_>) -> Result<(), NewRepositoryError> {
    let path = root.join(file.path);
    let mode = if file.executable { 0o755 } else { 0o644 };
    let written = std::fs::create_dir_all(path.parent().unwrap_or(root))
        .and_then(|()| std::fs::write(&path, file.content))
        .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)));
    written.map_err(|source| NewRepositoryError::Io { path, source })
}
