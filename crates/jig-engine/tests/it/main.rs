//! The engine's integration tests: one binary, real git, real processes.

// `cfg(test)` tells clippy that helpers are test code too.
#[cfg(test)]
mod boundary;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod fuzzed;
#[cfg(test)]
mod gates;
#[cfg(test)]
mod home;
#[cfg(test)]
mod host;
#[cfg(test)]
mod redaction;
#[cfg(test)]
mod run;
