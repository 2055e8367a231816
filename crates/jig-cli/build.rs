//! Records the commit this binary is built from, read from the repository's
//! files: a build needs no git, and never fails for want of a commit.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let git = Path::new("../../.git");
    // The log of HEAD changes with every commit. Where there is none (a source
    // archive, a linked worktree) the version stays without a commit.
    let log = git.join("logs/HEAD");
    let Ok(text) = std::fs::read_to_string(&log) else {
        return;
    };
    println!("cargo::rerun-if-changed={}", log.display());
    // "<old id> <new id> <who> <when>\t<what>"
    let newest = text.lines().last().and_then(|line| line.split(' ').nth(1));
    if let Some(commit) = newest.filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        println!("cargo::rustc-env=JIG_BUILD_COMMIT={commit}");
    }
}
