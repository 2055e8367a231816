//! Where results go, and what becomes of the exit code when they do not arrive.

use std::process::Stdio;

use crate::env::{Env, finish};

/// `jig version` with this as its standard output: the code, and stderr.
fn version_into(stdout: Stdio) -> (Option<i32>, String) {
    let env = Env::new();
    let child = env
        .command(&env.path("home"), &["version"])
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let done = finish(child);
    (done.code, done.stderr)
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_could_not_be_written_is_no_success() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let (code, stderr) = version_into(full.unwrap().into());
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("standard output"), "{stderr}");
}

#[test]
fn a_reader_that_has_gone_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(version_into(writer.into()), (Some(0), String::new()));
}

#[test]
fn a_missing_directory_for_temporary_files_is_named_with_what_to_do() {
    let mut env = Env::new();
    let missing = env.path("missing");
    env.vars.insert("TMPDIR".into(), missing.clone().into());
    let repo = env.repo("repo", &[]);
    let definition = env.file("def.yaml", crate::trial::ONE_AGENT);
    let args = ["run", "--def", definition.to_str().unwrap(), "x"];
    let done = env.jig(&repo, &args);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.stderr.contains("$TMPDIR") && done.stderr.contains(missing.to_str().unwrap()),
        "{done:?}"
    );
}
