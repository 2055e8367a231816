//! Around an attempt on disk: from prepare to reclaim.

mod deliver;
pub(super) mod dispose;
mod in_place;
mod prepare;
mod reclaim;
