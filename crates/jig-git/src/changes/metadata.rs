//! Everything in and around a git directory that steers git, by plain reads.
//!
//! Recorded before any git process is started, for the attempt's repository and
//! for the lender. What an agent could have changed is compared byte for byte
//! (references by value, since packing them changes nothing).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::{FileTime, Stat};
use crate::config_file::ConfigFile;
use crate::refs::{RefValue, parse_packed, parse_value};
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
    Link(PathBuf),
    Directory,
    Other,
}

impl MetaFile {
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File {
                    bytes: l, mode: lm, ..
                },
                Self::File {
                    bytes: r, mode: rm, ..
                },
            ) => lm == rm && l == r,
            (Self::Link(l), Self::Link(r)) => l == r,
            (Self::Directory, Self::Directory) | (Self::Other, Self::Other) => true,
            _ => false,
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::File { bytes, .. } => Some(String::from_utf8_lossy(bytes).trim_end().to_owned()),
            Self::Link(target) => Some(format!("link to {}", target.display())),
            Self::Directory | Self::Other => None,
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
    pub(crate) home: Option<PathBuf>,
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

    /// What a reference holds.
    pub(crate) fn reference_text(&self, name: &str) -> Option<String> {
        self.refs.as_ref()?.get(name).map(show)
    }

    /// Reads everything. `previous` spares reading files whose stat is equal
    /// and older than `racy_since`.
    pub(crate) fn read(
        scope: &Scope,
        previous: Option<&Self>,
        racy_since: FileTime,
    ) -> std::io::Result<Self> {
        let mut reader = Reader {
            scope,
            previous,
            racy_since,
            files: BTreeMap::new(),
            loose: BTreeMap::new(),
        };
        if let Some(pointer) = &scope.pointer {
            reader.add(pointer, MetadataKind::Pointer)?;
        }
        reader.git_dir(&scope.git_dir)?;
        if scope.common_dir != scope.git_dir {
            reader.git_dir(&scope.common_dir)?;
        }
        reader.includes()?;
        let refs = match scope.ref_format {
            RefFormat::Files => Some(reader.references()?),
            RefFormat::Reftable => None,
        };
        Ok(Self {
            scope: scope.clone(),
            files: reader.files,
            refs,
        })
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

fn show(value: &RefValue) -> String {
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

struct Reader<'a> {
    scope: &'a Scope,
    previous: Option<&'a RepoMetadata>,
    racy_since: FileTime,
    files: BTreeMap<PathBuf, (MetadataKind, MetaFile)>,
    loose: BTreeMap<String, Option<RefValue>>,
}

impl Reader<'_> {
    /// Top-level names that change in normal work and steer nothing.
    const IGNORED: &'static [&'static str] = &[
        "index",
        "logs",
        "COMMIT_EDITMSG",
        "FETCH_HEAD",
        "ORIG_HEAD",
        "gc.log",
        "gc.pid",
        "description",
        "branches",
    ];

    fn git_dir(&mut self, directory: &Path) -> std::io::Result<()> {
        for name in list(directory)? {
            let path = directory.join(&name);
            let text = name.to_string_lossy();
            match text.as_ref() {
                ignored if Self::IGNORED.contains(&ignored) => {}
                "objects" => self.objects(&path)?,
                "refs" => self.loose_refs(&path, "refs/")?,
                "packed-refs" | "reftable" => {}
                "worktrees" => self.other_worktrees(&path)?,
                "hooks" => self.walk(&path, MetadataKind::Hook)?,
                "info" => self.walk(&path, MetadataKind::Info)?,
                "modules" => self.modules(&path)?,
                "HEAD" => self.add(&path, MetadataKind::Head)?,
                "config" | "config.worktree" => self.add(&path, MetadataKind::Config)?,
                "shallow" => self.add(&path, MetadataKind::Info)?,
                "commondir" | "gitdir" => self.add(&path, MetadataKind::Pointer)?,
                // The operator goes on working in the lender; only what steers
                // git is of interest there.
                _ if self.scope.owner == Owner::Lender => {}
                lock if lock.ends_with(".lock") => self.add(&path, MetadataKind::Lock)?,
                _ => self.walk(&path, MetadataKind::State)?,
            }
        }
        Ok(())
    }

    /// Alternates, and links where directories of objects should be.
    fn objects(&mut self, objects: &Path) -> std::io::Result<()> {
        self.add_unless_directory(objects, MetadataKind::Alternates)?;
        for name in list(objects)? {
            self.add_unless_directory(&objects.join(name), MetadataKind::Alternates)?;
        }
        for name in ["alternates", "http-alternates"] {
            self.add(&objects.join("info").join(name), MetadataKind::Alternates)?;
        }
        Ok(())
    }

    fn other_worktrees(&mut self, worktrees: &Path) -> std::io::Result<()> {
        for name in list(worktrees)? {
            let directory = worktrees.join(name);
            if directory != self.scope.git_dir {
                self.add(&directory.join("config.worktree"), MetadataKind::Config)?;
            }
        }
        Ok(())
    }

    fn modules(&mut self, directory: &Path) -> std::io::Result<()> {
        let names = list(directory)?;
        let is_git_dir = names.iter().any(|name| name == "HEAD");
        for name in names {
            let path = directory.join(&name);
            let skipped = is_git_dir && (name == "objects" || name == "logs" || name == "index");
            if skipped {
                self.add_unless_directory(&path, MetadataKind::Module)?;
            } else if is_directory(&path) {
                self.modules(&path)?;
            } else {
                self.add(&path, MetadataKind::Module)?;
            }
        }
        Ok(())
    }

    fn walk(&mut self, path: &Path, kind: MetadataKind) -> std::io::Result<()> {
        if !is_directory(path) {
            return self.add(path, kind);
        }
        for name in list(path)? {
            self.walk(&path.join(name), kind)?;
        }
        Ok(())
    }

    fn loose_refs(&mut self, directory: &Path, prefix: &str) -> std::io::Result<()> {
        if !is_directory(directory) {
            return self.add(directory, MetadataKind::State);
        }
        for name in list(directory)? {
            let path = directory.join(&name);
            let text = format!("{prefix}{}", name.to_string_lossy());
            if is_directory(&path) {
                self.loose_refs(&path, &format!("{text}/"))?;
            } else if std::fs::symlink_metadata(&path)?.is_symlink() {
                self.add(&path, MetadataKind::State)?;
            } else if text.ends_with(".lock") {
                if self.scope.owner == Owner::Attempt {
                    self.add(&path, MetadataKind::Lock)?;
                }
            } else if let Some(MetaFile::File { bytes, .. }) = self.read(&path)? {
                self.loose.insert(text, parse_value(&bytes));
            }
        }
        Ok(())
    }

    /// Loose references over packed ones. A loose one that cannot be parsed is
    /// recorded as pointing at nothing that exists.
    fn references(&mut self) -> std::io::Result<BTreeMap<String, RefValue>> {
        let packed = match self.read(&self.scope.common_dir.join("packed-refs"))? {
            Some(MetaFile::File { bytes, .. }) => parse_packed(&bytes),
            _ => BTreeMap::new(),
        };
        let mut refs: BTreeMap<String, RefValue> = packed
            .into_iter()
            .map(|(name, id)| (name, RefValue::Object(id)))
            .collect();
        for (name, value) in std::mem::take(&mut self.loose) {
            refs.insert(
                name,
                value.unwrap_or_else(|| RefValue::Symbolic("(unreadable)".into())),
            );
        }
        Ok(refs)
    }

    /// Files that a configuration includes, and what those include.
    fn includes(&mut self) -> std::io::Result<()> {
        let mut pending: Vec<PathBuf> = self
            .files
            .iter()
            .filter(|(path, (kind, _))| {
                *kind == MetadataKind::Config
                    || (*kind == MetadataKind::Module
                        && path.file_name() == Some(OsStr::new("config")))
            })
            .map(|(path, _)| path.clone())
            .collect();
        let mut seen: BTreeSet<PathBuf> = pending.iter().cloned().collect();
        while let Some(path) = pending.pop() {
            let Some((_, MetaFile::File { bytes, .. })) = self.files.get(&path) else {
                continue;
            };
            for included in ConfigFile::parse(bytes).includes(&path, self.scope.home.as_deref()) {
                if seen.insert(included.clone()) {
                    self.add(&included, MetadataKind::Config)?;
                    pending.push(included);
                }
            }
        }
        Ok(())
    }

    fn add_unless_directory(&mut self, path: &Path, kind: MetadataKind) -> std::io::Result<()> {
        if is_directory(path) {
            Ok(())
        } else {
            self.add(path, kind)
        }
    }

    fn add(&mut self, path: &Path, kind: MetadataKind) -> std::io::Result<()> {
        if let Some(file) = self.read(path)? {
            self.files.insert(path.to_owned(), (kind, file));
        }
        Ok(())
    }

    fn read(&self, path: &Path) -> std::io::Result<Option<MetaFile>> {
        let meta = match std::fs::symlink_metadata(path) {
            Ok(meta) => meta,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        if meta.is_dir() {
            return Ok(Some(MetaFile::Directory));
        }
        if meta.is_symlink() {
            return std::fs::read_link(path).map(|target| Some(MetaFile::Link(target)));
        }
        if !meta.is_file() {
            return Ok(Some(MetaFile::Other));
        }
        let stat = stat_of(&meta);
        let known = self.previous.and_then(|previous| previous.files.get(path));
        if let Some((
            _,
            MetaFile::File {
                bytes,
                mode,
                stat: old,
            },
        )) = known
            && *old == stat
            && stat.changed < self.racy_since
        {
            return Ok(Some(MetaFile::File {
                bytes: bytes.clone(),
                mode: *mode,
                stat,
            }));
        }
        match std::fs::read(path) {
            Ok(bytes) => {
                let mode = meta.permissions().mode() & 0o7777;
                Ok(Some(MetaFile::File {
                    bytes: bytes.into(),
                    mode,
                    stat,
                }))
            }
            Err(error) if is_absent(&error) => Ok(None),
            // Unreadable is a state of its own, not a failure of the capture.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Ok(Some(MetaFile::Other))
            }
            Err(error) => Err(error),
        }
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
    )
}

fn stat_of(meta: &std::fs::Metadata) -> Stat {
    let time = |seconds, nanos: i64| FileTime {
        seconds,
        nanos: u32::try_from(nanos).unwrap_or(0),
    };
    Stat {
        device: meta.dev(),
        inode: meta.ino(),
        size: meta.len(),
        modified: time(meta.mtime(), meta.mtime_nsec()),
        changed: time(meta.ctime(), meta.ctime_nsec()),
        user: meta.uid(),
        group: meta.gid(),
    }
}

fn is_directory(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

fn list(directory: &Path) -> std::io::Result<Vec<std::ffi::OsString>> {
    match std::fs::read_dir(directory) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect(),
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Makes the files and references of `owner` what they were in `before`; jig's
/// own references aside.
pub(crate) fn put_back(before: &RepoMetadata, now: &RepoMetadata) -> Result<(), PutBackError> {
    for (path, (_, file)) in &now.files {
        if !before.files.contains_key(path) && !matches!(file, MetaFile::Directory) {
            std::fs::remove_file(path)
                .or_else(gone)
                .map_err(|source| fail(path, source))?;
        }
    }
    for (path, (_, file)) in &before.files {
        let same = now.files.get(path).is_some_and(|(_, now)| file.same(now));
        if !same {
            write_file(path, file).map_err(|source| fail(path, source))?;
        }
    }
    let (Some(old), Some(new)) = (&before.refs, &now.refs) else {
        return Ok(());
    };
    let owner = before.scope.owner;
    let changed: BTreeMap<&str, Option<&RefValue>> = old
        .keys()
        .chain(new.keys())
        .filter(|name| !is_jigs_own(name, owner) && old.get(*name) != new.get(*name))
        .map(|name| (name.as_str(), old.get(name)))
        .collect();
    put_back_refs(&before.scope.common_dir, &changed)
}

fn fail(path: &Path, source: std::io::Error) -> PutBackError {
    PutBackError {
        path: path.to_owned(),
        source,
    }
}

fn gone(error: std::io::Error) -> std::io::Result<()> {
    if is_absent(&error) {
        Ok(())
    } else {
        Err(error)
    }
}

/// Writes a recorded file through a temporary name, replacing what lies there.
fn write_file(path: &Path, file: &MetaFile) -> std::io::Result<()> {
    if matches!(file, MetaFile::Directory | MetaFile::Other) {
        return Err(std::io::Error::other(
            "it was no file before, so its content is not known",
        ));
    }
    if let Some(parent) = path.parent() {
        make_directories(parent)?;
    }
    if is_directory(path) {
        std::fs::remove_dir_all(path)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".jig-put-back");
    let temporary = PathBuf::from(name);
    std::fs::remove_file(&temporary).or_else(gone)?;
    match file {
        MetaFile::File { bytes, mode, .. } => {
            std::fs::write(&temporary, bytes)?;
            std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(*mode))?;
        }
        MetaFile::Link(target) => std::os::unix::fs::symlink(target, &temporary)?,
        MetaFile::Directory | MetaFile::Other => {}
    }
    std::fs::rename(&temporary, path)
}

/// Makes missing directories; a link or file where one belongs is removed.
fn make_directories(directory: &Path) -> std::io::Result<()> {
    if is_directory(directory) {
        return Ok(());
    }
    if let Some(parent) = directory.parent() {
        make_directories(parent)?;
    }
    std::fs::remove_file(directory).or_else(gone)?;
    std::fs::create_dir(directory)
}

fn put_back_refs(
    common_dir: &Path,
    changed: &BTreeMap<&str, Option<&RefValue>>,
) -> Result<(), PutBackError> {
    let packed = common_dir.join("packed-refs");
    let unwanted: Vec<&str> = changed
        .iter()
        .filter(|(_, value)| value.is_none())
        .map(|(name, _)| *name)
        .collect();
    if !unwanted.is_empty() {
        drop_packed(&packed, &unwanted).map_err(|source| fail(&packed, source))?;
    }
    // Removals first: `a` may have had to go for `a/b` to exist.
    for name in &unwanted {
        let path = common_dir.join(name);
        std::fs::remove_file(&path)
            .or_else(gone)
            .map_err(|source| fail(&path, source))?;
        let mut parent = path.parent();
        while let Some(directory) = parent.filter(|p| {
            p.starts_with(common_dir.join("refs"))
                && p.components().count() > common_dir.components().count() + 2
        }) {
            if std::fs::remove_dir(directory).is_err() {
                break;
            }
            parent = directory.parent();
        }
    }
    for (name, value) in changed {
        let Some(value) = value else { continue };
        let path = common_dir.join(name);
        let bytes = format!("{}\n", show(value)).into_bytes();
        let stat = Stat::default();
        let file = MetaFile::File {
            bytes: bytes.into(),
            mode: 0o644,
            stat,
        };
        write_file(&path, &file).map_err(|source| fail(&path, source))?;
    }
    Ok(())
}

/// Rewrites `packed-refs` without some names (and their peeled lines).
fn drop_packed(path: &Path, unwanted: &[&str]) -> std::io::Result<()> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => return gone(error),
    };
    let mut kept = Vec::with_capacity(bytes.len());
    let mut dropping = false;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if !line.starts_with(b"^") {
            let name = line
                .splitn(2, |byte| *byte == b' ')
                .nth(1)
                .map(<[u8]>::trim_ascii_end);
            dropping = name
                .is_some_and(|name| unwanted.iter().any(|unwanted| unwanted.as_bytes() == name));
        }
        if !dropping {
            kept.extend_from_slice(line);
        }
    }
    let stat = Stat::default();
    let name = OsStr::from_bytes(path.as_os_str().as_bytes());
    write_file(
        Path::new(name),
        &MetaFile::File {
            bytes: kept.into(),
            mode: 0o644,
            stat,
        },
    )
}
