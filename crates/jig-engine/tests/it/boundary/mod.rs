//! The boundary around one entry, on real trees with real git.

mod commits;
mod metadata;
mod outputs;
mod restore;
mod writes;
