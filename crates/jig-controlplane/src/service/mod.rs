//! One operation per file: each loads, lets `jig_protocol::lifecycle` decide,
//! saves under a guard and commits, all in one transaction. Only
//! `transition.rs` changes a state.

mod admit_run;
mod change_job;
mod claim_job;
mod complete_attempt;
mod pin_targets;
mod prune;
mod record_events;
mod register_holder;
mod renew_lease;
mod sweep;
mod transition;
mod worktrees;

pub use admit_run::{Admission, AdmitError, Admitted, Target, admit};
pub(crate) use admit_run::{NewRun, admit_as};
pub use change_job::{cancel_job, discard_job, retry_job};
pub use claim_job::{Claim, ClaimError, ClaimRequest, claim_job, claim_next};
pub(crate) use complete_attempt::lose_attempt;
pub use complete_attempt::{CompleteError, complete_attempt};
pub use pin_targets::{PinError, UnpinnedTarget, pin_targets};
pub use prune::{PrunePlan, apply_prune, plan_prune};
pub(crate) use record_events::record_events_unowned;
pub use record_events::{Recorded, record_events};
pub use register_holder::{Registration, register_holder};
pub use renew_lease::{Renewal, renew_lease};
pub use sweep::{Plan as SweepPlan, aggregate_active_runs, sweep};
pub use transition::TransitionError;
pub(crate) use worktrees::retain as retain_worktree;
pub use worktrees::{WorktreeError, release_worktree, worktree_missing};
