//! Private files of a send, in the role's HOME.

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Writes `files` into `home`, readable by nobody else. Returns their paths.
///
/// An agent may write its HOME, so whatever lies under a name is removed first
/// and never followed.
///
/// # Errors
///
/// The path that could not be written. What was written before it is removed.
pub(super) fn write(
    home: &Path,
    files: &[(String, Vec<u8>)],
) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut written = Vec::new();
    for (name, content) in files {
        let path = home.join(name);
        match write_one(name, &path, content) {
            Ok(()) => written.push(path),
            Err(error) => {
                remove(&written);
                return Err((path, error));
            }
        }
    }
    Ok(written)
}

fn write_one(name: &str, path: &Path, content: &[u8]) -> io::Result<()> {
    if name.contains('/') {
        return Err(io::Error::other("a private file lies directly in HOME"));
    }
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path)?,
        Ok(_) => std::fs::remove_file(path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)
}

/// Removes what [`write`] wrote; what is gone already is fine.
pub(super) fn remove(paths: &[PathBuf]) {
    for path in paths {
        if let Err(error) = std::fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "a private file of a send was not removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_an_agent_planted_is_replaced_and_never_followed() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "untouched").unwrap();
        std::os::unix::fs::symlink(&victim, home.join("a")).unwrap();
        std::fs::create_dir_all(home.join("b/c")).unwrap();
        let files = [
            ("a".to_owned(), b"1".to_vec()),
            ("b".to_owned(), b"2".to_vec()),
        ];
        let written = write(&home, &files).unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
        assert_eq!(std::fs::read_to_string(home.join("a")).unwrap(), "1");
        let mode = std::fs::symlink_metadata(home.join("b"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        remove(&written);
        assert_eq!(std::fs::read_dir(&home).unwrap().count(), 0);
    }

    #[test]
    fn a_name_is_no_path_and_a_failure_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let files = [("a".to_owned(), vec![]), ("../b".to_owned(), vec![])];
        assert!(write(home.path(), &files).is_err());
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }
}
