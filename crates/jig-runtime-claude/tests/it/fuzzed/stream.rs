//! The translator of Claude Code's stream.

use jig_runtime_claude::ClaudeDialect;
use serde_json::Value;

#[path = "../../../../jig-testkit/fuzz/stream.rs"]
mod any;

pub(crate) fn check(data: &[u8]) {
    any::check(data, ClaudeDialect::new, |last| {
        let is_result = last.get("type").and_then(Value::as_str) == Some("result");
        last.get("session_id")?.as_str().filter(|_| is_result)
    });
}
