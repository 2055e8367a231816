//! `jig` as a user runs it: the real binary, real repositories, a real store.

// `cfg(test)` tells clippy that helpers are test code too.
#[cfg(test)]
mod acp;
#[cfg(test)]
mod boundary;
#[cfg(test)]
mod definitions;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod direct;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod env;
#[cfg(test)]
mod evidence;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod help;
#[cfg(test)]
mod housekeeping;
#[cfg(test)]
mod interrupts;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod logins;
#[cfg(test)]
mod outputs;
#[cfg(test)]
mod races;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod real;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod repositories;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod stock;
#[cfg(test)]
mod support;
#[cfg(test)]
mod toolchains;
#[cfg(test)]
mod trial;
