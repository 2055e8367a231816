//! Grouped imports spelled out, so that `use a::{b, c::{d as e}}` holds the words
//! `a::b` and `a::c::d` as if they had been written one by one.

use super::lexer::{Kind, Token};

/// Replaces every grouped import by one import per leaf.
pub(super) fn spell_out(tokens: Vec<Token>) -> Vec<Token> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let end = tokens[at..]
            .iter()
            .position(|t| t.is_mark(';'))
            .map(|n| at + n);
        match end {
            Some(end) if is_import(&tokens, at, end) => {
                spell(&tokens[at + 1..end], &[], &tokens[at], &mut out);
                at = end + 1;
            }
            _ => {
                out.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    out
}

/// `use` that begins an import, not the bound `use<'a>`.
fn is_import(tokens: &[Token], at: usize, end: usize) -> bool {
    tokens[at].is_word("use")
        && !tokens.get(at + 1).is_some_and(|next| next.is_mark('<'))
        && tokens[at..end].iter().any(|token| token.is_mark('{'))
}

/// One level of the tree: `prefix` is what stands before, without its last `::`.
fn spell(level: &[Token], prefix: &[Token], import: &Token, out: &mut Vec<Token>) {
    for branch in branches(level) {
        let group = branch.iter().position(|token| token.is_mark('{'));
        let head = &branch[..group.unwrap_or(branch.len())];
        let mut path = prefix.to_vec();
        path.extend_from_slice(head);
        match group {
            Some(open) => {
                let inner = &branch[open + 1..branch.len().saturating_sub(1).max(open + 1)];
                spell(inner, &path, import, out);
            }
            None => {
                let line = branch.first().map_or(import.line, |token| token.line);
                let mark = Token {
                    kind: Kind::Mark(';'),
                    line,
                    in_test: import.in_test,
                };
                out.push(Token {
                    line,
                    ..import.clone()
                });
                out.extend(path.into_iter().map(|token| Token { line, ..token }));
                out.push(mark);
            }
        }
    }
}

/// Splits at the commas of this level.
fn branches(level: &[Token]) -> Vec<&[Token]> {
    let mut depth = 0_usize;
    level
        .split(|token| {
            match token.kind {
                Kind::Mark('{') => depth += 1,
                Kind::Mark('}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && token.is_mark(',')
        })
        .filter(|branch| !branch.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::lexer::{Kind, lex};
    use super::spell_out;

    fn spelled(text: &str) -> String {
        let words = spell_out(lex(text).unwrap())
            .into_iter()
            .map(|token| match token.kind {
                Kind::Word(word) | Kind::Literal(word) | Kind::Lifetime(word) => word,
                Kind::Mark(mark) => mark.to_string(),
            });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn groups_become_single_imports() {
        assert_eq!(
            spelled("use std::{process::{Command as C, Stdio}, fs,};"),
            "use std : : process : : Command as C ; use std : : process : : Stdio ; use std : : fs ;"
        );
        assert_eq!(spelled("use a::b; x { y }"), "use a : : b ; x { y }");
        assert_eq!(
            spelled("fn f() -> impl X + use<'a> { g(); }")
                .matches("use")
                .count(),
            1
        );
    }
}
