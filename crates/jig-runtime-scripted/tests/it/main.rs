//! Tests of the scripted agent: a real process below a real supervisor.

// `cfg(test)` tells clippy that helpers are test code too.
#[cfg(test)]
mod bench;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod fuzzed;
#[cfg(test)]
mod meeting;
#[cfg(test)]
mod steps;
