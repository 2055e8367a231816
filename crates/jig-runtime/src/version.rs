//! Versions of agent CLIs, as far as they decide anything.

use std::fmt;

/// A version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// First number.
    pub major: u64,
    /// Second number.
    pub minor: u64,
    /// Third number.
    pub patch: u64,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Version {
    /// Reads `major.minor.patch`, whatever follows a `-` or `+`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = text.split(['-', '+']).next()?;
        let mut parts = numbers.split('.').map(|part| part.parse::<u64>().ok());
        let version = Self {
            major: parts.next()??,
            minor: parts.next()??,
            patch: parts.next()??,
        };
        parts.next().is_none().then_some(version)
    }

    /// Whether a CLI that calls its version `word` is older than this one.
    ///
    /// A pre-release of this one counts as older. A word that is no version is
    /// not judged: what the CLI can do is then decided by its options alone.
    #[must_use]
    pub fn is_newer_than(self, word: &str) -> bool {
        Self::parse(word).is_some_and(|found| found < self || (found == self && word.contains('-')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        let minimum = Version {
            major: 2,
            minor: 1,
            patch: 280,
        };
        for (word, old) in [
            ("2.1.280", false),
            ("2.1.332", false),
            ("2.2.0", false),
            ("10.0.0", false),
            ("2.1.281-beta.1", false),
            ("2.1.280-beta.1", true),
            ("2.1.279", true),
            ("2.0.999", true),
            ("1.9.900", true),
            ("unknown", false),
            ("2.1", false),
            ("", false),
        ] {
            assert_eq!(minimum.is_newer_than(word), old, "{word:?}");
        }
    }
}
