//! From the tree to the model: types, words, ranges, grammars of single values.
//!
//! Everything that can be judged by looking at one object is judged here;
//! what needs two (a phase and its role, an edge and its target) is judged in
//! `validate`. A value with a problem is left out and the problem recorded, so
//! that everything is reported in one go.

mod chain;
mod policy;
mod roster;
mod top;
mod writers;

pub(super) use top::{Draft, definition};
