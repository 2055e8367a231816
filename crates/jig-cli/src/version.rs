//! What this build is.

/// The crate's version.
pub(crate) const SHORT: &str = env!("CARGO_PKG_VERSION");

/// The commit it was built from, where the build could tell.
pub(crate) const COMMIT: Option<&str> = option_env!("JIG_BUILD_COMMIT");
