//! The commits between two.

use std::collections::{HashSet, VecDeque};

use gix::ObjectId;

use crate::attempt_repo::AttemptRepo;
use crate::commit::CommitError;
use crate::objects::ObjectError;

/// More new commits than this are not looked at one by one.
const MOST_NEW_COMMITS: usize = 10_000;

impl AttemptRepo {
    /// Every commit that `to` has and `from` has not, each with its first
    /// parent; the newest first. `from` is an ancestor of `to`, or there was
    /// none.
    ///
    /// # Errors
    /// When a commit cannot be read, or there are more than anybody makes in an
    /// attempt.
    pub async fn commits_since(
        &self,
        from: Option<ObjectId>,
        to: ObjectId,
    ) -> Result<Vec<(ObjectId, Option<ObjectId>)>, CommitError> {
        let repo = self.clone();
        tokio::task::spawn_blocking(move || commits_since(&repo, from, to))
            .await
            .unwrap_or(Err(CommitError::Interrupted))
    }
}

pub(crate) fn commits_since(
    repo: &AttemptRepo,
    from: Option<ObjectId>,
    to: ObjectId,
) -> Result<Vec<(ObjectId, Option<ObjectId>)>, CommitError> {
    let mut known = HashSet::new();
    if let Some(from) = from {
        // What a merge brings in may reach behind `from`: none of that is new.
        // The search ends where the new commits end, which is soon.
        known.insert(from);
        known.extend(repo.base().commit());
    }
    let mut found = Vec::new();
    let mut seen = HashSet::from([to]);
    let mut pending = VecDeque::from([to]);
    while let Some(id) = pending.pop_front() {
        if known.contains(&id) {
            continue;
        }
        if found.len() >= MOST_NEW_COMMITS {
            return Err(CommitError::TooManyCommits {
                most: MOST_NEW_COMMITS,
            });
        }
        let parents = match repo.objects().commit_parents(&id) {
            Ok(parents) => parents,
            // A shallow history ends somewhere.
            Err(ObjectError::Missing { .. }) if from.is_some() => continue,
            Err(error) => return Err(error.into()),
        };
        found.push((id, parents.first().copied()));
        pending.extend(parents.into_iter().filter(|parent| seen.insert(*parent)));
    }
    Ok(found)
}
