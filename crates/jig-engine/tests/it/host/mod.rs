//! Around an attempt on disk: from prepare to reclaim.

mod deliver;
pub(super) mod dispose;
mod hosted;
mod in_place;
mod prepare;
mod reclaim;
