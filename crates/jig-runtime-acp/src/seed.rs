//! The files of the operator's that an agent needs in a role's HOME.

use std::path::{Path, PathBuf};

use jig_protocol::outcome::FailureClass;
use jig_runtime::{OperatorHome, Seed, SeedError, login};

use crate::agents::SeedPath;

/// Reads the files that are named.
///
/// # Errors
///
/// When one of them is not there or is no small regular file.
pub(crate) fn read(
    agent: &str,
    paths: &[SeedPath],
    operator: &OperatorHome,
) -> Result<Seed, SeedError> {
    let mut seed = Seed::default();
    for path in paths {
        let path = path.as_path();
        let at = operator.home.join(path);
        let content = login::read(&at).map_err(|error| SeedError {
            class: FailureClass::Auth,
            message: format!("{} cannot be read for agent {agent}: {error}", at.display()),
            hint: format!(
                "log in with the agent, or take the file out of `seed` of [acp.{agent}] in \
                 runtimes.toml; --no-seed-auth runs without"
            ),
        })?;
        for dir in parents(path) {
            if !seed.dirs.contains(&dir) {
                seed.dirs.push(dir);
            }
        }
        seed.files.push((path.to_owned(), content));
    }
    Ok(seed)
}

/// The directories above a relative path, the outermost first.
fn parents(path: &Path) -> Vec<PathBuf> {
    let mut above: Vec<PathBuf> = path
        .ancestors()
        .skip(1)
        .filter(|dir| !dir.as_os_str().is_empty())
        .map(Path::to_owned)
        .collect();
    above.reverse();
    above
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<SeedPath> {
        paths
            .iter()
            .map(|path| SeedPath::try_from(PathBuf::from(path)).unwrap())
            .collect()
    }

    #[test]
    fn files_come_with_their_directories() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        for file in ["a/b/c", "a/d", "e"] {
            std::fs::write(dir.path().join(file), file).unwrap();
        }
        let operator = OperatorHome {
            home: dir.path().to_owned(),
            env: Default::default(),
        };
        let seed = read("x", &paths(&["a/b/c", "a/d", "e"]), &operator).unwrap();
        assert_eq!(seed.dirs, [PathBuf::from("a"), PathBuf::from("a/b")]);
        assert_eq!(seed.files[1], (PathBuf::from("a/d"), b"a/d".to_vec()));
        assert_eq!(seed.files.len(), 3);
    }

    #[test]
    fn what_is_not_there_or_no_file_is_an_error_with_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("dir")).unwrap();
        let big = std::fs::File::create(dir.path().join("big")).unwrap();
        big.set_len(9 * 1024 * 1024).unwrap();
        let operator = OperatorHome {
            home: dir.path().to_owned(),
            env: Default::default(),
        };
        for path in ["none", "dir", "big"] {
            let error = read("x", &paths(&[path]), &operator).unwrap_err();
            assert_eq!(error.class, FailureClass::Auth);
            assert!(error.message.contains(path), "{}", error.message);
            assert!(error.hint.contains("[acp.x]"), "{}", error.hint);
        }
    }
}
