//! What the parser says about a definition, and how it is shown.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;

use super::code::{Code, Severity};
pub(super) use crate::text::quoted;

/// A place in the text of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
    /// Line of the start, from 1.
    pub line: u32,
    /// Column of the start in characters, from 1.
    pub column: u32,
    /// Line of the end, from 1.
    pub end_line: u32,
    /// Column of the end in characters, from 1; exclusive.
    pub end_column: u32,
}

impl Span {
    /// The span of the bytes `start..end` of `text`; both are moved down to the
    /// nearest character boundary.
    #[must_use]
    pub fn in_text(text: &str, start: usize, end: usize) -> Self {
        let start = text.floor_char_boundary(start);
        let end = text.floor_char_boundary(end.max(start));
        let (line, column) = position(text, start);
        let (end_line, end_column) = position(text, end);
        Self {
            start,
            end,
            line,
            column,
            end_line,
            end_column,
        }
    }
}

/// Line and column, both from 1, of a byte.
fn position(text: &str, at: usize) -> (u32, u32) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before.get(start..).unwrap_or("").chars().count() + 1;
    (clamp(line), clamp(column))
}

pub(super) fn clamp(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// One problem of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// What it is about.
    pub code: Code,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// Where.
    pub span: Span,
    /// Which element, like `phases[2].on_fail.run`; empty for the whole file.
    pub path: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Other places that matter, each with what it shows.
    pub secondary: Vec<(Span, String)>,
}

/// A diagnostic as `--json` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiagnosticJson {
    /// The stable code.
    pub code: Code,
    /// `error` or `warning`.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// Line of the start, from 1.
    pub line: u32,
    /// Column of the start in characters, from 1.
    pub column: u32,
    /// Line of the end, from 1.
    pub end_line: u32,
    /// Column of the end in characters, from 1; exclusive.
    pub end_column: u32,
    /// Which element.
    pub path: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without help or other places.
    #[must_use]
    pub fn new(
        code: Code,
        span: Span,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            message: message.into(),
            span,
            path: path.into(),
            help: None,
            secondary: Vec::new(),
        }
    }

    /// Adds what to do about it.
    pub fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    /// Adds another place that matters.
    pub fn also(&mut self, span: Span, label: impl Into<String>) -> &mut Self {
        self.secondary.push((span, label.into()));
        self
    }

    /// Whether it is an error or a warning.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// The diagnostic for people: `file:line:col`, an excerpt of `text` with a
    /// caret, and what to do. `text` must be what was parsed.
    #[must_use]
    pub fn render(&self, file: &str, text: &str, color: bool) -> String {
        let (level, message) = match self.severity() {
            Severity::Error => (Level::ERROR, printable(&self.message)),
            Severity::Warning => (Level::WARNING, printable(&self.message)),
        };
        let file = printable(file);
        let path = printable(&self.path);
        let help = self.help.as_deref().map(printable);
        let mut primary = AnnotationKind::Primary.span(visible(self.span, text));
        if !path.is_empty() {
            primary = primary.label(path.as_str());
        }
        let mut snippet = Snippet::source(text)
            .path(file.as_str())
            .annotation(primary);
        for (span, label) in &self.secondary {
            snippet = snippet.annotation(
                AnnotationKind::Context
                    .span(visible(*span, text))
                    .label(label.as_str()),
            );
        }
        let mut group: Group<'_> = level
            .primary_title(message.as_str())
            .id(self.code.as_str())
            .element(snippet);
        if let Some(help) = &help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.render(&[group])
    }

    /// The diagnostic for machines.
    #[must_use]
    pub fn to_json(&self) -> DiagnosticJson {
        DiagnosticJson {
            code: self.code,
            severity: self.severity(),
            message: self.message.clone(),
            line: self.span.line,
            column: self.span.column,
            end_line: self.span.end_line,
            end_column: self.span.end_column,
            path: self.path.clone(),
            help: self.help.clone(),
        }
    }
}

/// The part of a span to underline: never empty where there is text, and never
/// past the end.
fn visible(span: Span, text: &str) -> std::ops::Range<usize> {
    let start = text.floor_char_boundary(span.start);
    let end = text.floor_char_boundary(span.end);
    if end > start {
        return start..end;
    }
    let next = text.get(start..).and_then(|rest| rest.chars().next());
    start..start + next.map_or(0, char::len_utf8)
}

/// Text that cannot drive a terminal: control characters are escaped.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() && c != '\n') || crate::text::reorders(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}
