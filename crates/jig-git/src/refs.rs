//! References in the files format, by plain reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gix::ObjectId;

/// What a reference holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RefValue {
    /// An object.
    Object(ObjectId),
    /// Another reference, by its full name.
    Symbolic(String),
}

/// Reads the content of a loose reference or of `HEAD`.
pub(crate) fn parse_value(bytes: &[u8]) -> Option<RefValue> {
    let text = std::str::from_utf8(bytes)
        .ok()?
        .trim_end_matches(['\n', '\r', ' ', '\t']);
    if let Some(target) = text.strip_prefix("ref:") {
        return Some(RefValue::Symbolic(target.trim_start().to_owned()));
    }
    let hex = text.split([' ', '\t', '\n']).next()?;
    ObjectId::from_hex(hex.as_bytes())
        .ok()
        .map(RefValue::Object)
}

/// Reads `packed-refs`: full names and objects, peeled lines aside.
pub(crate) fn parse_packed(bytes: &[u8]) -> BTreeMap<String, ObjectId> {
    let mut found = BTreeMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else {
            continue;
        };
        if line.starts_with(['#', '^']) {
            continue;
        }
        if let Some((hex, name)) = line.split_once(' ')
            && let Ok(id) = ObjectId::from_hex(hex.as_bytes())
        {
            found.insert(name.trim_end_matches('\r').to_owned(), id);
        }
    }
    found
}

/// The references of one repository: `HEAD` from `git_dir`, the rest from
/// `common_dir`.
#[derive(Debug)]
pub(crate) struct Refs {
    git_dir: PathBuf,
    common_dir: PathBuf,
}

impl Refs {
    pub(crate) fn new(git_dir: &Path, common_dir: &Path) -> Self {
        Self {
            git_dir: git_dir.to_owned(),
            common_dir: common_dir.to_owned(),
        }
    }

    /// What `name` (`HEAD` or `refs/…`) holds; `None` when it does not exist.
    pub(crate) fn get(&self, name: &str) -> std::io::Result<Option<RefValue>> {
        let shared = name.starts_with("refs/")
            && !["refs/bisect/", "refs/worktree/", "refs/rewritten/"]
                .iter()
                .any(|own| name.starts_with(own));
        let directory = if shared {
            &self.common_dir
        } else {
            &self.git_dir
        };
        let path = directory.join(name);
        match std::fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_file() => return Ok(parse_value(&std::fs::read(&path)?)),
            // Very old repositories have HEAD as a link.
            Ok(meta) if meta.is_symlink() => {
                let target = std::fs::read_link(&path)?;
                return Ok(target
                    .to_str()
                    .map(|text| RefValue::Symbolic(text.to_owned())));
            }
            _ => {}
        }
        Ok(self.packed()?.remove(name).map(RefValue::Object))
    }

    /// The object a name stands for, symbolic references followed.
    pub(crate) fn resolve(&self, name: &str) -> std::io::Result<Option<ObjectId>> {
        let mut name = name.to_owned();
        for _ in 0..8 {
            match self.get(&name)? {
                Some(RefValue::Object(id)) => return Ok(Some(id)),
                Some(RefValue::Symbolic(target)) => name = target,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    fn packed(&self) -> std::io::Result<BTreeMap<String, ObjectId>> {
        match std::fs::read(self.common_dir.join("packed-refs")) {
            Ok(bytes) => Ok(parse_packed(&bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        }
    }

    /// Names below `prefix` (which ends with `/`) that exist, loose and packed.
    pub(crate) fn names_below(&self, prefix: &str) -> std::io::Result<Vec<String>> {
        let mut names: Vec<String> = self
            .packed()?
            .into_keys()
            .filter(|name| name.starts_with(prefix))
            .collect();
        let mut pending = vec![(self.common_dir.join(prefix), prefix.to_owned())];
        while let Some((directory, prefix)) = pending.pop() {
            let entries = match std::fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for entry in entries {
                let entry = entry?;
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                let full = format!("{prefix}{name}");
                if entry.file_type()?.is_dir() {
                    pending.push((entry.path(), format!("{full}/")));
                } else if !name.ends_with(".lock") {
                    names.push(full);
                }
            }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_git_writes_them() {
        let hex = "1234567890123456789012345678901234567890";
        let id = ObjectId::from_hex(hex.as_bytes()).unwrap();
        assert_eq!(
            parse_value(format!("{hex}\n").as_bytes()),
            Some(RefValue::Object(id))
        );
        assert_eq!(
            parse_value(b"ref: refs/heads/a b\n"),
            Some(RefValue::Symbolic("refs/heads/a b".into()))
        );
        assert_eq!(parse_value(b""), None);
        let packed =
            format!("# pack-refs with: peeled fully-peeled sorted\n{hex} refs/tags/v1\n^{hex}\n");
        assert_eq!(
            parse_packed(packed.as_bytes()),
            BTreeMap::from([("refs/tags/v1".into(), id)])
        );
    }
}
