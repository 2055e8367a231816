//! Private files of a send, in the role's HOME.

use std::io;
use std::path::{Path, PathBuf};

use jig_process::beneath::{remove_beneath, write_beneath};

/// Writes `files` into `home`, readable by nobody else, with the directories on
/// the way.
///
/// An agent may write its HOME, so whatever lies under a name is replaced and
/// never followed, and a link in a directory's place neither.
///
/// # Errors
///
/// The path that could not be written. What was written before it is removed.
pub(super) fn write(home: &Path, files: &[(String, Vec<u8>)]) -> Result<(), (PathBuf, io::Error)> {
    for (at, (below, content)) in files.iter().enumerate() {
        if let Err(error) = write_beneath(home, Path::new(below), content) {
            remove(home, files.get(..at).unwrap_or_default());
            return Err((home.join(below), error));
        }
    }
    Ok(())
}

/// Removes what [`write`] wrote; what is gone already is fine.
pub(super) fn remove(home: &Path, files: &[(String, Vec<u8>)]) {
    for (below, _) in files {
        if let Err(error) = remove_beneath(home, Path::new(below)) {
            let path = home.join(below);
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
        std::fs::create_dir(dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("../elsewhere", home.join("d")).unwrap();
        let files = [
            ("a".to_owned(), b"1".to_vec()),
            ("b".to_owned(), b"2".to_vec()),
            ("d/e/f".to_owned(), b"3".to_vec()),
        ];
        write(&home, &files).unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
        assert_eq!(std::fs::read_to_string(home.join("a")).unwrap(), "1");
        let mode = std::fs::symlink_metadata(home.join("b"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(home.join("d/e/f")).unwrap(), "3");
        let elsewhere = std::fs::read_dir(dir.path().join("elsewhere")).unwrap();
        assert_eq!(elsewhere.count(), 0);
        remove(&home, &files);
        assert!(!home.join("a").exists() && !home.join("b").exists());
        assert!(!home.join("d/e/f").exists());
    }

    #[test]
    fn no_name_leads_out_of_home_and_a_failure_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let files = [("a".to_owned(), vec![]), ("../b".to_owned(), vec![])];
        assert!(write(home.path(), &files).is_err());
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }
}
