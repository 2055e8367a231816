//! One file per command.

pub(crate) mod attempt;
pub(crate) mod def;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod gc;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod version;
pub(crate) mod worktree;
