//! All secrets against all of a text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use jig_protocol::definition::Definition;
use jig_protocol::limits;
use jig_protocol::repo_path::RepoPath;
use serde_json::Value;

use super::matcher::Matcher;

/// What stands for a secret whose own mark would show one.
const BLANK: &str = "***";

/// Strings from this length on may have been cut by whoever made them.
const CUT_SUSPECT: usize = 512;

/// A line of a secret is hidden from this length on; shorter ones (a bracket, a
/// label) may be anyone's.
const SECRET_LINE: usize = 16;

/// Replaces secret values by their names.
#[derive(Default)]
pub struct Redactor {
    secrets: Vec<Secret>,
    /// For each byte, the matchers that may begin with it.
    starts: Vec<Vec<(usize, usize)>>,
    margin: usize,
}

struct Secret {
    mark: String,
    value: Vec<u8>,
    forms: Vec<Matcher>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the values.
        let marks: Vec<&str> = self.secrets.iter().map(|s| s.mark.as_str()).collect();
        f.debug_struct("Redactor").field("secrets", &marks).finish()
    }
}

impl Redactor {
    /// A redactor for the values that every role's `sensitive_env` names have in
    /// the operator's environment.
    #[must_use]
    pub fn of(definition: &Definition, operator: &BTreeMap<OsString, OsString>) -> Self {
        let names = definition.sensitive_environment().into_iter();
        Self::new(names.filter_map(|name| {
            let value = operator.get(OsStr::new(&name))?.as_bytes().to_vec();
            Some((name, value))
        }))
    }

    /// A redactor for these values, each with the name that stands for it.
    /// Values below [`limits::SECRET_MIN_BYTES`] are left out. Of a value of
    /// several lines each long line is one too: a private key often travels line
    /// by line.
    pub fn new<N, V>(secrets: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<Vec<u8>>,
    {
        let mut known: Vec<(String, Vec<u8>)> = secrets
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .flat_map(with_lines)
            .filter(|(_, value)| value.len() >= limits::SECRET_MIN_BYTES)
            .collect();
        // Longest first: where two begin together, the longer one names the place.
        known.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.cmp(b)));
        known.dedup_by(|a, b| a.1 == b.1);
        let longest = known.first().map_or(0, |(_, value)| value.len());
        let mut redactor = Self {
            secrets: known
                .into_iter()
                .map(|(name, value)| Secret {
                    mark: format!("[redacted:{name}]"),
                    forms: Matcher::forms(&value),
                    value,
                })
                .collect(),
            starts: vec![Vec::new(); 256],
            margin: longest * 16,
        };
        for (which, secret) in redactor.secrets.iter().enumerate() {
            for (form, matcher) in secret.forms.iter().enumerate() {
                for byte in matcher.first_bytes() {
                    if let Some(start) = redactor.starts.get_mut(usize::from(byte)) {
                        start.push((which, form));
                    }
                }
            }
        }
        for which in 0..redactor.secrets.len() {
            let mark = redactor.secrets[which].mark.clone();
            if !redactor.matches(mark.as_bytes()).is_empty() {
                redactor.secrets[which].mark = BLANK.to_owned();
            }
        }
        redactor
    }

    /// Whether there is nothing to hide.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// How many bytes before a cut decide whether a secret straddles it. A
    /// capture that is cut later keeps this much more.
    #[must_use]
    pub fn margin(&self) -> usize {
        self.margin
    }

    /// The text without secrets.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }),
        }
    }

    /// The bytes without secrets.
    #[must_use]
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.secrets.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut spans = self.matches(bytes);
        if bytes.len() >= CUT_SUSPECT {
            spans.extend(self.cut_edges(bytes));
            spans = merged(spans);
        }
        if spans.is_empty() {
            return Cow::Borrowed(bytes);
        }
        Cow::Owned(self.replaced(bytes, &spans))
    }

    /// Bytes that were cut nowhere but where no secret is; `None` when there
    /// was nothing to hide.
    pub(super) fn whole(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let spans = self.matches(bytes);
        (!spans.is_empty()).then(|| self.replaced(bytes, &spans))
    }

    /// A path without secrets.
    #[must_use]
    pub fn path(&self, path: &RepoPath) -> RepoPath {
        match self.bytes(path.as_bytes()) {
            Cow::Borrowed(_) => path.clone(),
            Cow::Owned(bytes) => RepoPath::from_bytes(bytes),
        }
    }

    /// Takes the secrets out of every string of a JSON value, keys included.
    pub fn value(&self, value: &mut Value) {
        if self.secrets.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                let dirty: Vec<(String, String)> = map
                    .keys()
                    .filter_map(|key| match self.text(key) {
                        Cow::Owned(clean) => Some((key.clone(), clean)),
                        Cow::Borrowed(_) => None,
                    })
                    .collect();
                for (key, clean) in dirty {
                    if let Some(inner) = map.remove(&key) {
                        map.insert(clean, inner);
                    }
                }
                map.values_mut().for_each(|inner| self.value(inner));
            }
            Value::Number(number) => {
                // A secret of digits alone may travel as a number.
                let text = number.to_string();
                let secret = self.secrets.iter().find(|s| s.value == text.as_bytes());
                if let Some(secret) = secret {
                    *value = Value::String(secret.mark.clone());
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Every place that shows a secret, in order, none touching another.
    pub(super) fn matches(&self, bytes: &[u8]) -> Vec<(Range<usize>, usize)> {
        let mut spans = Vec::new();
        if self.secrets.is_empty() {
            return spans;
        }
        for (at, byte) in bytes.iter().enumerate() {
            for (which, form) in self.starts.get(usize::from(*byte)).into_iter().flatten() {
                let end = self
                    .secrets
                    .get(*which)
                    .and_then(|secret| secret.forms.get(*form))
                    .and_then(|matcher| matcher.end(bytes, at));
                if let Some(end) = end {
                    spans.push((at..end, *which));
                }
            }
        }
        merged(spans)
    }

    /// The beginning of a secret at the end, and the end of one at the
    /// beginning: what a cut made elsewhere left over.
    fn cut_edges(&self, bytes: &[u8]) -> Vec<(Range<usize>, usize)> {
        let mut spans = Vec::new();
        for (which, secret) in self.secrets.iter().enumerate() {
            let value = &secret.value;
            let kept = (limits::SECRET_MIN_BYTES..value.len()).rev();
            if let Some(length) = kept
                .clone()
                .find(|length| bytes.ends_with(&value[..*length]))
            {
                spans.push((bytes.len() - length..bytes.len(), which));
            }
            if let Some(length) = kept
                .clone()
                .find(|length| bytes.starts_with(&value[value.len() - length..]))
            {
                spans.push((0..length, which));
            }
        }
        spans
    }

    fn replaced(&self, bytes: &[u8], spans: &[(Range<usize>, usize)]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut done = 0;
        for (span, which) in spans {
            out.extend_from_slice(bytes.get(done..span.start).unwrap_or_default());
            let mark = self.secrets.get(*which).map_or(BLANK, |s| s.mark.as_str());
            out.extend_from_slice(mark.as_bytes());
            done = span.end;
        }
        out.extend_from_slice(bytes.get(done..).unwrap_or_default());
        out
    }
}

/// A secret, and those of its lines that cannot be anything else.
fn with_lines((name, value): (String, Vec<u8>)) -> Vec<(String, Vec<u8>)> {
    let lines = value.split(|byte| matches!(byte, b'\n' | b'\r'));
    let mut all: Vec<_> = lines
        .filter(|line| line.len() >= SECRET_LINE && line.len() < value.len())
        .map(|line| (name.clone(), line.to_vec()))
        .collect();
    all.push((name, value));
    all
}

/// Overlapping spans as one, named after the longest secret among them (the
/// lowest index, since secrets are sorted).
fn merged(mut spans: Vec<(Range<usize>, usize)>) -> Vec<(Range<usize>, usize)> {
    spans.sort_by_key(|(span, which)| (span.start, *which));
    let mut out: Vec<(Range<usize>, usize)> = Vec::new();
    for (span, which) in spans {
        match out.last_mut() {
            Some((last, named)) if span.start < last.end => {
                last.end = last.end.max(span.end);
                *named = (*named).min(which);
            }
            _ => out.push((span, which)),
        }
    }
    out
}
