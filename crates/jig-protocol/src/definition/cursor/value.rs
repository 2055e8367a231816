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
