//! The decoder's tools: a place in the tree, a collector of problems, and typed
//! access to the keys of an object.

mod context;
mod fields;
mod scalar;
mod value;

pub(super) use context::{Context, Path, push_capped};
pub(super) use fields::{Fields, report_repeated};
pub(super) use value::{count, parse_as, text};
