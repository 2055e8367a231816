//! Single values: lists, texts, whole numbers, and what to say of other types.

use std::fmt;
use std::str::FromStr;

use super::super::code::Code;
use super::super::diagnostic::{Diagnostic, quoted};
use super::super::yaml::{Kind, Node};
use super::context::{Context, Path};
use super::scalar::{Plain, float, plain, resolve};

pub(in super::super) fn parse_as<T>(
    cx: &mut Context<'_>,
    text: &str,
    path: &Path,
    code: Code,
) -> Option<T>
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

pub(in super::super) fn list<'n>(
    cx: &mut Context<'_>,
    node: &'n Node,
    path: &Path,
) -> Option<Vec<(&'n Node, Path)>> {
    let Kind::List(items) = &node.kind else {
        let problem = wrong_type(cx, node, path, "a list");
        if let Some(text) = short_text(node) {
            problem.help(format!("for a list of one, write `[{text}]`"));
        }
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
pub(in super::super) fn text(cx: &mut Context<'_>, node: &Node, path: &Path) -> Option<String> {
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

pub(in super::super) fn count(
    cx: &mut Context<'_>,
    node: &Node,
    path: &Path,
    what: &str,
    (least, most): (u32, u32),
) -> Option<u32> {
    let Some(number) = plain(node).and_then(float).filter(|n| n.fract() == 0.0) else {
        let problem = wrong_type(cx, node, path, "a whole number");
        if needs_no_quotes(node, Plain::Number) {
            problem.help(REMOVE_QUOTES);
        }
        return None;
    };
    // Exact: bounds are far below 2^53, and what is not is out of range anyway.
    if number < f64::from(least) || number > f64::from(most) {
        cx.at(
            Code::Range,
            path,
            format!("{what} must be from {least} to {most}"),
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

/// The text of a scalar that reads well inside a sentence and stands for itself
/// in a flow list.
pub(super) fn short_text(node: &Node) -> Option<&str> {
    let Kind::Scalar(scalar) = &node.kind else {
        return None;
    };
    let word = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let short = !scalar.text.is_empty() && scalar.text.len() < 40;
    let shows = short && scalar.text.chars().all(word) && resolve(&scalar.text) != Plain::Null;
    shows.then_some(scalar.text.as_str())
}

/// Whether a quoted scalar would be of the wanted type without its quotes.
pub(super) fn needs_no_quotes(node: &Node, wanted: Plain) -> bool {
    let Kind::Scalar(scalar) = &node.kind else {
        return false;
    };
    !scalar.plain && resolve(&scalar.text) == wanted
}

/// What to do about such a scalar.
pub(super) const REMOVE_QUOTES: &str = "in quotes it is a text; remove them";

pub(super) fn wrong_type<'c>(
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
