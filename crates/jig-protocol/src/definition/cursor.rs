//! The decoder's tools: a place in the tree, a collector of problems, and typed
//! access to the keys of an object.

use std::fmt;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

use super::code::{Code, Severity};
use super::diagnostic::{Diagnostic, Span, quoted};
use super::grammar::{Field, Object, Shape};
use super::suggest::nearest;
use super::yaml::{Kind, Node};

/// No one reads more than this; it also bounds the work of a hostile file.
const MOST_PROBLEMS: usize = 100;

/// Where a value stands: `phases[2].on_fail.run`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(Rc<str>),
    Index(usize),
}

impl Path {
    pub(super) fn key(&self, key: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Key(key.into()));
        Self(steps)
    }

    pub(super) fn index(&self, index: usize) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Index(index));
        Self(steps)
    }

    /// The path of `phases[index]`.
    pub(super) fn phase(index: usize) -> Self {
        Self::default().key("phases").index(index)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) => {
                    let dot = if at == 0 { "" } else { "." };
                    write!(f, "{dot}{}", crate::text::head(key, 100))?;
                }
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Adds a problem unless there are too many already.
pub(super) fn push_capped(problems: &mut Vec<Diagnostic>, problem: Diagnostic) -> &mut Diagnostic {
    if problems.len() >= MOST_PROBLEMS {
        problems.truncate(MOST_PROBLEMS);
    }
    problems.push(problem);
    let last = problems.len() - 1;
    &mut problems[last]
}

/// The text, its tree, and what is wrong with it.
pub(super) struct Context<'t> {
    pub(super) text: &'t str,
    root: Rc<Node>,
    problems: Vec<Diagnostic>,
    errors: usize,
}

impl<'t> Context<'t> {
    pub(super) fn new(text: &'t str, root: Rc<Node>, problems: Vec<Diagnostic>) -> Self {
        let errors = problems.len();
        Self {
            text,
            root,
            problems,
            errors,
        }
    }

    pub(super) fn root(&self) -> Rc<Node> {
        Rc::clone(&self.root)
    }

    /// Whether anything so far refuses the definition.
    pub(super) fn failed(&self) -> bool {
        self.errors > 0
    }

    /// The problems, in the order of the text.
    pub(super) fn into_problems(mut self) -> Vec<Diagnostic> {
        self.problems.truncate(MOST_PROBLEMS);
        self.problems
            .sort_by_key(|problem| (problem.span.start, problem.code));
        self.problems
    }

    /// A problem with the value at `path`.
    pub(super) fn at(
        &mut self,
        code: Code,
        path: &Path,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        // Finding a place costs; past the cap no one will see it.
        let span = if self.problems.len() >= MOST_PROBLEMS {
            Span::default()
        } else {
            self.place(path)
        };
        self.span(code, span, path, message)
    }

    /// A problem with a place inside the value at `path`.
    pub(super) fn span(
        &mut self,
        code: Code,
        span: Span,
        path: &Path,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        if code.severity() == Severity::Error {
            self.errors += 1;
        }
        let problem = Diagnostic::new(code, span, path.to_string(), message);
        push_capped(&mut self.problems, problem)
    }

    /// Where `needle` stands in the source of the text at `path`; else where the
    /// text does.
    pub(super) fn find_in(&self, path: &Path, needle: &str) -> Span {
        let node = self.node(path);
        let Kind::Scalar(scalar) = &node.kind else {
            return node.span;
        };
        let (start, end) = scalar.range;
        match self
            .text
            .get(start..end)
            .and_then(|source| source.find(needle))
        {
            Some(at) => Span::in_text(self.text, start + at, start + at + needle.len()),
            None => node.span,
        }
    }

    /// Where the value at `path` stands; of what is missing, where its parent does.
    pub(super) fn place(&self, path: &Path) -> Span {
        self.node(path).span
    }

    fn node(&self, path: &Path) -> &Node {
        let mut node = &self.root;
        for step in &path.0 {
            let next = match (&node.kind, step) {
                (Kind::Map(entries), Step::Key(key)) => entries
                    .iter()
                    .find(|entry| *entry.key == **key)
                    .map(|entry| &entry.value),
                (Kind::List(items), Step::Index(index)) => items.get(*index),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }
}

/// The entries of a map whose keys are known.
pub(super) struct Fields<'n> {
    object: &'static Object,
    entries: Vec<(&'static Field, &'n Node)>,
    pub(super) path: Path,
}

impl<'n> Fields<'n> {
    /// Opens a map as an `object`: reports unknown, repeated and missing keys.
    pub(super) fn open(
        cx: &mut Context<'_>,
        node: &'n Node,
        path: &Path,
        object: &'static Object,
    ) -> Option<Self> {
        let Kind::Map(all) = &node.kind else {
            wrong_type(cx, node, path, &format!("{} (a map)", object.what));
            return None;
        };
        let mut entries: Vec<(&'static Field, &'n Node)> = Vec::new();
        report_repeated(cx, all, path);
        for entry in all {
            let Some(field) = object.field(&entry.key) else {
                unknown_key(cx, entry.key_span, &entry.key, path, object);
                continue;
            };
            if !entries.iter().any(|(known, _)| known.name == field.name) {
                entries.push((field, &entry.value));
            }
        }
        for field in object.fields.iter().filter(|field| field.required) {
            if !entries.iter().any(|(known, _)| known.name == field.name) {
                cx.at(
                    Code::Missing,
                    &path.key(field.name),
                    format!("{} needs the key `{}`", object.what, field.name),
                )
                .help(field.doc);
            }
        }
        Some(Self {
            object,
            entries,
            path: path.clone(),
        })
    }

    pub(super) fn get(&self, name: &str) -> Option<&'n Node> {
        debug_assert!(self.object.field(name).is_some(), "{name} is in the table");
        self.entries
            .iter()
            .find(|(field, _)| field.name == name)
            .map(|(_, node)| *node)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn at(&self, name: &str) -> Path {
        self.path.key(name)
    }

    /// A text, as it stands.
    pub(super) fn text(&self, cx: &mut Context<'_>, name: &str) -> Option<String> {
        text(cx, self.get(name)?, &self.at(name))
    }

    /// A text that says something.
    pub(super) fn words(&self, cx: &mut Context<'_>, name: &str) -> Option<String> {
        let text = self.text(cx, name)?;
        if text.trim().is_empty() {
            cx.at(Code::Blank, &self.at(name), format!("`{name}` is blank"));
            return None;
        }
        Some(text)
    }

    /// A text that parses as `T`; its error becomes a problem of `code`.
    pub(super) fn parsed<T>(&self, cx: &mut Context<'_>, name: &str, code: Code) -> Option<T>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let text = self.text(cx, name)?;
        parse_as(cx, &text, &self.at(name), code)
    }

    pub(super) fn flag(&self, cx: &mut Context<'_>, name: &str) -> Option<bool> {
        let (node, path) = (self.get(name)?, self.at(name));
        match plain(node) {
            Some("true" | "True" | "TRUE") => Some(true),
            Some("false" | "False" | "FALSE") => Some(false),
            other => {
                let old = other.is_some_and(|word| {
                    ["yes", "no", "on", "off"].contains(&word.to_ascii_lowercase().as_str())
                });
                let problem = wrong_type(cx, node, &path, "`true` or `false`");
                if old {
                    problem.help("YAML 1.2 has no other words for them than `true` and `false`");
                }
                None
            }
        }
    }

    /// A whole number within the bounds that the table states.
    pub(super) fn count(&self, cx: &mut Context<'_>, name: &str) -> Option<u32> {
        let bounds = match self.object.field(name)?.shape {
            Shape::Count(least, most) => (least, most),
            _ => return None,
        };
        count(cx, self.get(name)?, &self.at(name), bounds)
    }

    /// An amount of dollars.
    pub(super) fn dollars(&self, cx: &mut Context<'_>, name: &str) -> Option<f64> {
        let zero = matches!(self.object.field(name)?.shape, Shape::Dollars(true));
        let (node, path) = (self.get(name)?, self.at(name));
        let Some(amount) = plain(node).and_then(float) else {
            wrong_type(cx, node, &path, "a number of US dollars");
            return None;
        };
        let fits = amount.is_finite() && (amount > 0.0 || (zero && amount == 0.0));
        if !fits {
            let least = if zero { "not negative" } else { "above 0" };
            cx.at(
                Code::Range,
                &path,
                format!("`{name}` must be finite and {least}"),
            );
            return None;
        }
        Some(amount)
    }

    /// A duration, not below `least` and not above `most`.
    pub(super) fn duration(
        &self,
        cx: &mut Context<'_>,
        name: &str,
        (least, most): (Duration, Duration),
    ) -> Option<Duration> {
        let (node, path) = (self.get(name)?, self.at(name));
        if plain(node).is_some_and(|text| float(text).is_some()) {
            cx.at(Code::Duration, &path, "a duration needs a unit")
                .help("write it as `90s`, `30m` or `1h30m`");
            return None;
        }
        let text = text(cx, node, &path)?;
        let value = match super::duration::parse(&text) {
            Ok(value) => value,
            Err(why) => {
                cx.at(
                    Code::Duration,
                    &path,
                    format!("{} is not a duration: {why}", quoted(&text)),
                )
                .help("write it as `500ms`, `90s`, `30m` or `1h30m`");
                return None;
            }
        };
        if value < least || value > most {
            let show = super::duration::show;
            cx.at(
                Code::Range,
                &path,
                format!("`{name}` must be from {} to {}", show(least), show(most)),
            );
            return None;
        }
        Some(value)
    }

    /// One of the words of the table, as `T` (in the order of the words).
    pub(super) fn choice<T: Copy>(
        &self,
        cx: &mut Context<'_>,
        name: &str,
        values: &[T],
    ) -> Option<T> {
        let Shape::Choice(words) = &self.object.field(name)?.shape else {
            return None;
        };
        debug_assert_eq!(words.len(), values.len(), "{name}");
        let word = self.text(cx, name)?;
        if let Some(at) = words.iter().position(|known| **known == word) {
            return values.get(at).copied();
        }
        let code = if std::ptr::eq(self.object, &super::grammar::GATE) {
            Code::Gate
        } else {
            Code::Choice
        };
        not_a_word(cx, code, &self.at(name), &word, words);
        None
    }

    /// The entries of a list, with their paths.
    pub(super) fn list(&self, cx: &mut Context<'_>, name: &str) -> Option<Vec<(&'n Node, Path)>> {
        list(cx, self.get(name)?, &self.at(name))
    }

    /// A list of texts, with their paths.
    pub(super) fn texts(&self, cx: &mut Context<'_>, name: &str) -> Option<Vec<(String, Path)>> {
        let items = self.list(cx, name)?;
        Some(
            items
                .into_iter()
                .filter_map(|(node, path)| Some((text(cx, node, &path)?, path)))
                .collect(),
        )
    }

    /// A list of texts that parse as `T`.
    pub(super) fn parsed_list<T>(
        &self,
        cx: &mut Context<'_>,
        name: &str,
        code: Code,
    ) -> Option<Vec<T>>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let texts = self.texts(cx, name)?;
        Some(
            texts
                .into_iter()
                .filter_map(|(text, path)| parse_as(cx, &text, &path, code))
                .collect(),
        )
    }
}

/// Reports every key that occurs again, with both places.
pub(super) fn report_repeated(cx: &mut Context<'_>, all: &[super::yaml::Entry], path: &Path) {
    let mut first = std::collections::HashMap::new();
    for entry in all {
        let Some(before) = first.get(entry.key.as_str()).copied() else {
            first.insert(entry.key.as_str(), entry.key_span);
            continue;
        };
        let before: Span = before;
        cx.span(
            Code::RepeatedKey,
            entry.key_span,
            &path.key(&entry.key),
            format!(
                "the key {} was given before, on line {}",
                quoted(&entry.key),
                before.line
            ),
        )
        .also(before, "given here first")
        .help("keep one of the two");
    }
}

fn unknown_key(cx: &mut Context<'_>, span: Span, key: &str, path: &Path, object: &Object) {
    let names: Vec<&str> = object.fields.iter().map(|field| field.name).collect();
    let help = match nearest(key, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{} may have: {}", object.what, names.join(", ")),
    };
    cx.span(
        Code::UnknownKey,
        span,
        &path.key(key),
        format!("{} has no key {}", object.what, quoted(key)),
    )
    .help(help);
}

/// Reports a word that is not one of `words`.
pub(super) fn not_a_word(
    cx: &mut Context<'_>,
    code: Code,
    path: &Path,
    word: &str,
    words: &[&str],
) {
    let help = match nearest(word, words) {
        Some(near) => format!("did you mean `{near}`? It may be: {}", words.join(", ")),
        None => format!("it may be: {}", words.join(", ")),
    };
    let what = match code {
        Code::Gate => format!("there is no gate {}", quoted(word)),
        _ => format!("{} is not allowed here", quoted(word)),
    };
    cx.at(code, path, what).help(help);
}

pub(super) fn parse_as<T>(cx: &mut Context<'_>, text: &str, path: &Path, code: Code) -> Option<T>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    match text.parse() {
        Ok(value) => Some(value),
        Err(error) => {
            cx.at(code, path, error.to_string());
            None
        }
    }
}

pub(super) fn list<'n>(
    cx: &mut Context<'_>,
    node: &'n Node,
    path: &Path,
) -> Option<Vec<(&'n Node, Path)>> {
    let Kind::List(items) = &node.kind else {
        wrong_type(cx, node, path, "a list");
        return None;
    };
    Some(
        items
            .iter()
            .enumerate()
            .map(|(index, item)| (&**item, path.index(index)))
            .collect(),
    )
}

/// A text: quoted, or plain and neither number, boolean nor null.
pub(super) fn text(cx: &mut Context<'_>, node: &Node, path: &Path) -> Option<String> {
    if let Kind::Scalar(scalar) = &node.kind
        && (!scalar.plain || resolve(&scalar.text) == Plain::Text)
    {
        return Some(scalar.text.clone());
    }
    let help = match &node.kind {
        Kind::Scalar(scalar) if resolve(&scalar.text) != Plain::Null && scalar.text.len() < 40 => {
            Some(format!(
                "if it is meant as text, quote it: \"{}\"",
                scalar.text
            ))
        }
        _ => None,
    };
    let problem = wrong_type(cx, node, path, "a text");
    if let Some(help) = help {
        problem.help(help);
    }
    None
}

pub(super) fn count(
    cx: &mut Context<'_>,
    node: &Node,
    path: &Path,
    (least, most): (u32, u32),
) -> Option<u32> {
    let Some(number) = plain(node).and_then(float).filter(|n| n.fract() == 0.0) else {
        wrong_type(cx, node, path, "a whole number");
        return None;
    };
    // Exact: bounds are far below 2^53, and what is not is out of range anyway.
    if number < f64::from(least) || number > f64::from(most) {
        cx.at(
            Code::Range,
            path,
            format!("the number must be from {least} to {most}"),
        );
        return None;
    }
    plain(node)?
        .trim_start_matches('+')
        .parse()
        .ok()
        .or_else(|| {
            wrong_type(cx, node, path, "a whole number in decimal digits");
            None
        })
}

fn wrong_type<'c>(
    cx: &'c mut Context<'_>,
    node: &Node,
    path: &Path,
    wanted: &str,
) -> &'c mut Diagnostic {
    let found = match &node.kind {
        Kind::List(_) => "a list".to_owned(),
        Kind::Map(_) => "a map".to_owned(),
        Kind::Scalar(scalar) if !scalar.plain => format!("the text {}", quoted(&scalar.text)),
        Kind::Scalar(scalar) => match resolve(&scalar.text) {
            Plain::Null => "nothing".to_owned(),
            Plain::Bool => format!("the boolean {}", quoted(&scalar.text)),
            Plain::Number => format!("the number {}", quoted(&scalar.text)),
            Plain::Text => format!("the text {}", quoted(&scalar.text)),
        },
    };
    let problem = cx.span(
        Code::WrongType,
        node.span,
        path,
        format!("expected {wanted}, found {found}"),
    );
    if found == "nothing" {
        problem.help("give the key a value or remove it");
    }
    problem
}

/// The text of a scalar without quotes.
fn plain(node: &Node) -> Option<&str> {
    match &node.kind {
        Kind::Scalar(scalar) if scalar.plain => Some(&scalar.text),
        _ => None,
    }
}

/// What a plain scalar is under the core schema of YAML 1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plain {
    Null,
    Bool,
    Number,
    Text,
}

fn resolve(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Plain::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Plain::Bool,
        text if float(text).is_some() => Plain::Number,
        _ => Plain::Text,
    }
}

/// The number a plain scalar stands for, if it is one.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(|n| n as f64);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok().map(|n| n as f64);
    }
    match unsigned {
        ".inf" | ".Inf" | ".INF" => return Some(f64::INFINITY),
        _ => {}
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(f64::NAN);
    }
    let digits = unsigned.bytes().any(|byte| byte.is_ascii_digit());
    let number = unsigned
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if digits && number && unsigned.starts_with(|c: char| c == '.' || c.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_resolve_as_yaml_1_2_says() {
        for (text, expected) in [
            ("", Plain::Null),
            ("~", Plain::Null),
            ("null", Plain::Null),
            ("nUll", Plain::Text),
            ("true", Plain::Bool),
            ("FALSE", Plain::Bool),
            ("yes", Plain::Text),
            ("off", Plain::Text),
            ("0", Plain::Number),
            ("-12", Plain::Number),
            ("4.5", Plain::Number),
            (".5", Plain::Number),
            ("1e3", Plain::Number),
            ("0x1F", Plain::Number),
            ("0o17", Plain::Number),
            (".inf", Plain::Number),
            (".nan", Plain::Number),
            ("1.2.3", Plain::Text),
            ("gpt-5", Plain::Text),
            ("-", Plain::Text),
            ("e3", Plain::Text),
            ("30m", Plain::Text),
        ] {
            assert_eq!(resolve(text), expected, "{text:?}");
        }
    }
}
