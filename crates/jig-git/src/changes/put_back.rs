//! Making metadata what it was, byte for byte; references by value.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::entry::Stat;
use super::metadata::{MetaFile, PutBackError, RepoMetadata, Scope, is_jigs_own, show};
use super::read_metadata::{is_absent, is_directory};
use crate::refs::RefValue;
use crate::repository::RefFormat;

/// Makes the files and references of `owner` what they were in `before`; jig's
/// own references and what is named in `stays` aside.
pub(crate) fn put_back(
    before: &RepoMetadata,
    now: &RepoMetadata,
    stays: &BTreeSet<PathBuf>,
) -> Result<(), PutBackError> {
    for (path, (_, file)) in &now.files {
        if !before.files.contains_key(path) && !stays.contains(path) {
            remove(path, file).map_err(|source| fail(path, source))?;
            remove_empty_parents(path, &before.scope);
        }
    }
    for (path, (_, file)) in &before.files {
        let same = now.files.get(path).is_some_and(|(_, now)| file.same(now));
        if !same && !stays.contains(path) {
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
        .filter(|name| !stays.contains(Path::new(name.as_str())))
        .map(|name| (name.as_str(), old.get(name)))
        .collect();
    if before.scope.ref_format == RefFormat::Reftable && !changed.is_empty() {
        let why = "references kept in tables are not put back";
        let path = before.scope.common_dir.join("reftable");
        return Err(fail(&path, std::io::Error::other(why)));
    }
    put_back_refs(&before.scope.common_dir, &changed)
}

fn remove(path: &Path, file: &MetaFile) -> std::io::Result<()> {
    if matches!(file, MetaFile::Directory) {
        return Ok(crate::removal::remove_tree(path)?);
    }
    std::fs::remove_file(path).or_else(gone)
}

/// Removes directories that only held what was removed. git's own stay.
fn remove_empty_parents(path: &Path, scope: &Scope) {
    const OWN: &[&str] = &["hooks", "info", "refs", "objects", "modules"];
    for directory in path.ancestors().skip(1) {
        let inside = [&scope.git_dir, &scope.common_dir]
            .into_iter()
            .any(|git_dir| directory != git_dir && directory.starts_with(git_dir));
        let own = directory
            .file_name()
            .is_some_and(|name| OWN.iter().any(|own| name == *own));
        if !inside || own || std::fs::remove_dir(directory).is_err() {
            return;
        }
    }
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
        crate::removal::remove_tree(path)?;
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
        MetaFile::Large { .. } | MetaFile::Directory | MetaFile::Other => {}
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
        let heads = common_dir.join("refs");
        for directory in path.ancestors().skip(1) {
            let deep = directory
                .strip_prefix(&heads)
                .is_ok_and(|rest| rest.components().count() > 1);
            if !deep || std::fs::remove_dir(directory).is_err() {
                break;
            }
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
    write_file(
        path,
        &MetaFile::File {
            bytes: kept.into(),
            mode: 0o644,
            stat,
        },
    )
}
