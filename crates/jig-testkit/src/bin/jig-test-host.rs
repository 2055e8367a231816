//! The program tests use as host of the hidden modes.
fn main() {}
