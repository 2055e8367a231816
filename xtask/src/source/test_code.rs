//! Which tokens are compiled for tests only.

use std::collections::BTreeSet;

use super::lexer::{Kind, Token};

/// What marking a file found out.
#[derive(Debug, Default)]
pub(super) struct Marked {
    /// `#![cfg(test)]` stands at the top.
    pub(super) whole_file: bool,
    /// Modules of test code that lie in files of their own.
    pub(super) modules: Vec<TestModule>,
    /// Lines of inline test modules, attributes included.
    pub(super) module_lines: BTreeSet<usize>,
}

/// `#[cfg(test)] mod name;`
#[derive(Debug)]
pub(super) struct TestModule {
    name: String,
    path: Option<String>,
}

impl TestModule {
    /// The files it may lie in, when it is declared in `parent`.
    pub(super) fn files(&self, parent: &str) -> Vec<String> {
        let (directory, file) = parent.rsplit_once('/').unwrap_or((".", parent));
        if let Some(path) = &self.path {
            return vec![format!("{directory}/{path}")];
        }
        let directory = match file {
            "lib.rs" | "main.rs" | "mod.rs" => directory.to_owned(),
            _ => format!("{directory}/{}", file.trim_end_matches(".rs")),
        };
        vec![
            format!("{directory}/{}.rs", self.name),
            format!("{directory}/{}/mod.rs", self.name),
        ]
    }
}

/// Marks every item under `#[cfg(test)]` or `#[test]`.
pub(super) fn mark(tokens: &mut [Token]) -> Marked {
    let mut marked = Marked::default();
    let mut at = 0;
    while at < tokens.len() {
        let Some(attribute) = Attribute::read(tokens, at) else {
            at += 1;
            continue;
        };
        if !attribute.is_test(tokens) {
            at = attribute.end;
            continue;
        }
        if attribute.is_inner {
            marked.whole_file |= at == 0 || only_attributes(&tokens[..at]);
            at = attribute.end;
            continue;
        }
        let item = Item::read(tokens, attribute.end);
        tokens[at..item.end]
            .iter_mut()
            .for_each(|token| token.in_test = true);
        item.note(tokens, at, &mut marked);
        at = item.end;
    }
    marked
}

fn only_attributes(tokens: &[Token]) -> bool {
    let mut at = 0;
    while at < tokens.len() {
        match Attribute::read(tokens, at) {
            Some(attribute) => at = attribute.end,
            None => return false,
        }
    }
    true
}

/// `#[…]` or `#![…]`.
struct Attribute {
    is_inner: bool,
    /// First token between the brackets.
    inside: usize,
    /// One past the closing bracket.
    end: usize,
}

impl Attribute {
    fn read(tokens: &[Token], at: usize) -> Option<Self> {
        tokens.get(at).filter(|token| token.is_mark('#'))?;
        let is_inner = tokens.get(at + 1)?.is_mark('!');
        let open = at + 1 + usize::from(is_inner);
        tokens.get(open).filter(|token| token.is_mark('['))?;
        let end = closing(tokens, open)? + 1;
        Some(Self {
            is_inner,
            inside: open + 1,
            end,
        })
    }

    fn is_test(&self, tokens: &[Token]) -> bool {
        let inside = &tokens[self.inside..self.end - 1];
        match inside.first().map(|token| &token.kind) {
            Some(Kind::Word(word)) if word == "cfg" && inside.len() > 3 => {
                implies_test(&inside[2..inside.len() - 1])
            }
            _ => ends_in_test(inside),
        }
    }
}

/// `test`, `tokio::test`, and the same with arguments.
fn ends_in_test(inside: &[Token]) -> bool {
    let path = || inside.iter().take_while(|token| !token.is_mark('('));
    path().all(|token| !token.is_mark('=')) && path().last().is_some_and(|t| t.is_word("test"))
}

/// Whether a `cfg` predicate can only hold in a test build.
fn implies_test(predicate: &[Token]) -> bool {
    let [first, rest @ ..] = predicate else {
        return false;
    };
    if rest.is_empty() {
        return first.is_word("test");
    }
    if !rest[0].is_mark('(') || closing(rest, 0) != Some(rest.len() - 1) {
        return false;
    }
    let mut depth = 0_usize;
    let mut parts = rest[1..rest.len() - 1]
        .split(|token| {
            match token.kind {
                Kind::Mark('(') => depth += 1,
                Kind::Mark(')') => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && token.is_mark(',')
        })
        .filter(|part| !part.is_empty())
        .peekable();
    match &first.kind {
        Kind::Word(word) if word == "all" => parts.any(implies_test),
        Kind::Word(word) if word == "any" => parts.peek().is_some() && parts.all(implies_test),
        _ => false,
    }
}

/// The thing an attribute stands before.
struct Item {
    /// Its first token after further attributes and visibility.
    start: usize,
    /// One past its last token.
    end: usize,
    path: Option<String>,
}

impl Item {
    fn read(tokens: &[Token], mut at: usize) -> Self {
        let mut path = None;
        while let Some(attribute) = Attribute::read(tokens, at) {
            if let [
                name,
                _,
                Token {
                    kind: Kind::Literal(value),
                    ..
                },
            ] = &tokens[attribute.inside..attribute.end - 1]
                && name.is_word("path")
            {
                path = Some(value.trim_matches('"').to_owned());
            }
            at = attribute.end;
        }
        if tokens.get(at).is_some_and(|token| token.is_word("pub")) {
            at += 1;
            if tokens.get(at).is_some_and(|token| token.is_mark('(')) {
                at = closing(tokens, at).map_or(at + 1, |end| end + 1);
            }
        }
        Self {
            start: at,
            end: end_of_item(tokens, at),
            path,
        }
    }

    fn note(&self, tokens: &[Token], from: usize, marked: &mut Marked) {
        let [
            module,
            Token {
                kind: Kind::Word(name),
                ..
            },
            ..,
        ] = &tokens[self.start..self.end]
        else {
            return;
        };
        if !module.is_word("mod") {
            return;
        }
        let last = &tokens[self.end - 1];
        if last.is_mark('}') {
            marked.module_lines.extend(tokens[from].line..=last.line);
        } else {
            let module = TestModule {
                name: name.clone(),
                path: self.path.clone(),
            };
            marked.modules.push(module);
        }
    }
}

/// One past the end: the first `;`, or the block; for what is no item (a field, a
/// variant, an arm) also the comma, or the end of what it lies in.
fn end_of_item(tokens: &[Token], start: usize) -> usize {
    const ITEMS: [&str; 15] = [
        "fn",
        "mod",
        "struct",
        "enum",
        "impl",
        "trait",
        "use",
        "const",
        "static",
        "type",
        "union",
        "unsafe",
        "async",
        "extern",
        "macro_rules",
    ];
    let is_item = matches!(tokens.get(start).map(|token| &token.kind),
        Some(Kind::Word(word)) if ITEMS.contains(&word.as_str()));
    let mut at = start;
    while at < tokens.len() {
        match tokens[at].kind {
            Kind::Mark(';') => return at + 1,
            Kind::Mark(',') if !is_item => return at + 1,
            Kind::Mark('{') => {
                let end = closing(tokens, at).map_or(tokens.len(), |end| end + 1);
                let semicolon = tokens.get(end).is_some_and(|token| token.is_mark(';'));
                return end + usize::from(semicolon);
            }
            Kind::Mark('(' | '[') => at = closing(tokens, at).unwrap_or(tokens.len()),
            Kind::Mark(')' | ']' | '}') => return at,
            _ => {}
        }
        at += 1;
    }
    tokens.len()
}

/// The index of the bracket that closes the one at `open`.
fn closing(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Mark('(' | '[' | '{') => depth += 1,
            Kind::Mark(')' | ']' | '}') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::lexer::{Kind, lex};
    use super::mark;

    /// The words of product code that begin with `p_` or `t_`.
    fn product(text: &str) -> String {
        let mut tokens = lex(text).unwrap();
        mark(&mut tokens);
        let words = tokens
            .into_iter()
            .filter(|token| !token.in_test)
            .filter_map(|t| match t.kind {
                Kind::Word(word) if word.starts_with("p_") || word.starts_with("t_") => Some(word),
                _ => None,
            });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn test_items_end_where_they_end() {
        assert_eq!(
            product("#[cfg(test)] mod t { fn t_a() {} } fn p_b() {}"),
            "p_b"
        );
        assert_eq!(
            product("#[cfg(test)] use t_a::{t_b, t_c}; fn p_b() {}"),
            "p_b"
        );
        assert_eq!(
            product("#[test] #[ignore] fn t_a<A, B>() { t_c } fn p_b() {}"),
            "p_b"
        );
        assert_eq!(
            product("#[tokio::test(flavor = \"x\")] async fn t_a() {} p_b"),
            "p_b"
        );
        assert_eq!(product("enum E { #[cfg(test)] t_a, p_b }"), "p_b");
        assert_eq!(
            product("struct S { p_a: u8, #[cfg(test)] t_b: Vec<u8> } p_c"),
            "p_a p_c"
        );
        assert_eq!(
            product("#[cfg(test)] pub(crate) const t_a: [u8; 2] = [1, 2]; p_b"),
            "p_b"
        );
    }

    #[test]
    fn only_predicates_that_imply_test_count() {
        assert_eq!(product("#[cfg(not(test))] fn p_a() {}"), "p_a");
        assert_eq!(
            product("#[cfg(any(test, feature = \"x\"))] fn p_a() {}"),
            "p_a"
        );
        assert_eq!(product("#[cfg(all(unix, test))] fn t_a() {} p_b"), "p_b");
        assert_eq!(
            product("#[cfg(any(test, all(test, unix)))] fn t_a() {} p_b"),
            "p_b"
        );
        assert_eq!(product("#[cfg_attr(test, derive(X))] fn p_a() {}"), "p_a");
    }

    #[test]
    fn modules_in_their_own_files_are_found() {
        let mut tokens =
            lex("#[cfg(test)] mod a; #[cfg(test)] #[path = \"x/y.rs\"] mod b; mod c;").unwrap();
        let marked = mark(&mut tokens);
        let files: Vec<_> = marked
            .modules
            .iter()
            .flat_map(|m| m.files("k/src/m.rs"))
            .collect();
        assert_eq!(files, ["k/src/m/a.rs", "k/src/m/a/mod.rs", "k/src/x/y.rs"]);
    }

    #[test]
    fn lines_of_inline_modules_are_counted() {
        let mut tokens = lex("fn a() {}\n\n#[cfg(test)]\nmod tests {\n}\nfn b() {}\n").unwrap();
        let lines: Vec<_> = mark(&mut tokens).module_lines.into_iter().collect();
        assert_eq!(lines, [3, 4, 5]);
    }
}
