//! Integration tests of `jig-git`: real git, isolated from the user's
//! configuration.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers outside test functions; a skipped test says so"
)]

mod conversions;
mod main_road;
mod metadata;
mod outside_writes;
mod planted_programs;
mod repositories;
mod restore_properties;
mod support;
