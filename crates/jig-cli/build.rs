//! Records the commit this binary is built from.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The log of HEAD changes with every commit; where there is none (a source
    // archive, a linked worktree) the version stays without a commit.
    let log = Path::new("../../.git/logs/HEAD");
    if !log.exists() {
        return;
    }
    println!("cargo::rerun-if-changed={}", log.display());
    // A build never fails for want of git: then the commit is left out.
    let Ok(output) = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
    else {
        return;
    };
    if let (true, Ok(text)) = (output.status.success(), String::from_utf8(output.stdout)) {
        println!("cargo::rustc-env=JIG_BUILD_COMMIT={}", text.trim());
    }
}
