//! Everything around an attempt on disk: prepare, keep a manifest, deliver,
//! dispose, reclaim.
//!
//! It lives here once and is used by every caller of the engine: the direct
//! run and, later, the worker. Start reading at [`layout`].

pub mod layout;

pub use layout::AttemptDirs;
