//! What holds for any bytes; the fuzz targets of `jig-testkit/fuzz` call it too.

mod manifest;
pub(crate) mod redactor;

#[path = "../../../../jig-testkit/fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn manifests() {
    replay("manifest", manifest::check);
}

#[test]
fn secrets() {
    replay("redactor", redactor::check);
}
