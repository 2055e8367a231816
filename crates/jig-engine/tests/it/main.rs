//! The engine's integration tests: one binary, real git, real processes.

mod boundary;
mod fixture;
mod gates;
mod home;
mod host;
mod redaction;
mod run;
