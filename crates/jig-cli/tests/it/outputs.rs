//! Where results go, and what becomes of the exit code when they do not arrive.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::env::{Env, finish};
use crate::trial::{DONE, ONE_AGENT, Trial};

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

/// Whatever the limit on file sizes stops first, jig ends by itself and says so.
#[test]
fn a_limit_on_file_sizes_is_told_and_leaves_nobody() {
    let script = format!("roles: {{builder: [{{write: {{src/a.txt: \"two\\n\"}}, {DONE}}}]}}");
    let mut seen = std::collections::BTreeSet::new();
    for kib in [1, 4, 16, 32, 64, 100, 200, 4_000, 16_000] {
        let mut trial = Trial::new(ONE_AGENT, &script);
        let mut limited = Command::new("bash");
        limited.args([
            "-c",
            "ulimit -f \"$1\"; shift; exec \"$@\"",
            "-",
            &kib.to_string(),
        ]);
        let plain = trial.command();
        limited.arg(plain.get_program()).args(plain.get_args());
        limited.current_dir(trial.env.path("home"));
        limited.env_clear().envs(&trial.env.vars).process_group(0);
        limited
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let done = finish(limited.spawn().unwrap());
        assert_eq!(done.signal, None, "{kib} KiB: {done:?}");
        let code = done.code.unwrap();
        assert!([0, 1, 3].contains(&code), "{kib} KiB: {done:?}");
        assert!(code == 0 || !done.stderr.is_empty(), "{kib} KiB: {done:?}");
        seen.insert(code);
        trial.assert_nobody_left();
        trial.assert_next_run_works();
    }
    assert!(seen.contains(&0) && seen.len() > 1, "{seen:?}");
}
