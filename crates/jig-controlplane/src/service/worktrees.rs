//! The ledger of work trees that are kept on disk until someone confirms that
//! they may go.

use jig_protocol::ids::AttemptId;
use jig_protocol::text;
use jig_protocol::time::Timestamp;

use crate::executor::RetainedTree;
use crate::store::{Store, StoreError, WorktreeRecord, WorktreeState, WriteTx, worktrees};

/// The longest reason that is kept, in bytes.
const REASON_BYTES: usize = 1_000;

/// Why a ledger entry was not changed.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The ledger does not know it.
    #[error("no work tree of attempt {0} is kept")]
    NotFound(AttemptId),
    /// It is not on disk any more.
    #[error("the work tree of attempt {0} was lost")]
    NotRetained(AttemptId),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Records that a work tree stays on disk.
pub(crate) async fn retain(
    tx: &mut WriteTx,
    attempt: AttemptId,
    holder: &str,
    repository: &str,
    tree: &RetainedTree,
    now: Timestamp,
) -> Result<(), StoreError> {
    let record = WorktreeRecord {
        attempt_id: attempt,
        holder_id: holder.to_owned(),
        repository: repository.to_owned(),
        path: tree.path.to_string_lossy().into_owned(),
        reason: text::head(&tree.reason, REASON_BYTES).to_owned(),
        state: WorktreeState::Retained,
        created_at: now,
        updated_at: now,
    };
    worktrees::retain(tx.db(), &record).await
}

/// Marks a kept work tree as released; the caller has removed it, or will.
/// Releasing one that was released changes nothing.
///
/// # Errors
///
/// [`WorktreeError`].
pub async fn release_worktree(
    store: &Store,
    attempt: AttemptId,
) -> Result<WorktreeRecord, WorktreeError> {
    change(store, attempt, WorktreeState::Released).await
}

/// Marks a kept work tree as lost: it is not where it should lie.
///
/// # Errors
///
/// [`WorktreeError`].
pub async fn worktree_missing(
    store: &Store,
    attempt: AttemptId,
) -> Result<WorktreeRecord, WorktreeError> {
    change(store, attempt, WorktreeState::Lost).await
}

async fn change(
    store: &Store,
    attempt: AttemptId,
    to: WorktreeState,
) -> Result<WorktreeRecord, WorktreeError> {
    let now = store.clock().now();
    let mut tx = store.begin("change a kept work tree's state").await?;
    let known = worktrees::by_attempt(tx.db(), attempt).await?;
    let known = known.ok_or(WorktreeError::NotFound(attempt))?;
    if known.state == to {
        return Ok(known);
    }
    if known.state != WorktreeState::Retained
        || !worktrees::advance(tx.db(), attempt, known.state, to, now).await?
    {
        return Err(WorktreeError::NotRetained(attempt));
    }
    let stored = worktrees::by_attempt(tx.db(), attempt).await?;
    tx.commit().await?;
    stored.ok_or(WorktreeError::NotFound(attempt))
}
