//! Programs that only npm delivers, pinned by a lock file and installed into a
//! cache outside the clone.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::commands::Outcome;
use crate::workspace::Workspace;

/// Set where a program that is missing is a failure rather than a skip.
const REQUIRED: &str = "JIG_REQUIRE_REAL";

/// The same for the agent of the Agent Client Protocol, which is asked for by
/// itself.
const REQUIRED_ACP: &str = "JIG_REQUIRE_REAL_ACP";

/// How often a download is tried.
const TRIES: usize = 3;

/// The agent programs that the adapters' tests drive.
pub fn real_clis(workspace: &Workspace) -> Result<Outcome> {
    install(workspace, "real-clis", REQUIRED)
}

/// The agent that the adapter for the Agent Client Protocol is tested with, on
/// request.
pub fn real_acp(workspace: &Workspace) -> Result<Outcome> {
    install(workspace, "real-acp", REQUIRED_ACP)
}

/// Brings the npm project `crates/jig-testkit/<name>` into the cache, unless it
/// is there in the versions that its lock file names.
fn install(workspace: &Workspace, name: &str, required: &str) -> Result<Outcome> {
    let project = workspace.root().join("crates/jig-testkit").join(name);
    let place = cache(|name| std::env::var_os(name))?.join(name);
    if is_installed(&project, &place) {
        return Ok(Outcome::Ran(Vec::new()));
    }
    if !has_npm() {
        let is_required = std::env::var_os(required).is_some_and(|value| value != "0");
        ensure!(!is_required, "{required} is set, but there is no npm");
        return Ok(Outcome::Skipped("there is no npm".to_owned()));
    }
    let mut tries = 1;
    while let Err(error) = download(&project, &place) {
        if tries == TRIES {
            return Err(error);
        }
        tries += 1;
    }
    Ok(Outcome::Ran(Vec::new()))
}

/// Where what is installed stays between clones.
fn cache(var: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let var = |name| var(name).filter(|value| !value.is_empty());
    let base = match (var("XDG_CACHE_HOME"), var("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => Path::new(&home).join(".cache"),
        (None, None) => bail!("neither XDG_CACHE_HOME nor HOME is set"),
    };
    Ok(base.join("jig-ci"))
}

/// An installation gets its place once it is whole, so its lock file stands for
/// all of it.
fn is_installed(project: &Path, place: &Path) -> bool {
    let lock = |dir: &Path| fs::read(dir.join("package-lock.json"));
    matches!((lock(project), lock(place)), (Ok(wanted), Ok(found)) if wanted == found)
}

fn has_npm() -> bool {
    Command::new("npm")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Installs beside the place and then takes it, so that whoever looks finds the
/// old programs, none, or the new ones.
fn download(project: &Path, place: &Path) -> Result<()> {
    let mut beside = place.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    remove(&beside)?;
    fs::create_dir_all(&beside).with_context(|| format!("cannot make {}", beside.display()))?;
    let installed = npm_ci(project, &beside).and_then(|()| take(&beside, place));
    if installed.is_err() {
        remove(&beside)?;
    }
    installed
}

/// Scripts of packages are not run: the programs need none, and nothing that is
/// downloaded runs before a test starts it on purpose.
fn npm_ci(project: &Path, dir: &Path) -> Result<()> {
    for name in ["package.json", "package-lock.json"] {
        fs::copy(project.join(name), dir.join(name))
            .with_context(|| format!("cannot copy {name} to {}", dir.display()))?;
    }
    let status = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(dir)
        .stdin(Stdio::null())
        .status()
        .context("cannot start npm")?;
    ensure!(
        status.success(),
        "`npm ci` failed ({status}) in {}",
        dir.display()
    );
    Ok(())
}

fn take(beside: &Path, place: &Path) -> Result<()> {
    remove(place)?;
    fs::rename(beside, place).with_context(|| format!("cannot make {}", place.display()))
}

fn remove(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", dir.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_lock_file_is_an_installation() {
        let dir = tempfile::tempdir().unwrap();
        let (project, place) = (dir.path().join("project"), dir.path().join("place"));
        fs::create_dir(&project).unwrap();
        fs::create_dir(&place).unwrap();
        assert!(!is_installed(&project, &place), "no lock file is none");
        fs::write(project.join("package-lock.json"), "1").unwrap();
        assert!(!is_installed(&project, &place));
        fs::write(place.join("package-lock.json"), "2").unwrap();
        assert!(!is_installed(&project, &place));
        fs::write(place.join("package-lock.json"), "1").unwrap();
        assert!(is_installed(&project, &place));
    }

    #[test]
    fn a_new_installation_replaces_the_old_one_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (beside, place) = (dir.path().join("beside"), dir.path().join("place"));
        for (dir, file) in [(&beside, "new"), (&place, "old")] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join(file), "").unwrap();
        }
        take(&beside, &place).unwrap();
        assert!(place.join("new").is_file() && !place.join("old").exists());
        assert!(!beside.exists());
    }

    #[test]
    fn the_cache_is_the_users() {
        let found = |pairs: &[(&str, &str)]| {
            let pairs = pairs.to_vec();
            cache(move |wanted| {
                let pair = pairs.iter().find(|(name, _)| *name == wanted);
                pair.map(|(_, value)| OsString::from(value))
            })
        };
        let home = ("HOME", "/home/me");
        assert_eq!(found(&[home]).unwrap(), Path::new("/home/me/.cache/jig-ci"));
        let set = found(&[("XDG_CACHE_HOME", "/cache"), home]).unwrap();
        assert_eq!(set, Path::new("/cache/jig-ci"));
        let empty = found(&[("XDG_CACHE_HOME", ""), home]).unwrap();
        assert_eq!(empty, Path::new("/home/me/.cache/jig-ci"));
        assert!(found(&[]).is_err());
    }
}
