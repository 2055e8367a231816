//! Path patterns: the `writes` allowlist and `build_outputs` grants.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::repo_path::RepoPath;

/// One entry of a `writes` list.
///
/// `**` crosses directories, `*` and `?` stop at `/`, a trailing `/` is a
/// directory prefix, and without any of these the pattern is that exact path.
/// Patterns are anchored at both ends.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathPattern(String);

/// A pattern outside the grammar; refused rather than silently never matching.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern {} is refused: {why}", crate::text::quoted(.pattern))]
pub struct InvalidPattern {
    /// The text that was refused.
    pub pattern: String,
    /// Which rule it breaks.
    pub why: &'static str,
}

impl PathPattern {
    /// The pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern holds no wildcard and no trailing slash.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        !self.0.ends_with('/') && !self.0.contains(['*', '?'])
    }

    /// Whether the pattern permits `path`.
    #[must_use]
    pub fn matches(&self, path: &RepoPath) -> bool {
        let (pattern, path) = (self.0.as_bytes(), path.as_bytes());
        if self.0.ends_with('/') {
            return path.len() > pattern.len() && path.starts_with(pattern);
        }
        glob(pattern, path)
    }

    /// The longest directory every match lies in (`""` is the tree's root).
    #[must_use]
    pub fn literal_dir(&self) -> &str {
        let end = self.0.find(['*', '?']).unwrap_or(self.0.len());
        let literal = self.0.get(..end).unwrap_or(&self.0);
        literal
            .rfind('/')
            .and_then(|cut| literal.get(..cut))
            .unwrap_or("")
    }
}

/// Anchored match; `*` and `?` stop at `/`, `**` does not. Linear in the path
/// for one star at a time: it backtracks to the last star of each kind only.
fn glob(pattern: &[u8], path: &[u8]) -> bool {
    let (mut at, mut pos) = (0, 0);
    // Where to resume: (pattern index after the star, path index) per kind.
    let mut single: Option<(usize, usize)> = None;
    let mut double: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(at), path.get(pos)) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                if pattern.get(at + 1) == Some(&b'*') {
                    at += 2;
                    double = Some((at, pos));
                    single = None;
                } else {
                    at += 1;
                    single = Some((at, pos));
                }
                continue;
            }
            (Some(b'?'), Some(byte)) if *byte != b'/' => {
                at += 1;
                pos += 1;
                continue;
            }
            (Some(want), Some(have)) if *want == *have && *want != b'?' => {
                at += 1;
                pos += 1;
                continue;
            }
            _ => {}
        }
        match single {
            Some((resume, from)) if path.get(from).is_some_and(|byte| *byte != b'/') => {
                single = Some((resume, from + 1));
                at = resume;
                pos = from + 1;
                continue;
            }
            _ => {}
        }
        match double {
            Some((resume, from)) if from < path.len() => {
                double = Some((resume, from + 1));
                single = None;
                at = resume;
                pos = from + 1;
            }
            _ => return false,
        }
    }
}

/// The rules every pattern shares.
fn check(text: &str) -> Result<(), &'static str> {
    if text.trim().is_empty() {
        return Err("it is empty");
    }
    if text.contains(['\0', '\n', '\r']) {
        return Err("it contains a NUL or a line break");
    }
    if text.starts_with('/') {
        return Err("it is absolute; write it relative to the repository's root");
    }
    let inner = text.strip_suffix('/').unwrap_or(text);
    for part in inner.split('/') {
        match part {
            "" => return Err("it contains an empty path part"),
            "." => return Err("it contains a `.` path part"),
            ".." => return Err("it contains `..`"),
            part if part.eq_ignore_ascii_case(".git") => {
                return Err("it names `.git`, which no role may write");
            }
            _ => {}
        }
    }
    Ok(())
}

impl FromStr for PathPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let refuse = |why| InvalidPattern {
            pattern: text.to_owned(),
            why,
        };
        check(text).map_err(refuse)?;
        if text.contains(['{', '}', '[', ']', '!', '\\']) {
            return Err(refuse(
                "braces, classes, negation and escapes are not supported",
            ));
        }
        if text.contains("***") {
            return Err(refuse("three stars in a row mean nothing"));
        }
        if text.ends_with('/') && text.contains(['*', '?']) {
            return Err(refuse(
                "a trailing `/` and a wildcard exclude each other; end it with `/**`",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for PathPattern {
    type Error = InvalidPattern;

    fn try_from(text: String) -> Result<Self, InvalidPattern> {
        text.parse()
    }
}

impl From<PathPattern> for String {
    fn from(pattern: PathPattern) -> Self {
        pattern.0
    }
}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One entry of `build_outputs`: a whole directory, `<dir>/**` or `<dir>/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DirGrant(String);

impl DirGrant {
    /// The grant as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The granted directory as a line of an ignore file of git, at the root.
    #[must_use]
    pub fn ignore_line(&self) -> String {
        let dir = self.0.strip_suffix("/**").unwrap_or(&self.0);
        format!("/{}/", dir.trim_end_matches('/'))
    }

    /// Whether `path` lies in the granted directory, or is that directory.
    ///
    /// Never a licence for a path tracked in the base commit: the caller checks.
    #[must_use]
    pub fn covers(&self, path: &RepoPath) -> bool {
        let dir = self
            .0
            .strip_suffix("/**")
            .or_else(|| self.0.strip_suffix('/'));
        let Some(dir) = dir else { return false };
        let mut end = 0;
        let bytes = path.as_bytes();
        loop {
            let next = bytes
                .get(end..)
                .and_then(|rest| rest.iter().position(|b| *b == b'/'));
            let cut = next.map_or(bytes.len(), |at| end + at);
            if bytes
                .get(..cut)
                .is_some_and(|prefix| glob(dir.as_bytes(), prefix))
            {
                return true;
            }
            match next {
                Some(_) => end = cut + 1,
                None => return false,
            }
        }
    }
}

impl FromStr for DirGrant {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let refuse = |why| InvalidPattern {
            pattern: text.to_owned(),
            why,
        };
        check(text).map_err(refuse)?;
        if text.starts_with(['-', ':']) {
            return Err(refuse("it starts with `-` or `:`"));
        }
        if text.contains(['{', '}', '[', ']', '!', '\\']) {
            return Err(refuse(
                "braces, classes, negation and escapes are not supported",
            ));
        }
        let dir = match (text.strip_suffix("/**"), text.strip_suffix('/')) {
            (Some(dir), _) => dir,
            (None, Some(dir)) if !dir.contains(['*', '?']) => dir,
            (None, Some(_)) => {
                return Err(refuse(
                    "a wildcard with a plain trailing `/`; end it with `/**`",
                ));
            }
            (None, None) => {
                return Err(refuse("it grants no directory; end it with `/` or `/**`"));
            }
        };
        if dir.chars().all(|c| "*?/".contains(c)) {
            return Err(refuse("it holds nothing but wildcards"));
        }
        if dir.contains("***") {
            return Err(refuse("three stars in a row mean nothing"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for DirGrant {
    type Error = InvalidPattern;

    fn try_from(text: String) -> Result<Self, InvalidPattern> {
        text.parse()
    }
}

impl From<DirGrant> for String {
    fn from(grant: DirGrant) -> Self {
        grant.0
    }
}

impl fmt::Debug for DirGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        pattern
            .parse::<PathPattern>()
            .unwrap()
            .matches(&RepoPath::from(path))
    }

    #[test]
    fn a_grant_is_a_line_of_an_ignore_file() {
        for (grant, line) in [
            ("target/**", "/target/"),
            ("out/", "/out/"),
            ("**/dist/**", "/**/dist/"),
            ("#odd/x*/**", "/#odd/x*/"),
        ] {
            let grant: DirGrant = grant.parse().unwrap();
            assert_eq!(grant.ignore_line(), line);
        }
    }

    #[test]
    fn pattern_table() {
        for (pattern, path, expected) in [
            ("src/", "src/a/b.rs", true),
            ("src/", "src", false),
            ("src/", "srcs/a", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/**", "src/a/b.rs", true),
            ("src/**", "src", false),
            ("**/*.py", "a/b/c.py", true),
            ("a/**.py", "a/b/c.py", true),
            ("**", "a/b", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("plain.txt", "plain.txt", true),
            ("plain.txt", "plain.txt2", false),
            ("*a*b", "xaxaxb", true),
            ("**/x/*y", "a/x/b/x/cy", true),
            ("a/*/c", "a/b/d/c", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} against {path}");
        }
    }

    #[test]
    fn refused_patterns() {
        for bad in [
            "", " ", "/a", "a/../b", "..", "a\nb", ".git/x", "x/.GIT", "{a,b}", "[a]", "!a",
            "a//b", "src/*/",
        ] {
            assert!(bad.parse::<PathPattern>().is_err(), "{bad:?}");
        }
        for bad in [
            "target", "*/", "**/", "**", "-x/", ":x/", "a*/", "/target/", "a/../", ".git/", "",
        ] {
            assert!(bad.parse::<DirGrant>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn grants_cover_the_directory_and_all_below() {
        let grant = |text: &str, path: &str| {
            text.parse::<DirGrant>()
                .unwrap()
                .covers(&RepoPath::from(path))
        };
        assert!(grant("target/**", "target/debug/x"));
        assert!(grant("target/", "target"));
        assert!(!grant("target/**", "targets/x"));
        assert!(grant("crates/*/target/**", "crates/a/target/x"));
        assert!(!grant("crates/*/target/**", "crates/a/src/x"));
        assert!(grant("**/node_modules/**", "a/b/node_modules/c/d"));
    }
}
