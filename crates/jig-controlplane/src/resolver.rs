//! Who turns a ref into the commit that a job is pinned to.

use std::future::Future;

/// Resolves refs of repositories; implemented by whoever may run git.
pub trait RefResolver: Send + Sync + 'static {
    /// The commit that `reference` (a branch, a tag peeled to its commit; `None`
    /// for `HEAD`) names in `repository` now, as 40 or 64 lower-case hex digits.
    /// Bounded in time by the implementation, and exact: an ambiguous or a
    /// partial name is an error.
    ///
    /// # Errors
    ///
    /// A text that says why, for whoever asked for the run.
    fn resolve(
        &self,
        repository: &str,
        reference: Option<&str>,
    ) -> impl Future<Output = Result<String, String>> + Send;
}
