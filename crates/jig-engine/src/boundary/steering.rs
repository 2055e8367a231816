//! Project files that steer the next agent: its hooks, settings and servers.

use jig_protocol::definition::PathPattern;
use jig_protocol::repo_path::RepoPath;

/// The start of a path that makes it steer an agent; `None` when it does not.
/// At any depth, because agents are also started below the root, and without
/// regard to case, because some file systems have none.
///
/// Something other than a directory in the place of a steering directory steers
/// as well: a link `.claude` can bring in settings from anywhere.
pub(super) fn steers(path: &RepoPath, is_directory: bool) -> Option<&[u8]> {
    let bytes = path.as_bytes();
    let parts: Vec<&[u8]> = path.components().collect();
    let mut end = 0;
    for (at, part) in parts.iter().enumerate() {
        end += part.len() + usize::from(at > 0);
        let last = at + 1 == parts.len();
        let folded = part.to_ascii_lowercase();
        let steering = match folded.as_slice() {
            b".codex" | b".gemini" => true,
            b".mcp.json" => last,
            b".claude" => last && !is_directory,
            b"hooks" => below_claude(&parts, at),
            name => {
                last && below_claude(&parts, at)
                    && name.starts_with(b"settings")
                    && name.ends_with(b".json")
            }
        };
        if steering {
            return bytes.get(..end);
        }
    }
    None
}

fn below_claude(parts: &[&[u8]], at: usize) -> bool {
    at.checked_sub(1)
        .and_then(|parent| parts.get(parent))
        .is_some_and(|parent| parent.eq_ignore_ascii_case(b".claude"))
}

/// Whether the literal start of a pattern spells out the steering part of the
/// path, so that whoever wrote the allowlist meant it.
pub(super) fn names(pattern: &PathPattern, key: &[u8]) -> bool {
    let text = pattern.as_str();
    let end = text.find(['*', '?']).unwrap_or(text.len());
    let literal = text.get(..end).unwrap_or(text).as_bytes();
    if literal.len() >= key.len() {
        return literal.starts_with(key);
    }
    // `.claude/settings*.json` spells the family out.
    let family = b".claude/settings";
    key.starts_with(literal) && literal.ends_with(family)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str) -> Option<String> {
        steers(&RepoPath::from(path), false).map(|key| String::from_utf8(key.to_vec()).unwrap())
    }

    #[test]
    fn steering_files_are_known_at_any_depth_and_case() {
        for (path, expected) in [
            (".claude/settings.json", Some(".claude/settings.json")),
            (
                ".claude/settings.local.json",
                Some(".claude/settings.local.json"),
            ),
            (".Claude/Settings.json", Some(".Claude/Settings.json")),
            (
                "pkg/.claude/settings.json",
                Some("pkg/.claude/settings.json"),
            ),
            (".claude/hooks/pre.sh", Some(".claude/hooks")),
            (".claude", Some(".claude")),
            (".mcp.json", Some(".mcp.json")),
            (".codex/config.toml", Some(".codex")),
            ("a/.gemini/x", Some("a/.gemini")),
            (".claude/agents/reviewer.md", None),
            ("hooks/pre.sh", None),
            ("settings.json", None),
            (".mcp.json.bak", None),
            ("CLAUDE.md", None),
        ] {
            assert_eq!(key(path).as_deref(), expected, "{path}");
        }
        assert_eq!(steers(&RepoPath::from(".claude"), true), None);
    }

    #[test]
    fn only_a_pattern_that_spells_it_out_names_it() {
        let named = |pattern: &str, path: &str| {
            let pattern: PathPattern = pattern.parse().unwrap();
            names(&pattern, steers(&RepoPath::from(path), false).unwrap())
        };
        for pattern in [".claude/settings.json", ".claude/settings*.json"] {
            assert!(named(pattern, ".claude/settings.json"), "{pattern}");
        }
        assert!(named(".codex/**", ".codex/config.toml"));
        assert!(named(".claude/hooks/", ".claude/hooks/x"));
        for pattern in ["**", ".claude/**", ".claude/", "*", ".c*/settings.json"] {
            assert!(!named(pattern, ".claude/settings.json"), "{pattern}");
        }
        assert!(!named("**", ".codex/config.toml"));
    }
}
