//! Definition files: read, bounded, parsed, complained about.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use jig_protocol::definition::{Code, Definition, Diagnostic, Severity, Span, parse};
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
        // One byte more, for the parser to say that it is too many.
        let bytes = read_bytes(path, limits::DEFINITION_BYTES + 1)
            .with_context(|| format!("cannot read the definition {}", path.display()))?;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => Self::from_text(path, text),
            Err(error) if error.as_bytes().len() > limits::DEFINITION_BYTES => {
                Self::from_text(path, lossy(error.as_bytes()))
            }
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let text = lossy(error.as_bytes());
                let span = Span::in_text(&text, at, at);
                let problem = Diagnostic::new(Code::Syntax, span, "", "the text is not UTF-8");
                Self {
                    path: path.to_owned(),
                    text,
                    definition: None,
                    diagnostics: vec![problem],
                }
            }
        })
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

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads a text file of at most `max` bytes.
pub(crate) fn read_text(path: &Path, max: usize) -> anyhow::Result<String> {
    read_bounded(open(path)?, max)
}

/// Reads UTF-8 text of at most `max` bytes.
pub(crate) fn read_bounded(from: impl std::io::Read, max: usize) -> anyhow::Result<String> {
    let bytes = read_at_most(from, max.saturating_add(1))?;
    if bytes.len() > max {
        return Err(anyhow!("it is larger than {max} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        anyhow!(
            "it is not UTF-8 (at byte {})",
            error.utf8_error().valid_up_to()
        )
    })
}

/// The first `most` bytes of a file.
fn read_bytes(path: &Path, most: usize) -> anyhow::Result<Vec<u8>> {
    Ok(read_at_most(open(path)?, most)?)
}

fn open(path: &Path) -> anyhow::Result<std::fs::File> {
    let file = std::fs::File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(anyhow!("it is a directory"));
    }
    Ok(file)
}

fn read_at_most(from: impl std::io::Read, most: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    from.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
