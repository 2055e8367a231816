//! Everything around an attempt on disk: prepare, keep a manifest, deliver,
//! dispose, reclaim.
//!
//! It lives here once and is used by every caller of the engine: the direct
//! run and, later, the worker. Start reading at [`layout`].

pub mod layout;
pub mod manifest;
mod notes;
mod remove;

pub use layout::AttemptDirs;
pub use manifest::{Manifest, ManifestError, ManifestFile, ManifestMode};
pub use remove::RemoveError;
