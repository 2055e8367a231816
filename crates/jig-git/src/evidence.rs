//! Looking at what an attempt left, without believing its repository.
//!
//! Whoever worked there may have written its configuration, its attributes and
//! its references. So git is given a fresh, empty repository that only reads
//! the attempt's objects.

use std::path::Path;

use gix::ObjectId;

use crate::run::{Git, GitError, Invocation};

/// Why two commits could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The text is no object id.
    #[error("{0:?} is not an object id")]
    NotAnId(String),
    /// The empty repository could not be made.
    #[error("could not prepare {}", path.display())]
    Scratch {
        /// Where.
        path: std::path::PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// git failed, or an object is not there.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The difference between two trees or commits (their ids in hex) among the
/// objects of `objects`, an `objects` directory, as a unified patch. No
/// attribute, filter or configuration of any repository has a say.
///
/// `scratch` is an empty directory of the caller's, used for the moment.
///
/// # Errors
/// When an id is malformed, an object is missing, or git fails.
pub async fn diff_objects(
    git: &Git,
    objects: &Path,
    scratch: &Path,
    from: &str,
    to: &str,
) -> Result<Vec<u8>, EvidenceError> {
    let id = |text: &str| {
        ObjectId::from_hex(text.as_bytes()).map_err(|_| EvidenceError::NotAnId(text.to_owned()))
    };
    let (from, to) = (id(from)?, id(to)?);
    empty_repository(scratch, to.kind()).map_err(|source| EvidenceError::Scratch {
        path: scratch.to_owned(),
        source,
    })?;
    let run = Invocation::new([
        "diff-tree",
        "-p",
        "-r",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        &from.to_string(),
        &to.to_string(),
    ])
    .git_dir(scratch)
    .directory(scratch)
    .env("GIT_OBJECT_DIRECTORY", objects);
    Ok(git.run(run).await?)
}

/// The least that git takes for a repository.
fn empty_repository(at: &Path, format: gix::hash::Kind) -> std::io::Result<()> {
    let config = match format {
        gix::hash::Kind::Sha256 => {
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n"
        }
        _ => "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
    };
    std::fs::create_dir_all(at.join("refs"))?;
    std::fs::create_dir_all(at.join("objects"))?;
    std::fs::write(at.join("HEAD"), "ref: refs/heads/none\n")?;
    std::fs::write(at.join("config"), config)
}
