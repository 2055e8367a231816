//! Locks of parallel writers: declared resources that no two members may hold.

use std::fmt;
use std::str::FromStr;

/// A resource, normalised: equal resources compare equal however they were spelt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lock {
    kind: LockKind,
    scope: String,
}

/// What kind of resource a lock names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockKind {
    /// `git-index`: the index of the repository.
    GitIndex,
    /// `database:<name>`
    Database,
    /// `port:<1-65535>`
    Port,
    /// `gpu:<id>`
    Gpu,
    /// `cache:<path>`
    Cache,
    /// `generated:<path>`
    Generated,
    /// `test-env:<name>`
    TestEnv,
}

/// A text outside the vocabulary of locks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a lock: {why}", crate::text::quoted(.text))]
pub struct InvalidLock {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl Lock {
    /// What kind of resource it is.
    #[must_use]
    pub fn kind(&self) -> LockKind {
        self.kind
    }

    /// Whether two holders of these locks would meet. Locks of paths also meet
    /// when one path lies inside the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.kind != other.kind {
            return false;
        }
        let inside = |outer: &str, inner: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        self.scope == other.scope
            || (matches!(self.kind, LockKind::Cache | LockKind::Generated)
                && (inside(&self.scope, &other.scope) || inside(&other.scope, &self.scope)))
    }
}

impl FromStr for Lock {
    type Err = InvalidLock;

    fn from_str(text: &str) -> Result<Self, InvalidLock> {
        parse(text).map_err(|why| InvalidLock {
            text: text.to_owned(),
            why,
        })
    }
}

fn parse(text: &str) -> Result<Lock, &'static str> {
    if text == "git-index" {
        return Ok(Lock {
            kind: LockKind::GitIndex,
            scope: String::new(),
        });
    }
    let (kind, scope) = text
        .split_once(':')
        .ok_or("the kinds are `git-index`, `port:`, `database:`, `gpu:`, `cache:`, `generated:` and `test-env:`")?;
    let (kind, scope) = match kind {
        "port" => (LockKind::Port, port(scope)?),
        "database" => (LockKind::Database, word(scope)?),
        "gpu" => (LockKind::Gpu, word(scope)?),
        "test-env" => (LockKind::TestEnv, word(scope)?),
        "cache" => (LockKind::Cache, path(scope)?),
        "generated" => (LockKind::Generated, path(scope)?),
        _ => {
            return Err(
                "the kinds are `git-index`, `port:`, `database:`, `gpu:`, `cache:`, `generated:` and `test-env:`",
            );
        }
    };
    Ok(Lock { kind, scope })
}

fn port(text: &str) -> Result<String, &'static str> {
    const WHY: &str = "a port is a number from 1 to 65535";
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(WHY);
    }
    match text.parse::<u32>() {
        Ok(port @ 1..=65_535) => Ok(port.to_string()),
        _ => Err(WHY),
    }
}

fn word(text: &str) -> Result<String, &'static str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if text.is_empty() || !text.bytes().all(fits) {
        return Err("what it names is made of letters, digits, `_`, `.` and `-`");
    }
    Ok(text.to_ascii_lowercase())
}

fn path(text: &str) -> Result<String, &'static str> {
    let text = text.strip_suffix('/').unwrap_or(text);
    if text.is_empty() || text.starts_with('/') || text.contains(['*', '?', '[', '\\']) {
        return Err("what it names is a relative path without wildcards");
    }
    if text.chars().any(char::is_control)
        || text.split('/').any(|part| matches!(part, "" | "." | ".."))
    {
        return Err("what it names is a relative path without `.` and `..` parts");
    }
    Ok(text.to_lowercase())
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            LockKind::GitIndex => return f.write_str("git-index"),
            LockKind::Database => "database",
            LockKind::Port => "port",
            LockKind::Gpu => "gpu",
            LockKind::Cache => "cache",
            LockKind::Generated => "generated",
            LockKind::TestEnv => "test-env",
        };
        write!(f, "{kind}:{}", self.scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vocabulary() {
        for (text, shown) in [
            ("git-index", "git-index"),
            ("port:8080", "port:8080"),
            ("port:00080", "port:80"),
            ("database:Main", "database:main"),
            ("gpu:0", "gpu:0"),
            ("cache:Target/Debug/", "cache:target/debug"),
            ("generated:src/gen", "generated:src/gen"),
            ("test-env:staging.1", "test-env:staging.1"),
        ] {
            assert_eq!(text.parse::<Lock>().unwrap().to_string(), shown);
        }
        for bad in [
            "",
            "port",
            "port:",
            "port:0",
            "port:65536",
            "port:-1",
            "port:+1",
            "database:",
            "database:a b",
            "cache:/x",
            "cache:..",
            "cache:a/../b",
            "cache:*",
            "generated:",
            "lock:x",
            "git-index:x",
        ] {
            assert!(bad.parse::<Lock>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn overlap_is_by_kind_and_for_paths_by_ancestry() {
        let lock = |text: &str| text.parse::<Lock>().unwrap();
        for (a, b, meet) in [
            ("port:80", "port:080", true),
            ("port:80", "port:81", false),
            ("cache:a", "cache:a/b", true),
            ("cache:a/b", "cache:a", true),
            ("cache:a", "cache:ab", false),
            ("cache:a", "generated:a", false),
            ("database:x", "database:X", true),
            ("git-index", "git-index", true),
        ] {
            assert_eq!(lock(a).overlaps(&lock(b)), meet, "{a} {b}");
        }
    }
}
