//! The genuine agent programs, where they are installed.
//!
//! `cargo xtask real-clis` installs the versions that
//! `crates/jig-testkit/real-clis/package-lock.json` pins into a cache outside
//! the clone. A test that drives one begins by asking for it here: without it
//! the test says that it skips and returns, unless `JIG_REQUIRE_REAL=1` says
//! that it must be there.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The pinned versions. An installation of others does not count.
const LOCK: &str = include_str!("../real-clis/package-lock.json");

#[cfg(target_arch = "aarch64")]
const CLAUDE: &str = "node_modules/@anthropic-ai/claude-code-linux-arm64/claude";
#[cfg(not(target_arch = "aarch64"))]
const CLAUDE: &str = "node_modules/@anthropic-ai/claude-code-linux-x64/claude";

#[cfg(target_arch = "aarch64")]
const CODEX: &str =
    "node_modules/@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex";
#[cfg(not(target_arch = "aarch64"))]
const CODEX: &str =
    "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";

/// The genuine Claude Code, or `None` after a line that says that the test
/// skips.
///
/// # Panics
///
/// When it is not installed but required.
#[must_use]
pub fn claude() -> Option<PathBuf> {
    found("Claude Code", CLAUDE)
}

/// The genuine Codex; see [`claude`].
///
/// # Panics
///
/// When it is not installed but required.
#[must_use]
pub fn codex() -> Option<PathBuf> {
    found("Codex", CODEX)
}

fn found(name: &str, below: &str) -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let problem = match installation(var) {
        Ok(dir) => {
            let program = dir.join(below);
            if program.is_file() {
                return Some(program);
            }
            format!("{} is not there", program.display())
        }
        Err(problem) => problem,
    };
    let problem = format!("{name}: {problem}; `cargo xtask real-clis` installs it");
    assert!(
        var("JIG_REQUIRE_REAL").is_none_or(|value| value == "0"),
        "JIG_REQUIRE_REAL is set, but {problem}"
    );
    // Where the runner shows it, also for a test that passes.
    let _ = writeln!(std::io::stderr(), "skipped: {problem}");
    None
}

/// Where the programs are: `JIG_REAL_CLIS`, else the cache, if it holds the
/// versions that are pinned.
fn installation(var: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, String> {
    if let Some(dir) = var("JIG_REAL_CLIS") {
        return Ok(dir.into());
    }
    let cache = match (var("XDG_CACHE_HOME"), var("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => Path::new(&home).join(".cache"),
        (None, None) => return Err("there is no cache directory".to_owned()),
    };
    let dir = cache.join("jig-ci/real-clis");
    match std::fs::read_to_string(dir.join("package-lock.json")) {
        Ok(lock) if lock == LOCK => Ok(dir),
        Ok(_) => Err(format!("{} holds other versions", dir.display())),
        Err(_) => Err("it is not installed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(pairs: &[(&str, &Path)]) -> Result<PathBuf, String> {
        let value = |wanted: &str| {
            let pair = pairs.iter().find(|(name, _)| *name == wanted);
            pair.map(|(_, path)| path.as_os_str().to_owned())
        };
        installation(value)
    }

    #[test]
    fn only_the_pinned_versions_count() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        assert!(asked(&[]).unwrap_err().contains("no cache"));
        assert!(asked(&[("HOME", home)]).unwrap_err().contains("not inst"));
        let dir = home.join(".cache/jig-ci/real-clis");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("package-lock.json"), "{}").unwrap();
        assert!(asked(&[("HOME", home)]).unwrap_err().contains("versions"));
        std::fs::write(dir.join("package-lock.json"), LOCK).unwrap();
        assert_eq!(asked(&[("HOME", home)]), Ok(dir.clone()));
        let cache = home.join(".cache");
        assert_eq!(asked(&[("XDG_CACHE_HOME", &cache)]), Ok(dir));
    }

    #[test]
    fn a_directory_that_is_named_goes_before_the_cache() {
        let named = Path::new("/named");
        let found = asked(&[("JIG_REAL_CLIS", named), ("HOME", Path::new("/home"))]);
        assert_eq!(found, Ok(named.to_owned()));
    }

    #[test]
    fn the_lock_pins_contents_and_names_no_host() {
        assert!(LOCK.contains("claude-code-linux-x64") && LOCK.contains("codex-linux-x64"));
        assert!(!LOCK.contains("resolved") && !LOCK.contains("http"));
        let packages = LOCK.matches("\"node_modules/").count();
        assert_eq!(LOCK.matches("\"integrity\": \"sha512-").count(), packages);
    }
}
