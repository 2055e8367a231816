//! What the tests share.

use std::sync::Arc;
use std::time::Duration;

use jig_process::command::Keep;
use jig_process::{
    CommandOutcome, CommandSpec, Deadline, Environment, Spec, SystemClock, run_command,
};
use jig_testkit::host;

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
pub(crate) const NEVER: Duration = Duration::from_secs(600);
