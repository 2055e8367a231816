//! The boundary check: which crate may use which.
//!
//! The arrows are compared twice. First from the manifests alone, which needs no
//! lock file, so that a planted arrow is named even when the lock file is stale;
//! then from `cargo tree`, which sees the whole way down to the last third-party
//! package. `layers.toml` is the only place that grants anything.

mod arrows;
mod compare;
mod layers;
mod manifests;
mod reach;
mod tree;

pub use compare::check;
pub use layers::{CrateRules, Exception, ExceptionKind, Layers};
pub use manifests::{Arrow, ArrowKind, Manifests, Member};
pub use tree::Tree;
