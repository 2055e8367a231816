//! Around an attempt on disk: from prepare to reclaim.

mod deliver;
mod dispose;
mod in_place;
mod prepare;
mod reclaim;
