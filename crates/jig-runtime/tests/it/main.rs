//! Tests of the supervision loop, with shell scripts as agents.

// `cfg(test)` tells clippy that helpers are test code too.
#[cfg(test)]
mod bench;
#[cfg(test)]
mod clocks;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod streams;
