//! The translator of Codex's stream.

use jig_runtime_codex::CodexDialect;
use serde_json::Value;

#[path = "../../../../jig-testkit/fuzz/stream.rs"]
mod any;

pub(crate) fn check(data: &[u8]) {
    for structured in [false, true] {
        let make = |continues| CodexDialect::new(continues).structured(structured);
        any::check(data, make, |last| {
            let is_start = last.get("type").and_then(Value::as_str) == Some("thread.started");
            last.get("thread_id")?.as_str().filter(|_| is_start)
        });
    }
}
