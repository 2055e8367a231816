//! What holds for any script; the fuzz target of `jig-testkit/fuzz` calls it too.

mod script;

#[path = "../../../../jig-testkit/fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn scripts() {
    replay("script", script::check);
    replay::files("../../examples/scripts".as_ref(), script::check);
}
