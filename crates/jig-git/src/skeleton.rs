//! The files of an attempt's repository, written by jig itself.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::hash::Kind as HashKind;

use crate::attempt_repo::{AttemptPlan, AttemptRepo, AttemptRepoError};
use crate::repository::Repository;

impl AttemptRepo {
    /// Has git leave these directories out of what `git add` finds, written as
    /// lines of an ignore file. Only in a repository of the attempt's own:
    /// nothing is written into the operator's.
    ///
    /// It is a help to who commits, no guarantee: an ignore file in the tree
    /// goes before it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn exclude(&self, directories: &[String]) -> Result<(), AttemptRepoError> {
        if self.is_in_place() || directories.is_empty() {
            return Ok(());
        }
        let path = self.git_dir().join("info/exclude");
        let text: String = directories.iter().flat_map(|line| [line, "\n"]).collect();
        std::fs::write(&path, text).map_err(|source| AttemptRepoError::Io { path, source })
    }
}

/// Writes the skeleton: configuration, alternates, shallow boundary, branch,
/// `HEAD`, and the tree's pointer.
pub(crate) fn write_repository(
    lender: &Repository,
    plan: &AttemptPlan,
) -> Result<(), AttemptRepoError> {
    let (git_dir, tree) = (plan.directory.join("git"), plan.directory.join("tree"));
    let branch = plan.branch();
    let branch_file = git_dir.join("refs/heads").join(&branch);
    let parent = branch_file.parent().unwrap_or(&git_dir);
    for directory in [
        &tree,
        &git_dir.join("objects/info"),
        &git_dir.join("objects/pack"),
        &git_dir.join("info"),
        parent,
    ] {
        std::fs::create_dir_all(directory).map_err(|source| AttemptRepoError::Io {
            path: directory.to_path_buf(),
            source,
        })?;
    }
    let write = |path: PathBuf, bytes: &[u8]| {
        std::fs::write(&path, bytes).map_err(|source| AttemptRepoError::Io { path, source })
    };
    write(
        git_dir.join("config"),
        configuration(lender.object_format).as_bytes(),
    )?;
    write(
        git_dir.join("HEAD"),
        format!("ref: refs/heads/{branch}\n").as_bytes(),
    )?;
    write(
        git_dir.join("objects/info/alternates"),
        &alternates(lender)?,
    )?;
    if lender.is_shallow {
        let path = lender.common_dir.join("shallow");
        let bytes = std::fs::read(&path).map_err(|source| AttemptRepoError::Io { path, source })?;
        write(git_dir.join("shallow"), &bytes)?;
    }
    if let Some(commit) = plan.base.commit() {
        write(branch_file, format!("{commit}\n").as_bytes())?;
    }
    let mut pointer = b"gitdir: ".to_vec();
    pointer.extend_from_slice(git_dir.as_os_str().as_bytes());
    pointer.push(b'\n');
    write(tree.join(".git"), &pointer)
}

/// The whole configuration of an attempt's repository.
fn configuration(format: HashKind) -> String {
    let (version, extensions) = match format {
        HashKind::Sha256 => (1, "[extensions]\n\tobjectFormat = sha256\n"),
        _ => (0, ""),
    };
    let ignore_case = cfg!(target_os = "macos");
    format!(
        "[core]\n\
         \trepositoryFormatVersion = {version}\n\
         \tfileMode = true\n\
         \tbare = false\n\
         \tlogAllRefUpdates = true\n\
         \tignoreCase = {ignore_case}\n\
         \thooksPath = /dev/null\n\
         \tfsmonitor = false\n\
         \tcommitGraph = false\n\
         {extensions}\
         [user]\n\
         \tname = jig\n\
         \temail = jig@localhost\n\
         [commit]\n\
         \tgpgSign = false\n\
         [tag]\n\
         \tgpgSign = false\n\
         [gc]\n\
         \tauto = 0\n\
         [maintenance]\n\
         \tauto = false\n"
    )
}

/// The lender's objects and everything the lender borrows itself: git follows
/// only a few steps, so the chain is flattened.
fn alternates(lender: &Repository) -> Result<Vec<u8>, AttemptRepoError> {
    let mut found = vec![lender.objects_dir().to_owned()];
    let mut at = 0;
    while let Some(directory) = found.get(at).cloned() {
        at += 1;
        let file = directory.join("info/alternates");
        let bytes = match std::fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(source) => return Err(AttemptRepoError::Io { path: file, source }),
        };
        for line in bytes.split(|byte| *byte == b'\n') {
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let line = unquote(line);
            let path = directory.join(std::ffi::OsStr::from_bytes(&line));
            let path = std::fs::canonicalize(&path).unwrap_or(path);
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    let mut text = Vec::new();
    for path in found {
        text.extend_from_slice(&quote_alternate(&path));
        text.push(b'\n');
    }
    Ok(text)
}

/// One line of an alternates file, without its end.
pub(crate) fn quote_alternate(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.contains(&b'\n') {
        // git's own quoting, which is also a path's JSON form.
        jig_protocol::repo_path::RepoPath::from_bytes(bytes)
            .to_string()
            .into_bytes()
    } else {
        bytes.to_vec()
    }
}

/// A line of an alternates file, which git may have quoted.
fn unquote(line: &[u8]) -> Vec<u8> {
    std::str::from_utf8(line)
        .ok()
        .filter(|text| text.starts_with('"'))
        .and_then(jig_protocol::repo_path::RepoPath::from_json_form)
        .map_or_else(|| line.to_vec(), |path| path.as_bytes().to_vec())
}
