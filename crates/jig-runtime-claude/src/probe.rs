//! Whether the installed CLI can be used: its version and its options.

use std::fmt;

use crate::command_line::NEEDED_FLAGS;

/// Older versions lack options that jig relies on.
pub const MINIMUM_VERSION: Version = Version {
    major: 2,
    minor: 1,
    patch: 280,
};

/// A version as far as it decides anything.
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
}

/// The version in the answer to `--version`: the first word of its first line.
pub(crate) fn version_word(answer: &str) -> Option<&str> {
    answer
        .trim_start()
        .lines()
        .next()?
        .split_whitespace()
        .next()
}

/// What is wrong with a version: too old for jig.
///
/// A pre-release of the minimum counts as older. A version that is no version
/// is not judged; the options are.
pub(crate) fn too_old(word: &str) -> bool {
    Version::parse(word).is_some_and(|version| {
        version < MINIMUM_VERSION || (version == MINIMUM_VERSION && word.contains('-'))
    })
}

/// The needed options that the CLI's help does not name.
pub(crate) fn missing_flags(help: &str) -> Vec<&'static str> {
    let known: std::collections::BTreeSet<&str> = help
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|word| word.starts_with("--"))
        .collect();
    NEEDED_FLAGS
        .into_iter()
        .filter(|flag| !known.contains(flag))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
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
            assert_eq!(too_old(word), old, "{word:?}");
        }
    }

    #[test]
    fn the_version_is_the_first_word() {
        assert_eq!(version_word("2.1.332 (Claude Code)\n"), Some("2.1.332"));
        assert_eq!(version_word("\n  \n"), None);
        assert_eq!(version_word(""), None);
    }

    #[test]
    fn options_are_whole_words() {
        let help: String = NEEDED_FLAGS
            .iter()
            .map(|flag| format!("  -x, {flag} <value>  text\n"))
            .collect();
        assert!(missing_flags(&help).is_empty());
        let without = help.replace("--resume ", "--resume-session-at ");
        assert_eq!(missing_flags(&without), ["--resume"]);
        let only_append = help.replace(" --system-prompt ", " --append-system-prompt ");
        assert_eq!(missing_flags(&only_append), ["--system-prompt"]);
    }
}
