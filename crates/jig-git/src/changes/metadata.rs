//! Everything in and around a git directory that steers git.
//!
//! Recorded before any git process is started, for the attempt's repository and
//! for the lender. What an agent could have changed is compared byte for byte
//! (references by value, since packing them changes nothing). `read_metadata`
//! reads it, `put_back` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::entry::Stat;
use crate::attempt_repo::AttemptRepo;
use crate::refs::RefValue;
use crate::repository::RefFormat;

/// Whose metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The attempt's own repository (the operator's, when working in place).
    Attempt,
    /// The repository that lends its objects.
    Lender,
}

/// What a piece of metadata is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetadataKind {
    /// `HEAD`.
    Head,
    /// A branch, tag or other reference.
    Reference,
    /// A configuration file, or one that it includes.
    Config,
    /// A hook.
    Hook,
    /// Ignore rules, attributes, grafts, the shallow boundary.
    Info,
    /// Where objects are borrowed from.
    Alternates,
    /// The `.git` file, or a pointer between git directories.
    Pointer,
    /// A submodule's git directory.
    Module,
    /// A lock that a git process left behind.
    Lock,
    /// Half-done operations and anything else.
    State,
}

impl MetadataKind {
    /// The word records have for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Reference => "reference",
            Self::Config => "config",
            Self::Hook => "hook",
            Self::Info => "info",
            Self::Alternates => "alternates",
            Self::Pointer => "pointer",
            Self::Module => "module",
            Self::Lock => "lock",
            Self::State => "state",
        }
    }

    /// Whether git may still be run with the repository: nothing changed that
    /// names a program or redirects git.
    #[must_use]
    pub const fn leaves_git_safe(self) -> bool {
        matches!(self, Self::Head | Self::Reference | Self::Lock)
    }
}

/// One changed piece of metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataChange {
    /// Whose it is.
    pub owner: Owner,
    /// What it is for.
    pub kind: MetadataKind,
    /// The file; for a reference, its full name.
    pub name: PathBuf,
    /// For `HEAD` and references: what it held, as git writes it.
    pub before: Option<String>,
    /// For `HEAD` and references: what it holds.
    pub after: Option<String>,
}

/// Why metadata could not be put back.
#[derive(Debug, thiserror::Error)]
#[error("could not put {} back", path.display())]
pub struct PutBackError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: std::io::Error,
}

/// One recorded file.
#[derive(Debug, Clone)]
pub(crate) enum MetaFile {
    File {
        bytes: Arc<[u8]>,
        mode: u32,
        stat: Stat,
    },
    /// Too large to be kept; by its BLAKE3 hash.
    Large {
        hash: [u8; 32],
        mode: u32,
    },
    Link(PathBuf),
    Directory,
    Other,
}

impl MetaFile {
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File {
                    bytes: l, mode: lm, ..
                },
                Self::File {
                    bytes: r, mode: rm, ..
                },
            ) => lm == rm && l == r,
            (Self::Large { hash: l, mode: lm }, Self::Large { hash: r, mode: rm }) => {
                lm == rm && l == r
            }
            (Self::Link(l), Self::Link(r)) => l == r,
            (Self::Directory, Self::Directory) | (Self::Other, Self::Other) => true,
            _ => false,
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::File { bytes, .. } => Some(String::from_utf8_lossy(bytes).trim_end().to_owned()),
            Self::Link(target) => Some(format!("link to {}", target.display())),
            Self::Large { .. } | Self::Directory | Self::Other => None,
        }
    }
}

/// What to record of one repository.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) owner: Owner,
    pub(crate) git_dir: PathBuf,
    pub(crate) common_dir: PathBuf,
    /// The `.git` entry of the work tree.
    pub(crate) pointer: Option<PathBuf>,
    pub(crate) ref_format: RefFormat,
    /// Whether jig made the git directory, so that anything else in it counts.
    pub(crate) exclusive: bool,
    pub(crate) home: Option<PathBuf>,
}

impl Scope {
    /// Whose metadata is recorded, and where it is.
    pub(crate) fn around(repo: &AttemptRepo) -> Vec<Self> {
        let lender = repo.lender();
        let home = repo.git().config().home.clone();
        let own_format = if repo.is_in_place() {
            lender.ref_format
        } else {
            RefFormat::Files
        };
        let mut scopes = vec![Self {
            owner: Owner::Attempt,
            git_dir: repo.git_dir().to_owned(),
            common_dir: repo.common_dir().to_owned(),
            pointer: Some(repo.tree().join(".git")),
            ref_format: own_format,
            exclusive: !repo.is_in_place(),
            home: home.clone(),
        }];
        if !repo.is_in_place() {
            scopes.push(Self {
                owner: Owner::Lender,
                git_dir: lender.git_dir.clone(),
                common_dir: lender.common_dir.clone(),
                pointer: lender.work_tree.as_ref().map(|tree| tree.join(".git")),
                ref_format: lender.ref_format,
                exclusive: false,
                home,
            });
        }
        scopes
    }
}

/// The recorded metadata of one repository.
#[derive(Debug, Clone)]
pub(crate) struct RepoMetadata {
    pub(crate) scope: Scope,
    pub(crate) files: BTreeMap<PathBuf, (MetadataKind, MetaFile)>,
    /// `None`: could not be read without running git with an unknown
    /// configuration.
    pub(crate) refs: Option<BTreeMap<String, RefValue>>,
}

/// The recorded metadata around a tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metadata {
    pub(crate) repositories: Vec<RepoMetadata>,
}

impl Metadata {
    pub(crate) fn of(&self, owner: Owner) -> Option<&RepoMetadata> {
        self.repositories
            .iter()
            .find(|repository| repository.scope.owner == owner)
    }
}

impl RepoMetadata {
    /// What `HEAD` holds, as it is written there.
    pub(crate) fn head_text(&self) -> Option<String> {
        self.files
            .get(&self.scope.git_dir.join("HEAD"))
            .and_then(|(_, file)| file.text())
    }

    /// Whether everything but references, the head and locks is the same in
    /// `after`, so that git can be run there.
    pub(crate) fn leaves_git_safe(&self, after: &Self) -> bool {
        let without_refs = |repository: &Self| Self {
            refs: None,
            ..repository.clone()
        };
        let mut found = Vec::new();
        without_refs(self).changes(&without_refs(after), &mut found);
        found.iter().all(|change| change.kind.leaves_git_safe())
    }

    /// What a reference holds.
    pub(crate) fn reference_text(&self, name: &str) -> Option<String> {
        self.refs.as_ref()?.get(name).map(show)
    }

    /// What differs from `after`, references of jig's own aside.
    fn changes(&self, after: &Self, found: &mut Vec<MetadataChange>) {
        let owner = self.scope.owner;
        let names: BTreeSet<&PathBuf> = self.files.keys().chain(after.files.keys()).collect();
        for name in names {
            let (old, new) = (self.files.get(name), after.files.get(name));
            if old
                .zip(new)
                .is_some_and(|((_, old), (_, new))| old.same(new))
            {
                continue;
            }
            let Some((kind, _)) = new.or(old) else {
                continue;
            };
            let text = |file: Option<&(MetadataKind, MetaFile)>| {
                file.filter(|_| *kind == MetadataKind::Head)
                    .and_then(|(_, file)| file.text())
            };
            found.push(MetadataChange {
                owner,
                kind: *kind,
                name: name.clone(),
                before: text(old),
                after: text(new),
            });
        }
        self.reference_changes(after, found);
    }

    fn reference_changes(&self, after: &Self, found: &mut Vec<MetadataChange>) {
        let owner = self.scope.owner;
        let (Some(old), Some(new)) = (&self.refs, &after.refs) else {
            if self.refs.is_some() != after.refs.is_some() {
                found.push(MetadataChange {
                    owner,
                    kind: MetadataKind::Reference,
                    name: self.scope.common_dir.join("reftable"),
                    before: None,
                    after: None,
                });
            }
            return;
        };
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            if is_jigs_own(name, owner) || old.get(name) == new.get(name) {
                continue;
            }
            found.push(MetadataChange {
                owner,
                kind: MetadataKind::Reference,
                name: PathBuf::from(name),
                before: old.get(name).map(show),
                after: new.get(name).map(show),
            });
        }
    }
}

pub(super) fn show(value: &RefValue) -> String {
    match value {
        RefValue::Object(id) => id.to_string(),
        RefValue::Symbolic(name) => format!("ref: {name}"),
    }
}

/// References that jig itself moves between captures.
pub(crate) fn is_jigs_own(name: &str, owner: Owner) -> bool {
    name.starts_with("refs/jig/") || (owner == Owner::Lender && name.starts_with("refs/heads/jig/"))
}

/// Everything that differs, in the order attempt, lender.
pub(crate) fn compare_metadata(before: &Metadata, after: &Metadata) -> Vec<MetadataChange> {
    let mut found = Vec::new();
    for old in &before.repositories {
        if let Some(new) = after.of(old.scope.owner) {
            old.changes(new, &mut found);
        }
    }
    found
}
