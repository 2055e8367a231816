//! Text to tokens.

use std::iter::Peekable;
use std::str::CharIndices;

use anyhow::{Result, bail};

/// One token, at one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its first line, from 1.
    pub line: usize,
    /// Whether it belongs to code that is compiled for tests only.
    pub in_test: bool,
}

/// The kinds of tokens that the rules tell apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or keyword; `r#x` is `x`.
    Word(String),
    /// One character of punctuation.
    Mark(char),
    /// A string, character or number, as written.
    Literal(String),
    /// `'a`.
    Lifetime(String),
}

impl Token {
    /// Whether it is this identifier.
    pub fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, Kind::Word(own) if own == word)
    }

    /// Whether it is this character.
    pub fn is_mark(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }
}

/// Splits Rust text into tokens; comments are dropped, doc comments included.
///
/// # Errors
///
/// When a comment or a string does not end.
pub fn lex(text: &str) -> Result<Vec<Token>> {
    let mut lexer = Lexer {
        text,
        chars: text.char_indices().peekable(),
        line: 1,
    };
    let mut tokens = Vec::new();
    while let Some(kind) = lexer.next()? {
        let (line, kind) = kind;
        tokens.push(Token {
            kind,
            line,
            in_test: false,
        });
    }
    Ok(tokens)
}

struct Lexer<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    line: usize,
}

impl Lexer<'_> {
    fn next(&mut self) -> Result<Option<(usize, Kind)>> {
        loop {
            let Some((start, c)) = self.bump() else {
                return Ok(None);
            };
            let line = if c == '\n' { self.line - 1 } else { self.line };
            let kind = match c {
                c if c.is_whitespace() => continue,
                '/' if self.peek() == Some('/') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                    continue;
                }
                '/' if self.peek() == Some('*') => {
                    self.block_comment(line)?;
                    continue;
                }
                '"' => self.string(start, line)?,
                '\'' => self.quote(start, line)?,
                c if c.is_ascii_digit() => self.number(start),
                c if is_word_start(c) => self.word_or_prefix(start, line)?,
                c => Kind::Mark(c),
            };
            return Ok(Some((line, kind)));
        }
    }

    fn bump(&mut self) -> Option<(usize, char)> {
        let next = self.chars.next();
        if matches!(next, Some((_, '\n'))) {
            self.line += 1;
        }
        next
    }

    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    fn here(&mut self) -> usize {
        self.chars.peek().map_or(self.text.len(), |(at, _)| *at)
    }

    fn rest(&mut self) -> &str {
        let at = self.here();
        &self.text[at..]
    }

    fn literal(&mut self, start: usize) -> Kind {
        let end = self.here();
        Kind::Literal(self.text[start..end].to_owned())
    }

    fn block_comment(&mut self, line: usize) -> Result<()> {
        let mut depth = 0_usize;
        // The opening slash is taken already; its star is not.
        let mut previous = '/';
        while let Some((_, c)) = self.bump() {
            match (previous, c) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    previous = c;
                    continue;
                }
            }
            if depth == 0 {
                return Ok(());
            }
            previous = ' ';
        }
        bail!("the comment of line {line} does not end")
    }

    /// A plain string whose opening quote is taken.
    fn string(&mut self, start: usize, line: usize) -> Result<Kind> {
        while let Some((_, c)) = self.bump() {
            match c {
                '\\' => {
                    self.bump();
                }
                '"' => return Ok(self.literal(start)),
                _ => {}
            }
        }
        bail!("the string of line {line} does not end")
    }

    /// A raw string, from its hashes on.
    fn raw_string(&mut self, start: usize, line: usize) -> Result<Kind> {
        let mut hashes = 0;
        while self.peek() == Some('#') {
            self.bump();
            hashes += 1;
        }
        self.bump();
        let end = format!("\"{}", "#".repeat(hashes));
        while !self.rest().is_empty() {
            if self.rest().starts_with(&end) {
                for _ in 0..end.len() {
                    self.bump();
                }
                return Ok(self.literal(start));
            }
            self.bump();
        }
        bail!("the raw string of line {line} does not end")
    }

    /// A character or a lifetime whose opening quote is taken.
    fn quote(&mut self, start: usize, line: usize) -> Result<Kind> {
        let mut ahead = self.rest().chars();
        let (first, second) = (ahead.next(), ahead.next());
        if first.is_some_and(is_word_start) && second != Some('\'') {
            let mut name = String::new();
            while let Some(c) = self.peek().filter(|c| is_word(*c)) {
                name.push(c);
                self.bump();
            }
            return Ok(Kind::Lifetime(name));
        }
        while let Some((_, c)) = self.bump() {
            match c {
                '\\' => {
                    self.bump();
                }
                '\'' => return Ok(self.literal(start)),
                _ => {}
            }
        }
        bail!("the character of line {line} does not end")
    }

    fn number(&mut self, start: usize) -> Kind {
        while self.peek().is_some_and(is_word) {
            self.bump();
        }
        self.literal(start)
    }

    fn word_or_prefix(&mut self, start: usize, line: usize) -> Result<Kind> {
        while self.peek().is_some_and(is_word) {
            self.bump();
        }
        let end = self.here();
        let word = &self.text[start..end];
        let rest = &self.text[end..];
        let is_raw_string = rest.trim_start_matches('#').starts_with('"');
        match (word, rest.chars().next()) {
            ("r" | "br" | "cr", Some('"' | '#')) if is_raw_string => self.raw_string(start, line),
            ("b" | "c", Some('"')) => {
                self.bump();
                self.string(start, line)
            }
            ("b", Some('\'')) => {
                self.bump();
                self.byte(start, line)
            }
            ("r", Some('#')) => {
                self.bump();
                let from = self.here();
                while self.peek().is_some_and(is_word) {
                    self.bump();
                }
                let to = self.here();
                Ok(Kind::Word(self.text[from..to].to_owned()))
            }
            _ => Ok(Kind::Word(word.to_owned())),
        }
    }

    /// `b'x'`, whose opening quote is taken: never a lifetime.
    fn byte(&mut self, start: usize, line: usize) -> Result<Kind> {
        if let Some((_, '\\')) = self.bump() {
            self.bump();
        }
        while let Some((_, c)) = self.bump() {
            if c == '\'' {
                return Ok(self.literal(start));
            }
        }
        bail!("the byte of line {line} does not end")
    }
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::{Kind, lex};

    fn words(text: &str) -> Vec<String> {
        lex(text)
            .unwrap()
            .into_iter()
            .filter_map(|token| match token.kind {
                Kind::Word(word) => Some(word),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn comments_and_literals_hide_words() {
        let text = r####"
            // one
            /* two /* three */ still */
            /// four
            let a = "five \" six"; let b = r##"seven "# eight"##; let c = b"nine"; let d = c"ten";
            let e = br#"eleven"#; let f = '"'; let g = b'"'; let h = '\''; let i = '\u{1F600}';
        "####;
        let expected: Vec<&str> = "let a let b let c let d let e let f let g let h let i"
            .split(' ')
            .collect();
        assert_eq!(words(text), expected);
    }

    #[test]
    fn lifetimes_are_no_characters() {
        assert_eq!(
            words("fn f<'a>(x: &'a str, y: &'static T) -> char { 'a' }").join(" "),
            "fn f x str y T char"
        );
        assert_eq!(
            words("'outer: loop { break 'outer; } sqlx"),
            ["loop", "break", "sqlx"]
        );
    }

    #[test]
    fn raw_words_are_the_words() {
        assert_eq!(words("r#sqlx::query; r#type"), ["sqlx", "query", "type"]);
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let tokens = lex("/* a\n b */ x\n\"1\n2\" y").unwrap();
        let lines: Vec<usize> = tokens.iter().map(|token| token.line).collect();
        assert_eq!(lines, [2, 3, 4]);
    }

    #[test]
    fn what_does_not_end_is_an_error() {
        for text in ["/* a", "\"a", "r#\"a\"", "'\\", "b'a"] {
            assert!(lex(text).is_err(), "{text}");
        }
    }
}
