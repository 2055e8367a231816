//! Disposing: what goes on every end, and what stays for whom.

use std::time::Duration;

use jig_engine::host::retention::{GcPlan, Needed, apply, snapshot};
use jig_engine::host::{DisposePolicy, PreparedAttempt, dispose};
use jig_engine::redact::Redactor;
use jig_protocol::limits::Retention;

use crate::fixture::{FREE, Fixture, no_secrets};

const ACCEPTED: DisposePolicy = DisposePolicy {
    accepted: true,
    changed: true,
    keep: false,
    unsafe_to_touch: false,
};

/// Removes everything of an attempt, as garbage collection does.
pub(crate) async fn forget(fixture: &Fixture, prepared: &PreparedAttempt) {
    let disposed = dispose(prepared, &no_secrets(), ACCEPTED).await;
    assert!(disposed.problems.is_empty(), "{disposed:?}");
    let found = snapshot(&fixture.config.data_dir, &|_| false).unwrap();
    let retention = Retention {
        age: Duration::ZERO,
        attempts: 0,
    };
    let plan = GcPlan::new(found, retention, fixture.config.clock.now());
    let report = apply(&plan, &fixture.config.git).await;
    assert!(report.problems.is_empty(), "{report:?}");
    assert_eq!(report.removed.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tree_goes_or_stays_by_what_became_of_the_work() {
    for (policy, stays) in [
        (ACCEPTED, false),
        (
            DisposePolicy {
                keep: true,
                ..ACCEPTED
            },
            true,
        ),
        (
            DisposePolicy {
                accepted: false,
                ..ACCEPTED
            },
            true,
        ),
        (
            DisposePolicy {
                accepted: false,
                changed: false,
                ..ACCEPTED
            },
            false,
        ),
        (
            DisposePolicy {
                unsafe_to_touch: true,
                ..ACCEPTED
            },
            true,
        ),
    ] {
        let fixture = Fixture::new(&[("a", "a\n")]);
        let attempt = fixture.attempt().await;
        let dirs = attempt.prepared.dirs.clone();
        let disposed = dispose(&attempt.prepared, &no_secrets(), policy).await;
        assert!(disposed.problems.is_empty(), "{disposed:?}");
        assert_eq!(dirs.tree().exists(), stays, "{policy:?}");
        assert_eq!(disposed.tree_kept.is_some(), stays, "{policy:?}");
        let left: Vec<_> = dirs
            .transient()
            .into_iter()
            .filter(|dir| dir.exists())
            .collect();
        assert_eq!(!left.is_empty(), policy.unsafe_to_touch, "{left:?}");
        assert!(dirs.git().exists() && dirs.manifest().exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_are_kept_redacted_and_hostile_homes_go() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let attempt = fixture.attempt().await;
    let dirs = &attempt.prepared.dirs;
    std::fs::write(dirs.handoff().join("plan.md"), "use hunter2-secret here").unwrap();
    let outside = fixture.repo.scratch().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("keep"), "x").unwrap();
    attempt.act(&format!(
        "cd ../roles/builder/home; ln -s '{}' link; mkdir -p ro/deep; echo x > ro/deep/f; chmod 500 ro/deep ro",
        outside.display()
    ));
    let redactor = Redactor::new([("KEY", "hunter2-secret")]);
    let disposed = dispose(&attempt.prepared, &redactor, ACCEPTED).await;
    assert!(disposed.problems.is_empty(), "{disposed:?}");
    let note = std::fs::read_to_string(dirs.logs().join("handoff/plan.md")).unwrap();
    assert_eq!(note, "use [redacted:KEY] here");
    assert!(!dirs.root.join("roles").exists() && !dirs.handoff().exists());
    assert!(outside.join("keep").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_somebody_works_in_is_not_pulled_away() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let attempt = fixture.attempt().await;
    let mut sleeper = std::process::Command::new("sleep")
        .arg("600.125")
        .current_dir(attempt.tree())
        .spawn()
        .unwrap();
    let redactor = Redactor::new([("TOKEN", "600.125")]);
    let disposed = dispose(&attempt.prepared, &redactor, ACCEPTED).await;
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let (tree, reason) = disposed.tree_kept.unwrap();
    assert!(tree.join("a").exists());
    assert!(reason.contains("sleep "), "{reason}");
    assert!(!reason.contains("600.125"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_collection_takes_the_pin_with_the_repository_and_no_kept_tree() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let mut attempt = fixture.attempt().await;
    let verdict = attempt.entry(FREE, "echo b > a").await;
    assert!(verdict.breaches.is_empty());
    let rejected = DisposePolicy {
        accepted: false,
        ..ACCEPTED
    };
    dispose(&attempt.prepared, &no_secrets(), rejected).await;
    let retention = Retention {
        age: Duration::ZERO,
        attempts: 0,
    };
    let now = fixture.config.clock.now();
    let plan_now = |running| {
        let found = snapshot(&fixture.config.data_dir, &|_| running).unwrap();
        GcPlan::new(found, retention, now)
    };
    let plan = plan_now(false);
    assert!(plan.remove.is_empty());
    assert_eq!(plan.stay[0].needed, Some(Needed::WorkTree));
    assert!(fixture.repo.refs().contains("refs/jig/pins/"));

    std::fs::remove_dir_all(attempt.prepared.dirs.tree()).unwrap();
    assert!(plan_now(true).remove.is_empty(), "a running one stays");
    let report = apply(&plan_now(false), &fixture.config.git).await;
    assert_eq!(report.removed.len(), 1, "{report:?}");
    assert!(!attempt.prepared.dirs.root.exists());
    assert!(!fixture.repo.refs().contains("refs/jig/"));
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_collection_works_when_the_lender_is_gone() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let attempt = fixture.attempt().await;
    dispose(&attempt.prepared, &no_secrets(), ACCEPTED).await;
    std::fs::remove_dir_all(fixture.repo.path()).unwrap();
    let found = snapshot(&fixture.config.data_dir, &|_| false).unwrap();
    let retention = Retention {
        age: Duration::ZERO,
        attempts: 0,
    };
    let plan = GcPlan::new(found, retention, fixture.config.clock.now());
    let report = apply(&plan, &fixture.config.git).await;
    assert_eq!(
        (report.removed.len(), report.problems.len()),
        (1, 0),
        "{report:?}"
    );
}
