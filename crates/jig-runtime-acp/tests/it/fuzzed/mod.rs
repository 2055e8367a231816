//! What holds for any stream; the fuzz target of `jig-testkit/fuzz` calls it too.

mod stream;

#[path = "../../../../jig-testkit/fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn streams() {
    replay("acp_stream", stream::check);
}
