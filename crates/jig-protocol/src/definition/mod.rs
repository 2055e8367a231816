//! The definition language: what a workflow file may say.
//!
//! [`parse()`] turns text into a [`Definition`], or into everything that is
//! wrong with it. [`model`] holds the values everything downstream works with;
//! they only come into being through the parser, so whoever holds a
//! [`Definition`] may rely on every rule of `docs/definition.md`.
//!
//! Inside, in the order a text passes through: `yaml` (a tree that knows where
//! everything stands), `grammar` (the language as a table), `decode` (single
//! values), `validate` (how they fit together).

pub mod bounds;
pub mod code;
mod cursor;
mod decode;
pub mod diagnostic;
pub mod duration;
pub mod explain;
pub mod features;
mod grammar;
pub mod lock;
pub mod model;
pub mod name;
pub mod parse;
pub mod pattern;
mod runtime_name;
pub mod schema;
mod suggest;
pub mod template;
mod validate;
mod writers;
mod yaml;

pub use bounds::{Bounds, PhaseBound, bounds, worst_case_sends};
pub use code::{Code, Severity};
pub use diagnostic::{Diagnostic, DiagnosticJson, Span};
pub use explain::{Explanation, explain};
pub use features::{NOT_YET_RUNNABLE, features_in_use, not_yet_runnable};
pub use lock::{InvalidLock, Lock};
pub use model::*;
pub use name::{InvalidName, Name};
pub use parse::{Parsed, parse};
pub use pattern::{DirGrant, InvalidPattern, PathPattern};
pub use schema::json_schema;
