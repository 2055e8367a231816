//! A repository's configuration file, read as data.

use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString, ByteSlice};
use gix::config::{File, Source, file::Metadata, file::init};

/// One parsed configuration file, its includes not followed.
pub(crate) struct ConfigFile(Option<File>);

impl ConfigFile {
    /// Parses `bytes`; a file that git itself would refuse holds nothing.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let options = init::Options::default();
        Self(File::from_bytes_no_includes(bytes, Metadata::from(Source::Local), options).ok())
    }

    pub(crate) fn read(path: &Path) -> Self {
        std::fs::read(path).map_or(Self(None), |bytes| Self::parse(&bytes))
    }

    pub(crate) fn string(&self, section: &str, key: &str) -> Option<BString> {
        self.0.as_ref()?.string_by(section, None::<&BStr>, key)
    }

    pub(crate) fn boolean(&self, section: &str, key: &str) -> Option<bool> {
        self.0
            .as_ref()?
            .boolean_by(section, None::<&BStr>, key)
            .ok()
            .flatten()
    }

    /// The subsections of `section` (`filter.<name>`), in order of appearance.
    pub(crate) fn subsections(&self, section: &str) -> Vec<BString> {
        let Some(file) = &self.0 else {
            return Vec::new();
        };
        file.sections_by_name(section)
            .into_iter()
            .flatten()
            .filter_map(|section| {
                section
                    .header()
                    .subsection_name()
                    .map(|name| name.to_owned())
            })
            .collect()
    }

    /// Whether any `section.<name>.key` is true.
    pub(crate) fn any_boolean(&self, section: &str, key: &str) -> bool {
        self.subsections(section).iter().any(|name| {
            self.0.as_ref().is_some_and(|file| {
                matches!(
                    file.boolean_by(section, name.as_bstr(), key),
                    Ok(Some(true))
                )
            })
        })
    }

    /// The files this one includes, conditions aside, as paths.
    pub(crate) fn includes(&self, own: &Path, home: Option<&Path>) -> Vec<PathBuf> {
        let Some(file) = &self.0 else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for section in ["include", "includeIf"] {
            for section in file.sections_by_name(section).into_iter().flatten() {
                for value in section.values("path") {
                    found.extend(expand(value.as_bstr(), own, home));
                }
            }
        }
        found
    }
}

fn expand(value: &BStr, own: &Path, home: Option<&Path>) -> Option<PathBuf> {
    if value.is_empty() {
        return None;
    }
    if let Some(rest) = value.strip_prefix(b"~/") {
        return Some(home?.join(rest.to_path().ok()?));
    }
    let path = value.to_path().ok()?;
    Some(if path.is_absolute() {
        path.to_owned()
    } else {
        own.parent()?.join(path)
    })
}
