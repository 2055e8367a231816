//! Whether the installed CLI can be used: its version and its options.

use jig_runtime::Version;

/// Older versions lack options that jig relies on.
pub const MINIMUM_VERSION: Version = Version {
    major: 0,
    minor: 150,
    patch: 0,
};

/// The version in the answer to `--version`: the last word of its first line.
pub(crate) fn version_word(answer: &str) -> Option<&str> {
    answer
        .trim_start()
        .lines()
        .next()?
        .split_whitespace()
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_last_word() {
        assert_eq!(version_word("codex-cli 0.171.0\n"), Some("0.171.0"));
        assert_eq!(version_word("\n  \n"), None);
        assert_eq!(version_word(""), None);
    }
}
