//! The house rules of this repository, as code: which crate may use which, which
//! words belong where, how long a file may get, which derived files must be in
//! step. `cargo xtask check` runs all of them and is what CI runs.
//!
//! Every rule takes a [`Workspace`](workspace::Workspace), so that the tests can
//! plant a violation in a small workspace of their own, and returns
//! [`Finding`](finding::Finding)s that say what to do. A rule that cannot get at
//! its data is an error, never a pass. This crate uses none of ours: it must be
//! able to say that they are broken.
//!
//! Start reading at [`check`], then [`boundary`] and [`words`]; the data of the
//! rules is in `xtask/rules/`.

#![warn(missing_docs)]

pub mod architecture;
pub mod boundary;
pub mod check;
pub mod commands;
pub mod documents;
pub mod finding;
pub mod generated;
pub mod npm;
pub mod picture;
pub mod run;
pub mod size;
pub mod source;
pub mod tidy;
pub mod words;
pub mod workflows;
pub mod workspace;
