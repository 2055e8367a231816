//! A command's part of a phase: run it, read its report, verify it.

mod report;
mod run;
