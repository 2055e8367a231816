//! Pinning: every repository of a run gets its base commit before anything is
//! stored.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::admit_run::{Target, is_commit_id};
use crate::resolver::RefResolver;

/// How many repositories are asked at once.
const AT_ONCE: usize = 8;

/// A repository whose base is still to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpinnedTarget {
    /// The repository's identity.
    pub repository: String,
    /// The ref to start from; `None` for `HEAD`.
    pub base_ref: Option<String>,
}

/// Why a base was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PinError {
    /// The text cannot be a ref; git was not asked.
    #[error("{0:?} is no name of a ref")]
    InvalidRef(String),
    /// The ref could not be resolved.
    #[error("cannot resolve {reference} of {repository}: {problem}")]
    Unresolvable {
        /// The repository.
        repository: String,
        /// The ref.
        reference: String,
        /// Why.
        problem: String,
    },
}

/// Resolves every target, several at once; in the order given.
///
/// # Errors
///
/// [`PinError`] of the first target in order that could not be pinned.
pub async fn pin_targets<R: RefResolver>(
    resolver: &Arc<R>,
    targets: Vec<UnpinnedTarget>,
) -> Result<Vec<Target>, PinError> {
    for reference in targets.iter().filter_map(|target| target.base_ref.as_ref()) {
        if !may_be_ref(reference) {
            return Err(PinError::InvalidRef(reference.clone()));
        }
    }
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut pinning = JoinSet::new();
    for (index, target) in targets.into_iter().enumerate() {
        let (resolver, turns) = (Arc::clone(resolver), Arc::clone(&turns));
        pinning.spawn(async move {
            // Never closed: without a turn it would only be asked earlier.
            let _turn = turns.acquire().await;
            (index, pin(&*resolver, target).await)
        });
    }
    let mut pinned = Vec::new();
    while let Some(joined) = pinning.join_next().await {
        match joined {
            Ok(answer) => pinned.push(answer),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    pinned.sort_by_key(|(index, _)| *index);
    pinned.into_iter().map(|(_, target)| target).collect()
}

async fn pin<R: RefResolver>(resolver: &R, target: UnpinnedTarget) -> Result<Target, PinError> {
    let reference = target.base_ref.as_deref();
    let resolved = resolver.resolve(&target.repository, reference).await;
    let checked = resolved.and_then(|base| {
        if is_commit_id(&base) {
            Ok(base)
        } else {
            Err(format!("{base:?} is no commit id"))
        }
    });
    match checked {
        Ok(base_sha) => Ok(Target {
            repository: target.repository,
            base_ref: target.base_ref,
            base_sha,
        }),
        Err(problem) => Err(PinError::Unresolvable {
            reference: reference.unwrap_or("HEAD").to_owned(),
            repository: target.repository,
            problem,
        }),
    }
}

/// Whether git could take it for a ref, and never for an option.
fn may_be_ref(text: &str) -> bool {
    let forbidden = |character: char| {
        character.is_control() || character == ' ' || "~^:?*[\\".contains(character)
    };
    !text.is_empty()
        && !text.starts_with('-')
        && !text.contains("..")
        && !text.contains("@{")
        && !text.chars().any(forbidden)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Answers with forty digits, later targets sooner; counts who asks at once.
    #[derive(Default)]
    struct Resolver {
        asked: Mutex<Vec<String>>,
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl RefResolver for Resolver {
        async fn resolve(&self, repository: &str, _: Option<&str>) -> Result<String, String> {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            self.asked.lock().unwrap().push(repository.to_owned());
            for _ in 0..(100 - repository.len()) {
                tokio::task::yield_now().await;
            }
            self.now.fetch_sub(1, Ordering::SeqCst);
            match repository {
                "gone" => Err("no such repository".to_owned()),
                "odd" => Ok("HEAD".to_owned()),
                other => Ok(format!("{:040}", other.len())),
            }
        }
    }

    fn target(repository: &str, base_ref: Option<&str>) -> UnpinnedTarget {
        UnpinnedTarget {
            repository: repository.to_owned(),
            base_ref: base_ref.map(str::to_owned),
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn targets_are_pinned_in_order_and_a_few_at_once() {
        let resolver = Arc::new(Resolver::default());
        let targets = (1..=40).map(|n| target(&"r".repeat(n), None)).collect();
        let pinned = pin_targets(&resolver, targets).await.unwrap();
        for (n, target) in (1..).zip(&pinned) {
            assert_eq!(target.base_sha, format!("{n:040}"));
        }
        assert_eq!(pinned.len(), 40);
        assert!(resolver.most.load(Ordering::SeqCst) <= AT_ONCE);
    }

    #[tokio::test]
    async fn what_git_would_take_for_something_else_is_never_asked() {
        let resolver = Arc::new(Resolver::default());
        for bad in [
            "",
            "--upload-pack=x",
            "-",
            "a b",
            "a..b",
            "HEAD~1",
            "main^",
            "a:b",
            "@{u}",
            "a\nb",
        ] {
            let refused = pin_targets(&resolver, vec![target("r", Some(bad))]).await;
            assert_eq!(refused, Err(PinError::InvalidRef(bad.to_owned())));
        }
        assert!(resolver.asked.lock().unwrap().is_empty());
        for good in ["main", "refs/heads/x", "v1.0", "feature/ä-b_c"] {
            assert!(
                pin_targets(&resolver, vec![target("r", Some(good))])
                    .await
                    .is_ok(),
                "{good}"
            );
        }
    }

    #[tokio::test]
    async fn a_target_that_cannot_be_pinned_is_named() {
        let resolver = Arc::new(Resolver::default());
        for (repository, told) in [
            ("gone", "cannot resolve HEAD of gone: no such repository"),
            (
                "odd",
                "cannot resolve HEAD of odd: \"HEAD\" is no commit id",
            ),
        ] {
            let targets = vec![target("fine", None), target(repository, None)];
            let refused = pin_targets(&resolver, targets).await.unwrap_err();
            assert_eq!(refused.to_string(), told);
        }
    }
}
