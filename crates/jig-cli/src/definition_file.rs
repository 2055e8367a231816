//! Definition files: read, bounded, parsed, complained about.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use jig_protocol::definition::{Definition, Diagnostic, Severity, parse};
use jig_protocol::limits;

use crate::output;

/// A definition file that was read.
#[derive(Debug)]
pub(crate) struct DefinitionFile {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its text.
    pub(crate) text: String,
    /// What it says, when it is valid.
    pub(crate) definition: Option<Definition>,
    /// Errors and warnings.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl DefinitionFile {
    /// Reads and parses a file. An error is about the file, not its content.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = read_text(path, limits::DEFINITION_BYTES)
            .with_context(|| format!("cannot read the definition {}", path.display()))?;
        Ok(Self::from_text(path, text))
    }

    /// Parses a text under a name. A byte order mark is no part of the text, and
    /// of no column.
    pub(crate) fn from_text(path: &Path, mut text: String) -> Self {
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        let parsed = parse(&text);
        Self {
            path: path.to_owned(),
            text,
            definition: parsed.definition,
            diagnostics: parsed.diagnostics,
        }
    }

    /// Whether the file passes; warnings count when `strict`.
    pub(crate) fn passes(&self, strict: bool) -> bool {
        self.definition.is_some() && (self.diagnostics.is_empty() || !strict)
    }

    /// How many errors and warnings there are.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let errors = self
            .diagnostics
            .iter()
            .filter(|found| found.severity() == Severity::Error)
            .count();
        (errors, self.diagnostics.len() - errors)
    }

    /// Prints every problem to stderr.
    pub(crate) fn complain(&self, color: bool) {
        let name = self.path.display().to_string();
        for diagnostic in &self.diagnostics {
            output::note(&diagnostic.render(&name, &self.text, color));
        }
    }
}

/// Reads a text file of at most `max` bytes.
pub(crate) fn read_text(path: &Path, max: usize) -> anyhow::Result<String> {
    let file = std::fs::File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(anyhow!("it is a directory"));
    }
    read_bounded(file, max)
}

/// Reads UTF-8 text of at most `max` bytes.
pub(crate) fn read_bounded(from: impl std::io::Read, max: usize) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX);
    from.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > max {
        return Err(anyhow!("it is larger than {max} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let end = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(error.as_bytes().get(..end).unwrap_or_default());
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        anyhow!("it is not UTF-8 (line {line}, column {column})")
    })
}
