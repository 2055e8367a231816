//! What stays of an attempt that ended, and what goes.

use jig_protocol::text;
use std::path::PathBuf;

use super::notes::keep_notes;
use super::prepare::PreparedAttempt;
use super::retention::remove_off_thread;
use crate::redact::Redactor;

/// What decides about the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisposePolicy {
    /// The work was accepted, and delivered as far as it was to be.
    pub accepted: bool,
    /// The tree differs from the base.
    pub changed: bool,
    /// The operator wants the tree kept.
    pub keep: bool,
    /// Something may still be running in the tree: it is not touched.
    pub unsafe_to_touch: bool,
}

impl DisposePolicy {
    /// Why the tree stays; `None` when it goes.
    #[must_use]
    pub const fn reason_to_keep(self) -> Option<&'static str> {
        if self.unsafe_to_touch {
            Some("something may still be running in it")
        } else if self.keep {
            Some("it was asked to be kept")
        } else if self.changed && !self.accepted {
            Some("its changes were not accepted")
        } else {
            None
        }
    }
}

/// What became of the attempt's directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disposed {
    /// The work tree and why it was kept, when it was; never the operator's own.
    pub tree_kept: Option<(PathBuf, String)>,
    /// What could not be done, in words.
    pub problems: Vec<String>,
}

/// Removes what no attempt keeps, and the tree unless the policy says
/// otherwise. `git/`, the trace and the logs stay.
///
/// Never fails: what could not be removed is named, and whatever stays of a
/// login is first.
pub async fn dispose(
    prepared: &PreparedAttempt,
    redactor: &Redactor,
    policy: DisposePolicy,
) -> Disposed {
    let mut disposed = Disposed::default();
    disposed.problems.extend(prepared.homes.remove_seeds());
    let (handoff, notes) = (
        prepared.dirs.handoff(),
        prepared.dirs.logs().join("handoff"),
    );
    let kept =
        std::fs::create_dir_all(&notes).and_then(|()| keep_notes(&handoff, &notes, redactor));
    match kept {
        Ok(0) => drop(std::fs::remove_dir(&notes)),
        Ok(_) => {}
        Err(error) => disposed
            .problems
            .push(format!("the handoff notes could not be kept: {error}")),
    }
    if !policy.unsafe_to_touch {
        for dir in prepared.dirs.transient() {
            if let Err(error) = remove_off_thread(dir).await {
                disposed.problems.push(text::with_causes(&error));
            }
        }
    }
    if prepared.is_in_place() {
        disposed.problems.extend(restore_index(prepared).await);
        let copies = prepared.dirs.operator_files();
        if copies.exists() && policy.changed && !policy.accepted {
            disposed.problems.push(format!(
                "your uncommitted files as they were before the run are in {}",
                copies.display()
            ));
        }
        return disposed;
    }
    dispose_tree(prepared, redactor, policy, &mut disposed).await;
    disposed
}

async fn dispose_tree(
    prepared: &PreparedAttempt,
    redactor: &Redactor,
    policy: DisposePolicy,
    disposed: &mut Disposed,
) {
    let tree = prepared.dirs.tree();
    let reason = policy.reason_to_keep().map(ToOwned::to_owned);
    let reason = reason.or_else(|| occupied(&tree, redactor));
    if let Some(reason) = reason {
        disposed.tree_kept = Some((tree, reason));
        return;
    }
    if let Err(error) = remove_off_thread(tree.clone()).await {
        let problem = text::with_causes(&error);
        disposed.tree_kept = Some((tree, problem.clone()));
        disposed.problems.push(problem);
    }
}

/// Says who works in a tree that nobody should work in: it is not pulled away
/// from under a process.
fn occupied(tree: &std::path::Path, redactor: &Redactor) -> Option<String> {
    let found = jig_process::processes_inside(tree).ok()?;
    let first = found.first()?;
    Some(format!(
        "{} process{} in it, the first is {}: {}",
        found.len(),
        if found.len() == 1 {
            " works"
        } else {
            "es work"
        },
        first.identity,
        redactor.text(&first.command_line),
    ))
}

/// In place: the operator's index comes back unless a commit was made.
async fn restore_index(prepared: &PreparedAttempt) -> Option<String> {
    let saved = prepared.saved_index.as_ref()?;
    match prepared.repo.head_commit().await {
        Ok(head) if head == prepared.base.commit() => saved
            .put_back()
            .err()
            .map(|error| format!("the index could not be put back: {error}")),
        Ok(_) => None,
        Err(error) => Some(text::with_causes(&error)),
    }
}
