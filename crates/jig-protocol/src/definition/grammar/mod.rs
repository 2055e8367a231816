//! The language as a table: every object, its keys, their shapes.
//!
//! The decoder takes known and required keys from here and the JSON Schema is
//! made of it, so that neither can know a key the other does not.

mod chain;
mod policy;
mod shape;
mod writers;

pub(super) use chain::{CODE_KEYS, DEFINITION, EDGE, GATE, GATES, PHASE, ROLE};
pub(super) use policy::{CI, CI_REPAIR, CI_RERUN, LIMITS, PUBLISH, SANDBOX, SANDBOX_READ};
pub(super) use shape::{Field, Object, Shape};
pub(super) use writers::{CHECK, CONFLICT, MEMBER, WRITERS};
