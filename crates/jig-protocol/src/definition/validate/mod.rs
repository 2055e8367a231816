//! What needs more than one object to judge: references, edges, groups, policy.

mod chain;
mod edges;
mod group;
mod policy;
mod prompts;
mod whole;
mod writers;

pub(super) use policy::acceptance_check;
pub(super) use whole::check;
