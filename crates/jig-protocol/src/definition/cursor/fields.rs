//! Typed access to the keys of an object.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::super::code::Code;
use super::super::diagnostic::{Span, quoted};
use super::super::grammar::{Field, Object, Shape};
use super::super::model::RuntimeName;
use super::super::suggest::nearest;
use super::super::yaml::{Kind, Node};
use super::context::{Context, Path};
use super::scalar::{Plain, float, plain};
use super::value::{
    REMOVE_QUOTES, count, list, needs_no_quotes, parse_as, short_text, text, wrong_type,
};

/// The entries of a map whose keys are known.
pub(in super::super) struct Fields<'n> {
    object: &'static Object,
    entries: Vec<(&'static Field, &'n Node)>,
    pub(in super::super) path: Path,
}

impl<'n> Fields<'n> {
    /// Opens a map as an `object`: reports unknown, repeated and missing keys.
    pub(in super::super) fn open(
        cx: &mut Context<'_>,
        node: &'n Node,
        path: &Path,
        object: &'static Object,
    ) -> Option<Self> {
        let Kind::Map(all) = &node.kind else {
            let problem = wrong_type(cx, node, path, &format!("{} (a map)", object.what));
            if let Some(text) = short_text(node)
                && std::ptr::eq(object, &super::super::grammar::GATE)
            {
                problem.help(format!("write it as `{{name: {text}}}`"));
            }
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

    pub(in super::super) fn get(&self, name: &str) -> Option<&'n Node> {
        debug_assert!(self.object.field(name).is_some(), "{name} is in the table");
        self.entries
            .iter()
            .find(|(field, _)| field.name == name)
            .map(|(_, node)| *node)
    }

    pub(in super::super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(in super::super) fn at(&self, name: &str) -> Path {
        self.path.key(name)
    }

    /// A text, as it stands.
    pub(in super::super) fn text(&self, cx: &mut Context<'_>, name: &str) -> Option<String> {
        text(cx, self.get(name)?, &self.at(name))
    }

    /// A text that says something.
    pub(in super::super) fn words(&self, cx: &mut Context<'_>, name: &str) -> Option<String> {
        let text = self.text(cx, name)?;
        if text.trim().is_empty() {
            cx.at(Code::Blank, &self.at(name), format!("`{name}` is blank"));
            return None;
        }
        Some(text)
    }

    /// A text that parses as `T`; its error becomes a problem of `code`.
    pub(in super::super) fn parsed<T>(
        &self,
        cx: &mut Context<'_>,
        name: &str,
        code: Code,
    ) -> Option<T>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let text = self.text(cx, name)?;
        parse_as(cx, &text, &self.at(name), code)
    }

    pub(in super::super) fn flag(&self, cx: &mut Context<'_>, name: &str) -> Option<bool> {
        let (node, path) = (self.get(name)?, self.at(name));
        match plain(node) {
            Some("true" | "True" | "TRUE") => Some(true),
            Some("false" | "False" | "FALSE") => Some(false),
            other => {
                let old = other.is_some_and(|word| {
                    ["yes", "no", "on", "off"].contains(&word.to_ascii_lowercase().as_str())
                });
                let problem = wrong_type(cx, node, &path, "`true` or `false`");
                if needs_no_quotes(node, Plain::Bool) {
                    problem.help(REMOVE_QUOTES);
                } else if old {
                    problem.help("YAML 1.2 has no other words for them than `true` and `false`");
                }
                None
            }
        }
    }

    /// A whole number within the bounds that the table states.
    pub(in super::super) fn count(&self, cx: &mut Context<'_>, name: &str) -> Option<u32> {
        let bounds = match self.object.field(name)?.shape {
            Shape::Count(least, most) => (least, most),
            _ => return None,
        };
        let what = format!("`{name}`");
        count(cx, self.get(name)?, &self.at(name), &what, bounds)
    }

    /// An amount of dollars.
    pub(in super::super) fn dollars(&self, cx: &mut Context<'_>, name: &str) -> Option<f64> {
        let zero = matches!(self.object.field(name)?.shape, Shape::Dollars(true));
        let (node, path) = (self.get(name)?, self.at(name));
        let Some(amount) = plain(node).and_then(float) else {
            let problem = wrong_type(cx, node, &path, "a number of US dollars");
            if needs_no_quotes(node, Plain::Number) {
                problem.help(REMOVE_QUOTES);
            }
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
    pub(in super::super) fn duration(
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
        let value = match super::super::duration::parse(&text) {
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
            let show = super::super::duration::show;
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
    pub(in super::super) fn choice<T: Copy>(
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
        let code = if std::ptr::eq(self.object, &super::super::grammar::GATE) {
            Code::Gate
        } else {
            Code::Choice
        };
        not_a_word(cx, code, &self.at(name), &word, words);
        None
    }

    /// The name of a runtime.
    pub(in super::super) fn runtime(
        &self,
        cx: &mut Context<'_>,
        name: &str,
    ) -> Option<RuntimeName> {
        let word = self.text(cx, name)?;
        match RuntimeName::parse(&word) {
            Ok(runtime) => return Some(runtime),
            Err(None) => {
                let mut words = RuntimeName::KNOWN.to_vec();
                words.push("acp:<name>");
                not_a_word(cx, Code::Choice, &self.at(name), &word, &words);
            }
            Err(Some(invalid)) => {
                cx.at(Code::Choice, &self.at(name), invalid.to_string())
                    .help("after `acp:` comes the name of an agent in runtimes.toml");
            }
        }
        None
    }

    /// The entries of a list, with their paths.
    pub(in super::super) fn list(
        &self,
        cx: &mut Context<'_>,
        name: &str,
    ) -> Option<Vec<(&'n Node, Path)>> {
        list(cx, self.get(name)?, &self.at(name))
    }

    /// A list of texts, with their paths.
    pub(in super::super) fn texts(
        &self,
        cx: &mut Context<'_>,
        name: &str,
    ) -> Option<Vec<(String, Path)>> {
        let items = self.list(cx, name)?;
        Some(
            items
                .into_iter()
                .filter_map(|(node, path)| Some((text(cx, node, &path)?, path)))
                .collect(),
        )
    }

    /// A list of texts that parse as `T`.
    pub(in super::super) fn parsed_list<T>(
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
pub(in super::super) fn report_repeated(
    cx: &mut Context<'_>,
    all: &[super::super::yaml::Entry],
    path: &Path,
) {
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
fn not_a_word(cx: &mut Context<'_>, code: Code, path: &Path, word: &str, words: &[&str]) {
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
