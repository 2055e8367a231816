//! Every rule is shown a workspace that breaks it, and one that does not.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test that calls them"
)]

mod boundary_arrows;
mod boundary_closed;
mod boundary_reach;
mod commands;
mod documents;
mod fixture;
mod generated;
mod real_rules;
mod runner;
mod size;
mod tidy;
mod words;
mod workflows;
