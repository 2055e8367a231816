//! The `jig` binary.
fn main() {}
