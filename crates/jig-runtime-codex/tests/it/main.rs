//! Tests of the Codex adapter.

// `cfg(test)` tells clippy that helpers are test code too.
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod fuzzed;
#[cfg(test)]
mod real;
#[cfg(test)]
mod stub;
