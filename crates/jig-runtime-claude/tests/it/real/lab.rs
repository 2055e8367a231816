//! The place in which the sends are made.

use std::sync::Arc;

use jig_runtime_claude::{ClaudeConfig, ClaudeRuntime};
use jig_testkit::model::{ModelServer, Script, Step};

pub(super) type Lab = jig_testkit::lab::Lab<ClaudeRuntime>;

/// `None`, after a line that says so, where the program is not installed.
pub(super) fn lab(steps: impl IntoIterator<Item = Step>) -> Option<Lab> {
    let program = jig_testkit::real::claude()?;
    let server = ModelServer::start(Script::new().anthropic(steps));
    let mut env = server.claude_env();
    // One failure is enough to be classified.
    env.push(("CLAUDE_CODE_MAX_RETRIES".into(), "0".into()));
    Some(Lab::new(server, env, |stub, _| {
        ClaudeRuntime::new(ClaudeConfig {
            program,
            asker: stub.asker(),
            random: Arc::new(|| *b"0123456789abcdef"),
        })
    }))
}
