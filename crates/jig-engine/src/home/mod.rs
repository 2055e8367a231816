//! HOMEs and environments: one HOME per role, another bare one for commands,
//! and exactly the variables each may see.
//!
//! No role finds what another left in its HOME, no command finds a login, and
//! nothing of the operator's own HOME is there but where toolchains live.
//! Start reading at [`Homes`].

mod caches;
mod cargo_config;
mod environments;
mod seed;

pub use caches::repository_key;
pub use environments::{CommandVars, HomeError, Homes};
