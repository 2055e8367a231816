//! What a child's environment holds: composed exactly, inherited never.
//!
//! The operator's environment is an input value. Nothing here reads the
//! process's own, and the file system is asked through a function.

mod compose;
mod tools;

pub use compose::{Composition, Environment, HOME_FAMILY, is_never_taken};
pub use tools::{
    CACHES, CacheKind, CacheLink, PASSED, TOOLCHAINS, ToolCache, Toolchain, cache_links,
};
