//! Tests of the protocol's adapter.

// `cfg(test)` tells clippy that helpers are test code too.
#[cfg(test)]
mod fuzzed;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod stub;
