//! Which changes are permitted: a pure decision over the differences of two
//! captures.

use std::collections::BTreeMap;

use jig_protocol::definition::{DirGrant, PathPattern};
use jig_protocol::repo_path::RepoPath;

use super::steering;

/// What kind of thing a path is, as far as judging cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A directory; judged only when it is empty or its own mode changed.
    Directory,
    /// Anything else: a pipe, a socket, a device, something unreadable.
    Other,
}

/// One path that differs between the captures before and after an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The path.
    pub path: RepoPath,
    /// What was there before; `None` when nothing was.
    pub before: Option<Kind>,
    /// What is there now; `None` when nothing is.
    pub after: Option<Kind>,
    /// Whether the base commit tracks this path, or anything below it.
    pub tracked_in_base: bool,
    /// Whether the ignore rules of the base commit leave it out.
    pub ignored: bool,
    /// Whether no allowlist can permit what is there now: a kind or name that
    /// no commit can hold, a repository of its own, a submodule's content.
    pub hazard: bool,
    /// Whether the content is the same and only its write left a mark.
    pub transient: bool,
}

/// Whose changes are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgeKind {
    /// An agent: metadata it changed is a breach.
    Agent,
    /// A command of the operator: metadata it changed is put back.
    Code,
}

/// The rules an entry's changes are judged by.
#[derive(Debug, Clone, Copy)]
pub struct Judge<'a> {
    /// The role, or the phase of a command without one; named in the records.
    pub role: &'a str,
    /// What may be written; `None` is anything, empty is nothing.
    pub writes: Option<&'a [PathPattern]>,
    /// Where builds may write, whoever runs them.
    pub build_outputs: &'a [DirGrant],
    /// Whether the attempt branch may be moved forward.
    pub commits: bool,
    /// Whose changes they are.
    pub kind: JudgeKind,
}

impl Judge<'_> {
    /// Whether nothing may be written at all.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.writes.is_some_and(<[_]>::is_empty)
    }
}

/// What was decided about a set of differences.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judgement {
    /// Permitted changes that a commit can hold.
    pub touched: Vec<RepoPath>,
    /// Changes inside a build output grant.
    pub outputs: Vec<RepoPath>,
    /// Permitted changes of ignored paths.
    pub ignored: Vec<RepoPath>,
    /// Written and written back.
    pub transient: Vec<RepoPath>,
    /// Not permitted; to be undone.
    pub breached: Vec<RepoPath>,
    /// Directories that came or went with nothing but breached paths in them:
    /// to be undone with these, but no breach of their own.
    pub frames: Vec<RepoPath>,
}

/// Decides about every difference; `implied` are the directories that came or
/// went together with what they hold.
///
/// In this order: a build output where the base tracks nothing; a kind or name
/// that no commit may hold; files that steer the next agent; the allowlist.
#[must_use]
pub fn judge(differences: &[Difference], implied: &[RepoPath], rules: &Judge<'_>) -> Judgement {
    let mut judgement = Judgement::default();
    // Every directory above a difference, and whether any of these stays.
    let mut above: BTreeMap<RepoPath, bool> = BTreeMap::new();
    for difference in differences {
        let decision = decide(difference, rules);
        let list = match decision {
            Decision::Output => &mut judgement.outputs,
            Decision::Permitted if difference.ignored => &mut judgement.ignored,
            Decision::Permitted => &mut judgement.touched,
            Decision::Transient => &mut judgement.transient,
            Decision::Breach => &mut judgement.breached,
        };
        list.push(difference.path.clone());
        let mut directory = difference.path.parent();
        while let Some(dir) = directory {
            directory = dir.parent();
            *above.entry(dir).or_default() |= decision != Decision::Breach;
        }
    }
    judgement.frames = implied
        .iter()
        .filter(|dir| above.get(*dir) == Some(&false))
        .cloned()
        .collect();
    judgement
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Output,
    Permitted,
    Transient,
    Breach,
}

fn decide(difference: &Difference, rules: &Judge<'_>) -> Decision {
    let path = &difference.path;
    if !difference.tracked_in_base && is_output(difference, rules.build_outputs) {
        return Decision::Output;
    }
    if difference.transient {
        return if rules.is_read_only() {
            Decision::Breach
        } else {
            Decision::Transient
        };
    }
    if difference.hazard {
        return Decision::Breach;
    }
    let permitted = match steering::steers(path, difference.after == Some(Kind::Directory)) {
        Some(key) => rules.writes.is_some_and(|writes| {
            writes
                .iter()
                .any(|pattern| pattern.matches(path) && steering::names(pattern, key))
        }),
        None => allows(rules.writes, difference),
    };
    if permitted {
        Decision::Permitted
    } else {
        Decision::Breach
    }
}

/// Whether a grant covers the path: anything in the granted directory, and the
/// directory itself, but no file or link in its place.
pub(super) fn is_output(difference: &Difference, grants: &[DirGrant]) -> bool {
    let is_dir = difference.after.or(difference.before) == Some(Kind::Directory);
    let parent = difference.path.parent();
    grants.iter().any(|grant| {
        grant.covers(&difference.path)
            && (is_dir || parent.as_ref().is_some_and(|parent| grant.covers(parent)))
    })
}

fn allows(writes: Option<&[PathPattern]>, difference: &Difference) -> bool {
    let Some(writes) = writes else { return true };
    // An empty directory on the way to what may be written is no harm.
    let empty_dir = matches!(
        (difference.before, difference.after),
        (None, Some(Kind::Directory)) | (Some(Kind::Directory), None)
    );
    writes.iter().any(|pattern| {
        pattern.matches(&difference.path)
            || empty_dir && leads_to(pattern.literal_dir(), &difference.path)
    })
}

/// Whether `dir` is `path` or lies below it.
fn leads_to(dir: &str, path: &RepoPath) -> bool {
    dir.as_bytes()
        .strip_prefix(path.as_bytes())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Option<Kind> = Some(Kind::File);
    const DIR: Option<Kind> = Some(Kind::Directory);

    fn change(path: &str, before: Option<Kind>, after: Option<Kind>) -> Difference {
        Difference {
            path: path.into(),
            before,
            after,
            tracked_in_base: before.is_some(),
            ignored: false,
            hazard: false,
            transient: false,
        }
    }

    fn patterns(texts: &[&str]) -> Vec<PathPattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn verdict(differences: &[Difference], implied: &[&str], writes: Option<&[&str]>) -> Judgement {
        let writes = writes.map(patterns);
        let implied: Vec<RepoPath> = implied.iter().map(|path| (*path).into()).collect();
        let outputs: Vec<DirGrant> = vec!["target/**".parse().unwrap()];
        let rules = Judge {
            role: "builder",
            writes: writes.as_deref(),
            build_outputs: &outputs,
            commits: false,
            kind: JudgeKind::Agent,
        };
        judge(differences, &implied, &rules)
    }

    fn paths(texts: &[&str]) -> Vec<RepoPath> {
        texts.iter().map(|path| (*path).into()).collect()
    }

    #[test]
    fn absent_permits_empty_forbids_and_a_prefix_permits() {
        let edits = [change("src/a", FILE, FILE), change("b", None, FILE)];
        assert_eq!(verdict(&edits, &[], None).touched, paths(&["src/a", "b"]));
        assert_eq!(
            verdict(&edits, &[], Some(&[])).breached,
            paths(&["src/a", "b"])
        );
        let some = verdict(&edits, &[], Some(&["src/"]));
        assert_eq!(
            (some.touched, some.breached),
            (paths(&["src/a"]), paths(&["b"]))
        );
    }

    #[test]
    fn outputs_win_over_everything_but_never_over_tracked_paths() {
        let mut pipe = change("target/pipe", None, Some(Kind::Other));
        pipe.hazard = true;
        let tracked = change("target/tracked", FILE, FILE);
        let found = verdict(&[pipe, tracked], &[], Some(&[]));
        assert_eq!(found.outputs, paths(&["target/pipe"]));
        assert_eq!(found.breached, paths(&["target/tracked"]));
    }

    #[test]
    fn no_allowlist_permits_hazards_or_what_steers_the_next_agent() {
        let mut pipe = change("pipe", None, Some(Kind::Other));
        pipe.hazard = true;
        let steering = change(".claude/settings.json", None, FILE);
        let linked = change(".claude", DIR, Some(Kind::Link));
        for writes in [None, Some(["**"].as_slice())] {
            let edits = [pipe.clone(), steering.clone(), linked.clone()];
            assert_eq!(verdict(&edits, &[], writes).breached.len(), 3, "{writes:?}");
        }
        let named = verdict(&[steering], &[], Some(&[".claude/settings.json"]));
        assert_eq!(named.touched, paths(&[".claude/settings.json"]));
    }

    #[test]
    fn a_transient_write_is_a_breach_for_a_read_only_role_alone() {
        let mut write = change("a", FILE, FILE);
        write.transient = true;
        let found = verdict(std::slice::from_ref(&write), &[], Some(&["b"]));
        assert_eq!(found.transient, paths(&["a"]));
        assert_eq!(verdict(&[write], &[], Some(&[])).breached, paths(&["a"]));
    }

    #[test]
    fn ignored_paths_are_judged_alike_and_listed_apart() {
        let mut secret = change(".env", None, FILE);
        secret.ignored = true;
        let found = verdict(std::slice::from_ref(&secret), &[], None);
        assert_eq!((found.ignored, found.touched), (paths(&[".env"]), vec![]));
        assert_eq!(
            verdict(&[secret], &[], Some(&[])).breached,
            paths(&[".env"])
        );
    }

    #[test]
    fn directories_are_undone_with_their_content_only_when_nothing_in_them_stays() {
        let edits = [
            change("new/in/a", None, FILE),
            change("mixed/a", None, FILE),
            change("mixed/ok/b", None, FILE),
        ];
        let implied = ["new", "new/in", "mixed", "mixed/ok"];
        let found = verdict(&edits, &implied, Some(&["mixed/ok/**"]));
        assert_eq!(found.frames, paths(&["new", "new/in"]));
        assert_eq!(found.touched, paths(&["mixed/ok/b"]));
    }

    #[test]
    fn an_empty_directory_is_permitted_on_the_way_to_a_grant_and_nowhere_else() {
        let edits = [
            change("src", None, DIR),
            change("srcs", None, DIR),
            change("x", None, DIR),
        ];
        let found = verdict(&edits, &[], Some(&["src/deep/*.rs"]));
        assert_eq!(
            (found.touched, found.breached),
            (paths(&["src"]), paths(&["srcs", "x"]))
        );
        let chmod = verdict(&[change("src", DIR, DIR)], &[], Some(&["src/deep/*.rs"]));
        assert_eq!(chmod.breached, paths(&["src"]));
    }
}
