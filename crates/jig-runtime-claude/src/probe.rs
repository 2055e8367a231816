//! Whether the installed CLI can be used: its version and its options.

use jig_runtime::Version;

/// Older versions lack options that jig relies on.
pub const MINIMUM_VERSION: Version = Version {
    major: 2,
    minor: 1,
    patch: 280,
};

/// The version in the answer to `--version`: the first word of its first line.
pub(crate) fn version_word(answer: &str) -> Option<&str> {
    answer
        .trim_start()
        .lines()
        .next()?
        .split_whitespace()
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_first_word() {
        assert_eq!(version_word("2.1.332 (Claude Code)\n"), Some("2.1.332"));
        assert_eq!(version_word("\n  \n"), None);
        assert_eq!(version_word(""), None);
    }
}
