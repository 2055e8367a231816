//! What the tests share.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use jig_process::command::Keep;
use jig_process::{
    CommandOutcome, CommandSpec, Deadline, Environment, Spec, SystemClock, run_command,
};
use jig_testkit::processes::marked;
use jig_testkit::{host, host_path, wait_until_async};
use rustix::process::{Pid, Signal};

/// An environment in which `/bin/sh` and its friends work.
pub(crate) fn env() -> Environment {
    Environment::empty().with("PATH", "/usr/bin:/bin")
}

/// A deadline that never comes.
pub(crate) fn forever() -> Deadline {
    Deadline::new(Arc::new(SystemClock::new()))
}

/// A shell command in `/`, with a marker in its environment that whatever it
/// starts inherits.
pub(crate) fn shell(line: &str, marker: &str) -> Spec {
    Spec::shell(line, "/", env().with("MARK", marker))
}

pub(crate) fn command(spec: Spec) -> CommandSpec {
    CommandSpec {
        spec,
        stdout: Keep::default(),
        stderr: Keep::default(),
    }
}

/// Runs a command to its end.
pub(crate) async fn run(spec: Spec) -> CommandOutcome {
    run_command(&host(), command(spec), &forever())
        .await
        .unwrap()
}

/// A grace that no test reaches: whoever waits for it hangs visibly.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// A grace that is over soon, for those who do not make use of it.
pub(crate) const SHORT: Duration = Duration::from_millis(100);

/// Waits until `count` live processes carry the marker.
pub(crate) async fn wait_marked(marker: &str, count: usize) {
    wait_until_async("the processes to run", || marked(marker).len() >= count).await;
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// The test host under a name of its own, by which its supervisors are found.
pub(crate) struct NamedHost {
    _dir: tempfile::TempDir,
    pub(crate) path: PathBuf,
    pub(crate) marker: String,
}

impl NamedHost {
    pub(crate) fn new(marker: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(dir.path(), open).unwrap();
        let path = dir.path().join(marker);
        // By another process: a file that this one has open for writing while
        // another thread forks could not be executed ("text file busy").
        let copied = Command::new("cp").arg(host_path()).arg(&path).status();
        assert!(copied.unwrap().success());
        Self {
            _dir: dir,
            path,
            marker: marker.to_owned(),
        }
    }

    /// Plays an embedder.
    pub(crate) fn embed(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("MARK", &self.marker)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    }
}

/// Kills a process at once and takes its exit status.
pub(crate) fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}
