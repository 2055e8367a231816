//! Paths inside a repository: any bytes git allows, with one JSON form.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path relative to the root of a work tree, `/`-separated, of any bytes.
///
/// In JSON (and on a terminal) it is the plain text, unless it is not UTF-8,
/// contains a control character or starts with `"`: then it is git's C-quoted
/// form *including* the quotes, so that both forms can be told apart.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// Wraps the bytes as they stand in git's listings.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The raw bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path's parts, in order.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    /// The last part.
    #[must_use]
    pub fn file_name(&self) -> &[u8] {
        self.0.rsplit(|byte| *byte == b'/').next().unwrap_or(&[])
    }

    /// The path of the directory this one lies in; `None` at the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let cut = self.0.iter().rposition(|byte| *byte == b'/')?;
        Some(Self(self.0.get(..cut)?.to_vec()))
    }

    /// The path of `name` inside this one (`name` itself at the root).
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        bytes.extend_from_slice(&self.0);
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Self(bytes)
    }

    /// Reads a path that an agent or an operator wrote, `None` unless it is
    /// relative, not empty, free of NUL and stays inside the tree lexically.
    /// `.` parts and doubled slashes are folded away.
    #[must_use]
    pub fn from_claim(text: &str) -> Option<Self> {
        if text.is_empty() || text.starts_with('/') || text.contains('\0') {
            return None;
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop()?;
                }
                part => parts.push(part),
            }
        }
        if parts.is_empty() {
            None
        } else {
            Some(Self(parts.join("/").into_bytes()))
        }
    }

    /// Reads the JSON form back. `None` for a quoted form that is malformed.
    #[must_use]
    pub fn from_json_form(text: &str) -> Option<Self> {
        if !text.starts_with('"') {
            return Some(Self(text.as_bytes().to_vec()));
        }
        unquote(text).map(Self)
    }
}

impl From<&str> for RepoPath {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(&self.0) {
            Ok(text) if !text.starts_with('"') && !text.chars().any(char::is_control) => {
                f.write_str(text)
            }
            _ => f.write_str(&quote(&self.0)),
        }
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RepoPath({self})")
    }
}

impl Serialize for RepoPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RepoPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_json_form(&text)
            .ok_or_else(|| serde::de::Error::custom("malformed C-quoted path"))
    }
}

/// git's `quote_c_style` with `core.quotePath=true`.
fn quote(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in bytes {
        match byte {
            0x07 => out.push_str("\\a"),
            0x08 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            0x0b => out.push_str("\\v"),
            0x0c => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x20..=0x7e => out.push(char::from(*byte)),
            other => out.push_str(&format!("\\{other:03o}")),
        }
    }
    out.push('"');
    out
}

fn unquote(text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'"' {
            return None;
        }
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next()? {
            b'a' => 0x07,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'r' => b'\r',
            b'"' => b'"',
            b'\\' => b'\\',
            high @ b'0'..=b'3' => {
                let (middle, low) = (bytes.next()?, bytes.next()?);
                if !(b'0'..=b'7').contains(&middle) || !(b'0'..=b'7').contains(&low) {
                    return None;
                }
                (high - b'0') * 64 + (middle - b'0') * 8 + (low - b'0')
            }
            _ => return None,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_stay_inside_the_tree() {
        for bad in ["", "/etc/passwd", "..", "a/../..", "a\0b", ".", "./"] {
            assert_eq!(RepoPath::from_claim(bad), None, "{bad:?}");
        }
        assert_eq!(
            RepoPath::from_claim("./a//b/../c"),
            Some(RepoPath::from("a/c"))
        );
    }

    proptest::proptest! {
        #[test]
        fn json_form_round_trips_any_bytes(bytes in proptest::collection::vec(1_u8.., 0..40)) {
            let path = RepoPath::from_bytes(bytes);
            let json = serde_json::to_string(&path).unwrap();
            proptest::prop_assert_eq!(serde_json::from_str::<RepoPath>(&json).unwrap(), path);
        }
    }
}
