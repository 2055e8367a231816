//! Real processes, real signals.

// `cfg(test)` tells clippy that helpers are test code too.
#[cfg(test)]
mod commands;
#[cfg(test)]
mod death;
#[cfg(test)]
mod reclaim;
#[cfg(test)]
mod seclusion;
#[cfg(test)]
mod stopping;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tools;
