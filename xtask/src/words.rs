//! Words that belong in certain places only, from `xtask/rules/words.toml`.
//!
//! The rule looks at tokens: a word in a comment, a doc comment or a string is
//! talk and passes; a word in code counts wherever it stands, macro arguments and
//! grouped imports included.

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::finding::Finding;
use crate::source::{Kind, Source, Token, lex};
use crate::workspace::Workspace;

/// Where the rules are kept.
const FILE: &str = "xtask/rules/words.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    word: Vec<Rule>,
}

/// One group of words with one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// Rust text each; `…` stands for anything within one statement.
    words: Vec<String>,
    /// Paths that may hold them; `*` stands for one directory or file name.
    #[serde(default)]
    allowed: Vec<String>,
    /// Whether tests, benches and examples may hold them everywhere.
    #[serde(default)]
    in_tests: bool,
    /// Paths that are looked at; all of them when empty.
    #[serde(default)]
    within: Vec<String>,
    reason: String,
    instead: String,
}

/// Looks for every word in every source.
///
/// # Errors
///
/// When the rules cannot be read or hold a word that says nothing.
pub fn check(workspace: &Workspace, sources: &[Source]) -> Result<Vec<Finding>> {
    let rules: Rules = workspace.rules("words.toml")?;
    ensure!(!rules.word.is_empty(), "{FILE} holds no word");
    let mut findings = Vec::new();
    for rule in &rules.word {
        ensure!(
            !rule.reason.trim().is_empty(),
            "{FILE}: {:?} have no reason",
            rule.words
        );
        for word in &rule.words {
            let pattern = Pattern::new(word)?;
            for source in sources.iter().filter(|source| rule.covers(&source.path)) {
                findings.extend(rule.look_for(word, &pattern, source));
            }
        }
    }
    findings.sort();
    findings.dedup();
    Ok(findings)
}

impl Rule {
    fn covers(&self, path: &str) -> bool {
        let within = self.within.is_empty() || self.within.iter().any(|p| is_under(path, p));
        within && !self.allowed.iter().any(|p| is_under(path, p))
    }

    fn look_for(&self, word: &str, pattern: &Pattern, source: &Source) -> Vec<Finding> {
        let starts = 0..source.tokens.len();
        starts
            .filter(|at| pattern.matches(&source.tokens[*at..]))
            .filter(|at| !(self.in_tests && source.tokens[*at].in_test))
            .map(|at| {
                let problem = format!("`{word}` does not belong here: {}", self.reason);
                let line = source.tokens[at].line;
                Finding::at("words", &source.path, line, problem, self.instead.clone())
            })
            .collect()
    }
}

/// Whether `path` is the place or lies below it.
fn is_under(path: &str, place: &str) -> bool {
    let mut parts = path.split('/');
    place
        .trim_end_matches('/')
        .split('/')
        .all(|wanted| match parts.next() {
            Some(part) => wanted == "*" || wanted == part,
            None => false,
        })
}

/// A sequence of tokens with gaps.
struct Pattern(Vec<Kind>);

const GAP: Kind = Kind::Mark('…');

impl Pattern {
    fn new(word: &str) -> Result<Self> {
        let kinds: Vec<Kind> = lex(word)?.into_iter().map(|token| token.kind).collect();
        let says_something = kinds.first().is_some_and(|kind| *kind != GAP);
        ensure!(says_something, "{FILE}: `{word}` is no word to look for");
        Ok(Self(kinds))
    }

    fn matches(&self, tokens: &[Token]) -> bool {
        matches(&self.0, tokens)
    }
}

fn matches(pattern: &[Kind], tokens: &[Token]) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return true;
    };
    if *first == GAP {
        return gap(rest, tokens);
    }
    tokens
        .split_first()
        .is_some_and(|(token, after)| token.kind == *first && matches(rest, after))
}

/// Tries what follows a gap at every token up to the end of the statement.
/// Bracketed parts are jumped over as wholes: what follows must stand beside what
/// came before, not inside its arguments.
fn gap(rest: &[Kind], mut tokens: &[Token]) -> bool {
    loop {
        if matches(rest, tokens) {
            return true;
        }
        let Some(token) = tokens.first() else {
            return false;
        };
        let step = match token.kind {
            Kind::Mark('(' | '[') => bracketed(tokens),
            Kind::Mark(';' | ',' | '{' | '}' | ')' | ']') => return false,
            _ => 1,
        };
        tokens = &tokens[step..];
    }
}

/// How many tokens the bracket at the front and its contents are.
fn bracketed(tokens: &[Token]) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Mark('(' | '[' | '{') => depth += 1,
            Kind::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::{Pattern, is_under};
    use crate::source::lex;

    fn found(pattern: &str, text: &str) -> bool {
        let pattern = Pattern::new(pattern).unwrap();
        let tokens = lex(text).unwrap();
        (0..tokens.len()).any(|at| pattern.matches(&tokens[at..]))
    }

    #[test]
    fn a_gap_stays_in_its_statement() {
        let word = "rows … .flatten()";
        assert!(found(
            word,
            "let x = rows.map(|r| { decode(r); r }).flatten();"
        ));
        assert!(found(word, "for r in rows.into_iter().flatten() {}"));
        assert!(!found(word, "let x = rows.len(); let y = z.flatten();"));
        assert!(!found(word, "fn f(rows: Rows) -> X { y.flatten() }"));
        assert!(!found(word, "g(rows, y.flatten())"));
        assert!(!found(word, "row.get().flatten()"));
    }

    #[test]
    fn words_are_whole_tokens() {
        assert!(found("env::var", "std::env::var(\"X\")"));
        assert!(!found("env::var", "std::env::vars()"));
        assert!(found("println!", "println! (\"x\")"));
        assert!(!found("println!", "eprintln!(\"x\")"));
    }

    #[test]
    fn places_are_whole_directories() {
        assert!(is_under("crates/a/src/store/x.rs", "crates/a/src/store/"));
        assert!(is_under("crates/a/src/store/x.rs", "crates/*/src"));
        assert!(!is_under(
            "crates/a/src/storehouse.rs",
            "crates/a/src/store"
        ));
        assert!(!is_under("crates/a", "crates/a/src"));
    }

    #[test]
    fn a_word_that_matches_everything_is_refused() {
        for word in ["", "  ", "…", "// x"] {
            assert!(Pattern::new(word).is_err(), "{word:?}");
        }
    }
}
