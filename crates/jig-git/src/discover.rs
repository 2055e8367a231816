//! Finding a repository from any path, and reading what it says of itself.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::ByteSlice;

use crate::config_file::ConfigFile;
use crate::refs::{RefValue, Refs};
use crate::repository::{Head, Operation, RefFormat, RepositoryError};
use crate::run::{Git, Invocation};

/// Finds the git directory and, unless it was given itself, the checkout.
pub(crate) fn locate(path: &Path) -> Result<(PathBuf, Option<PathBuf>), RepositoryError> {
    let unreadable = |source| RepositoryError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let start = std::fs::canonicalize(path).map_err(unreadable)?;
    if !start.is_dir() {
        let why = "it is not a directory".to_owned();
        return Err(RepositoryError::Broken {
            path: path.to_owned(),
            why,
        });
    }
    for directory in start.ancestors() {
        let dot_git = directory.join(".git");
        match std::fs::metadata(&dot_git) {
            Ok(meta) if meta.is_dir() && looks_like_git_dir(&dot_git) => {
                return Ok((dot_git, Some(directory.to_owned())));
            }
            Ok(meta) if meta.is_file() => {
                return Ok((follow_pointer(&dot_git)?, Some(directory.to_owned())));
            }
            _ => {}
        }
        if looks_like_git_dir(directory) {
            return Ok((directory.to_owned(), None));
        }
    }
    Err(RepositoryError::NotARepository {
        path: path.to_owned(),
    })
}

fn looks_like_git_dir(directory: &Path) -> bool {
    let head = std::fs::symlink_metadata(directory.join("HEAD"));
    head.is_ok_and(|meta| !meta.is_dir())
        && (directory.join("commondir").is_file()
            || (directory.join("objects").is_dir() && directory.join("refs").is_dir()))
}

/// The directory a `.git` file points at.
pub(crate) fn follow_pointer(dot_git: &Path) -> Result<PathBuf, RepositoryError> {
    let broken = |why: &str| RepositoryError::Broken {
        path: dot_git.to_owned(),
        why: why.to_owned(),
    };
    let bytes = std::fs::read(dot_git).map_err(|source| RepositoryError::Unreadable {
        path: dot_git.to_owned(),
        source,
    })?;
    let target = bytes
        .strip_prefix(b"gitdir: ")
        .ok_or_else(|| broken("it is neither a directory nor a `gitdir:` file"))?
        .trim_end_with(|c| c == '\n' || c == '\r');
    let target = Path::new(std::ffi::OsStr::from_bytes(target));
    let target = dot_git.parent().unwrap_or(Path::new("/")).join(target);
    std::fs::canonicalize(&target)
        .ok()
        .filter(|path| looks_like_git_dir(path))
        .ok_or_else(|| broken("it points at no git directory"))
}

pub(crate) fn common_dir(git_dir: &Path) -> Result<PathBuf, RepositoryError> {
    let file = git_dir.join("commondir");
    match std::fs::read(&file) {
        Ok(bytes) => {
            let target = bytes.trim_end_with(|c| c == '\n' || c == '\r');
            let target = git_dir.join(std::ffi::OsStr::from_bytes(target));
            std::fs::canonicalize(&target).map_err(|source| RepositoryError::Unreadable {
                path: target,
                source,
            })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(git_dir.to_owned()),
        Err(source) => Err(RepositoryError::Unreadable { path: file, source }),
    }
}

pub(crate) fn work_tree(
    git_dir: &Path,
    common_dir: &Path,
    found: Option<PathBuf>,
    config: &ConfigFile,
) -> Option<PathBuf> {
    // A linked worktree has its own `.git` file, whatever the main one is.
    if git_dir != common_dir {
        return found.or_else(|| {
            let bytes = std::fs::read(git_dir.join("gitdir")).ok()?;
            let target =
                std::ffi::OsStr::from_bytes(bytes.trim_end_with(|c| c == '\n' || c == '\r'));
            let dot_git = std::fs::canonicalize(git_dir.join(target)).ok()?;
            dot_git.parent().map(Path::to_owned)
        });
    }
    if config.boolean("core", "bare") == Some(true) {
        return None;
    }
    if let Some(path) = config.string("core", "worktree") {
        let path = git_dir.join(std::ffi::OsStr::from_bytes(&path));
        return std::fs::canonicalize(path).ok().or(found);
    }
    found.or_else(|| {
        let parent = git_dir.parent()?;
        git_dir.ends_with(".git").then(|| parent.to_owned())
    })
}

pub(crate) async fn head(
    git: &Git,
    git_dir: &Path,
    common_dir: &Path,
    format: RefFormat,
) -> Result<Head, RepositoryError> {
    if format == RefFormat::Reftable {
        return head_by_git(git, git_dir).await;
    }
    let path = git_dir.join("HEAD");
    let refs = Refs::new(git_dir, common_dir);
    let unreadable = |source| RepositoryError::Unreadable {
        path: path.clone(),
        source,
    };
    match refs.get("HEAD").map_err(unreadable)? {
        Some(RefValue::Object(commit)) => Ok(Head::Detached { commit }),
        Some(RefValue::Symbolic(name)) => Ok(match refs.resolve(&name).map_err(unreadable)? {
            Some(commit) => Head::Branch { name, commit },
            None => Head::Unborn { name },
        }),
        None => Err(RepositoryError::Broken {
            path,
            why: "it holds no reference".into(),
        }),
    }
}

async fn head_by_git(git: &Git, git_dir: &Path) -> Result<Head, RepositoryError> {
    let name = git
        .run_any(Invocation::new(["symbolic-ref", "-q", "HEAD"]).git_dir(git_dir))
        .await?;
    let name = String::from_utf8_lossy(name.stdout.trim()).into_owned();
    let run = Invocation::new(["rev-parse", "--verify", "--quiet", "HEAD"]).git_dir(git_dir);
    let commit = ObjectId::from_hex(git.run_any(run).await?.stdout.trim()).ok();
    match (name.is_empty(), commit) {
        (true, Some(commit)) => Ok(Head::Detached { commit }),
        (false, Some(commit)) => Ok(Head::Branch { name, commit }),
        (false, None) => Ok(Head::Unborn { name }),
        (true, None) => {
            let why = "it holds no reference".into();
            Err(RepositoryError::Broken {
                path: git_dir.join("HEAD"),
                why,
            })
        }
    }
}

pub(crate) fn operation(git_dir: &Path) -> Option<Operation> {
    [
        ("rebase-merge", Operation::Rebase),
        ("rebase-apply", Operation::Rebase),
        ("MERGE_HEAD", Operation::Merge),
        ("CHERRY_PICK_HEAD", Operation::CherryPick),
        ("REVERT_HEAD", Operation::Revert),
        ("BISECT_LOG", Operation::Bisect),
    ]
    .into_iter()
    .find(|(file, _)| git_dir.join(file).exists())
    .map(|(_, operation)| operation)
}
