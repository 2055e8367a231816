//! Real processes, real signals.

// `cfg(test)` tells clippy that helpers are test code too.
#[cfg(test)]
mod commands;
#[cfg(test)]
mod support;
