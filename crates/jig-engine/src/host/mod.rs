//! Everything around an attempt on disk: prepare, keep a manifest, deliver,
//! dispose, reclaim.
//!
//! It lives here once and is used by every caller of the engine: the direct
//! run and, later, the worker. Start reading at [`run_attempt`].

mod checkout_lock;
pub mod deliver;
pub mod dispose;
pub mod layout;
pub mod manifest;
mod notes;
pub mod prepare;
pub mod prompts;
pub mod reclaim;
pub mod retention;
mod run;
mod saved_index;

pub use deliver::{DeliverError, Delivery, deliver};
pub use dispose::{DisposePolicy, Disposed, dispose};
pub use layout::AttemptDirs;
pub use manifest::{Manifest, ManifestError, ManifestFile, ManifestMode};
pub use prepare::{
    HostConfig, Mode, PrepareError, PrepareSpec, PreparedAttempt, check_clean, prepare,
};
pub use prompts::{PromptError, RolePrompts, check_prompts};
pub use reclaim::{KeptTree, ReclaimError, ReclaimPlan, Reclaimed, reclaim};
pub use retention::release_tree;
pub use run::{HostedError, HostedOutcome, HostedRun, run_attempt};
