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

/// One of the npm projects.
struct Project {
    /// Its directory in this crate and in the cache, and the part of xtask.
    name: &'static str,
    /// The pinned versions. An installation of others does not count.
    lock: &'static str,
    /// The variable that names an installation, over the cache.
    place: &'static str,
    /// The variable that says that it must be there.
    required: &'static str,
}

const CLIS: Project = Project {
    name: "real-clis",
    lock: include_str!("../real-clis/package-lock.json"),
    place: "JIG_REAL_CLIS",
    required: "JIG_REQUIRE_REAL",
};

/// Large, and in need of node: asked for by itself.
const ACP: Project = Project {
    name: "real-acp",
    lock: include_str!("../real-acp/package-lock.json"),
    place: "JIG_REAL_ACP",
    required: "JIG_REQUIRE_REAL_ACP",
};

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
    CLIS.program("Claude Code", CLAUDE)
}

/// The genuine Codex; see [`claude`].
///
/// # Panics
///
/// When it is not installed but required.
#[must_use]
pub fn codex() -> Option<PathBuf> {
    CLIS.program("Codex", CODEX)
}

/// The program of the genuine Codex behind the Agent Client Protocol, for node
/// to run; see [`claude`]. Only where it was asked for.
///
/// # Panics
///
/// When it is not installed but required.
#[must_use]
pub fn codex_acp() -> Option<PathBuf> {
    let below = "node_modules/@agentclientprotocol/codex-acp/dist/index.js";
    ACP.program("codex-acp", below)
}

impl Project {
    fn program(&self, name: &str, below: &str) -> Option<PathBuf> {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let problem = match self.installation(var) {
            Ok(dir) => {
                let program = dir.join(below);
                if program.is_file() {
                    return Some(program);
                }
                format!("{} is not there", program.display())
            }
            Err(problem) => problem,
        };
        let problem = format!("{name}: {problem}; `cargo xtask {}` installs it", self.name);
        let required = self.required;
        assert!(
            var(required).is_none_or(|value| value == "0"),
            "{required} is set, but {problem}"
        );
        // Where the runner shows it, also for a test that passes.
        let _ = writeln!(std::io::stderr(), "skipped: {problem}");
        None
    }

    /// Where the programs are: what the variable names, else the cache, if it
    /// holds the versions that are pinned.
    fn installation(&self, var: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, String> {
        if let Some(dir) = var(self.place) {
            return Ok(dir.into());
        }
        let cache = match (var("XDG_CACHE_HOME"), var("HOME")) {
            (Some(cache), _) => PathBuf::from(cache),
            (None, Some(home)) => Path::new(&home).join(".cache"),
            (None, None) => return Err("there is no cache directory".to_owned()),
        };
        let dir = cache.join("jig-ci").join(self.name);
        match std::fs::read_to_string(dir.join("package-lock.json")) {
            Ok(lock) if lock == self.lock => Ok(dir),
            Ok(_) => Err(format!("{} holds other versions", dir.display())),
            Err(_) => Err("it is not installed".to_owned()),
        }
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
        CLIS.installation(value)
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
        std::fs::write(dir.join("package-lock.json"), CLIS.lock).unwrap();
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
    fn the_locks_pin_contents_and_name_no_host() {
        let lock = CLIS.lock;
        assert!(lock.contains("claude-code-linux-x64") && lock.contains("codex-linux-x64"));
        assert!(ACP.lock.contains("codex-acp"));
        for lock in [CLIS.lock, ACP.lock] {
            assert!(!lock.contains("resolved") && !lock.contains("http"));
            let packages = lock.matches("\"node_modules/").count();
            assert_eq!(lock.matches("\"integrity\": \"sha512-").count(), packages);
        }
    }
}
