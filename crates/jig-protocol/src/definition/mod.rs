//! The definition language: what a workflow file may say.
//!
//! [`model`] holds the values everything downstream works with; they only come
//! into being through the parser, so whoever holds a [`Definition`] may rely on
//! every rule of `docs/definition.md`.

pub mod model;
pub mod name;
pub mod pattern;

pub use model::*;
pub use name::{InvalidName, Name};
pub use pattern::{DirGrant, InvalidPattern, PathPattern};
