//! Reading metadata by plain file reads, no link followed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::entry::{FileTime, Stat};
use super::metadata::{MetaFile, MetadataKind, Owner, RepoMetadata, Scope};
use crate::config_file::ConfigFile;
use crate::refs::{RefValue, parse_packed, parse_value};
use crate::repository::RefFormat;

/// Larger files are only hashed, and cannot be put back.
const LARGEST_KEPT: u64 = 16 * 1024 * 1024;
/// The same for `packed-refs`, which grows with the repository.
const LARGEST_PACKED_REFS: u64 = 512 * 1024 * 1024;

impl RepoMetadata {
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
        "lfs",
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
                "info" => self.info(&path)?,
                "modules" => self.modules(&path)?,
                "HEAD" => self.add(&path, MetadataKind::Head)?,
                "config" | "config.worktree" => self.add(&path, MetadataKind::Config)?,
                "shallow" => self.add(&path, MetadataKind::Info)?,
                "commondir" | "gitdir" => self.add(&path, MetadataKind::Pointer)?,
                // The operator goes on working in the lender; only what steers
                // git is of interest there.
                _ if self.scope.owner == Owner::Lender => {}
                other if !self.scope.exclusive && !is_state(other) => {}
                lock if lock.ends_with(".lock") => self.add(&path, MetadataKind::Lock)?,
                _ => self.walk(&path, MetadataKind::State)?,
            }
        }
        Ok(())
    }

    /// Everything but `refs`, which every `git gc` writes and only servers of
    /// plain files read.
    fn info(&mut self, info: &Path) -> std::io::Result<()> {
        if !is_directory(info) {
            return self.add(info, MetadataKind::Info);
        }
        for name in list(info)? {
            if name != "refs" {
                self.walk(&info.join(name), MetadataKind::Info)?;
            }
        }
        Ok(())
    }

    /// Alternates, and links where directories of objects should be.
    fn objects(&mut self, objects: &Path) -> std::io::Result<()> {
        self.add_unless_directory(objects, MetadataKind::Alternates)?;
        for name in list(objects)? {
            let path = objects.join(name);
            // The locks of git's maintenance, which starts by itself wherever
            // somebody commits.
            let passing = !self.scope.exclusive && is_file(&path);
            if !passing {
                self.add_unless_directory(&path, MetadataKind::Alternates)?;
            }
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
        let names = list(path)?;
        if names.is_empty() && kind == MetadataKind::State {
            // An empty `rebase-merge` is a rebase in progress to git.
            return self.add(path, kind);
        }
        for name in names {
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
        let mode = meta.permissions().mode() & 0o7777;
        let limit = if path.ends_with("packed-refs") {
            LARGEST_PACKED_REFS
        } else {
            LARGEST_KEPT
        };
        if stat.size > limit {
            let hash = super::fingerprint::hash_file(&std::fs::File::open(path)?)?;
            return Ok(Some(MetaFile::Large { hash, mode }));
        }
        match std::fs::read(path) {
            Ok(bytes) => Ok(Some(MetaFile::File {
                bytes: bytes.into(),
                mode,
                stat,
            })),
            Err(error) if is_absent(&error) => Ok(None),
            // Unreadable is a state of its own, not a failure of the capture.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Ok(Some(MetaFile::Other))
            }
            Err(error) => Err(error),
        }
    }
}

/// Names in a git directory that belong to half-done operations.
fn is_state(name: &str) -> bool {
    name.ends_with("_HEAD")
        || name.ends_with(".lock")
        || name.starts_with("BISECT_")
        || name.starts_with("MERGE_")
        || matches!(
            name,
            "rebase-merge" | "rebase-apply" | "sequencer" | "SQUASH_MSG" | "AUTO_MERGE"
        )
}

pub(super) fn is_absent(error: &std::io::Error) -> bool {
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

fn is_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

pub(super) fn is_directory(path: &Path) -> bool {
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
