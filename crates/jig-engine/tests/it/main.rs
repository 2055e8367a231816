//! The engine's integration tests: one binary, real git, real processes.

mod redaction;
