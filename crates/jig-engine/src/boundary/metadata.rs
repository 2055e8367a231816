//! What becomes of changed git metadata: a pure decision.

use jig_git::changes::{MetadataChange, MetadataKind, Owner};

use super::judge::{Judge, JudgeKind};

/// What is done about one changed piece of metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// The branch went forward, as it may.
    Permitted,
    /// Put back, and recorded; no harm was meant.
    PutBack,
    /// Put back, and a breach.
    Breach,
    /// A breach in the operator's repository, where jig writes nothing.
    BreachOutside,
}

/// Decides about one change. `went_forward` says whether the change moves a
/// branch (or a detached `HEAD`) from a commit to a descendant of it.
pub(super) fn decide(
    change: &MetadataChange,
    branch: Option<&str>,
    went_forward: bool,
    rules: &Judge<'_>,
) -> Decision {
    if change.owner == Owner::Lender {
        return Decision::BreachOutside;
    }
    let is_code = rules.kind == JudgeKind::Code;
    match change.kind {
        MetadataKind::Head | MetadataKind::Reference => {
            let may_move = rules.commits || is_code;
            if may_move && went_forward && is_the_branch(change, branch) {
                Decision::Permitted
            } else {
                Decision::Breach
            }
        }
        // What a git process that was stopped leaves behind.
        MetadataKind::Lock => Decision::PutBack,
        _ if is_code => Decision::PutBack,
        _ => Decision::Breach,
    }
}

/// Whether the change is one of the branch that is checked out, or of `HEAD`
/// itself where none is.
fn is_the_branch(change: &MetadataChange, branch: Option<&str>) -> bool {
    match branch {
        Some(branch) => change.kind == MetadataKind::Reference && change.name.as_os_str() == branch,
        None => change.kind == MetadataKind::Head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(owner: Owner, kind: MetadataKind, name: &str) -> MetadataChange {
        MetadataChange {
            owner,
            kind,
            name: name.into(),
            before: None,
            after: None,
        }
    }

    fn decided(change: &MetadataChange, kind: JudgeKind, commits: bool, forward: bool) -> Decision {
        let rules = Judge {
            role: "r",
            writes: None,
            build_outputs: &[],
            commits,
            kind,
        };
        decide(change, Some("refs/heads/jig/x/1"), forward, &rules)
    }

    #[test]
    fn only_the_attempt_branch_moves_and_only_forward() {
        let own = change(
            Owner::Attempt,
            MetadataKind::Reference,
            "refs/heads/jig/x/1",
        );
        let other = change(Owner::Attempt, MetadataKind::Reference, "refs/heads/other");
        let head = change(Owner::Attempt, MetadataKind::Head, "/att/git/HEAD");
        for (what, kind, commits, forward, expected) in [
            (&own, JudgeKind::Agent, true, true, Decision::Permitted),
            (&own, JudgeKind::Code, false, true, Decision::Permitted),
            (&own, JudgeKind::Agent, false, true, Decision::Breach),
            (&own, JudgeKind::Agent, true, false, Decision::Breach),
            (&own, JudgeKind::Code, true, false, Decision::Breach),
            (&other, JudgeKind::Code, true, true, Decision::Breach),
            (&head, JudgeKind::Code, true, true, Decision::Breach),
        ] {
            assert_eq!(
                decided(what, kind, commits, forward),
                expected,
                "{what:?} {kind:?}"
            );
        }
    }

    #[test]
    fn commands_are_forgiven_what_agents_are_not_and_the_lender_is_left_alone() {
        for kind in [MetadataKind::Config, MetadataKind::Hook, MetadataKind::Info] {
            let what = change(Owner::Attempt, kind, "/att/git/x");
            assert_eq!(
                decided(&what, JudgeKind::Agent, true, true),
                Decision::Breach
            );
            assert_eq!(
                decided(&what, JudgeKind::Code, false, false),
                Decision::PutBack
            );
            let outside = change(Owner::Lender, kind, "/repo/.git/x");
            assert_eq!(
                decided(&outside, JudgeKind::Code, true, true),
                Decision::BreachOutside
            );
        }
        let lock = change(Owner::Attempt, MetadataKind::Lock, "/att/git/index.lock");
        assert_eq!(
            decided(&lock, JudgeKind::Agent, false, false),
            Decision::PutBack
        );
    }
}
