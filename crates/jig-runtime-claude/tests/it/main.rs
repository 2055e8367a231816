//! Tests of the Claude Code adapter.

mod fixtures;
mod hostile;
mod stub;
