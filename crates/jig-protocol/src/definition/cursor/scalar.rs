//! What a scalar without quotes means under the core schema of YAML 1.2.

use super::super::yaml::{Kind, Node};

/// The text of a scalar without quotes.
pub(super) fn plain(node: &Node) -> Option<&str> {
    match &node.kind {
        Kind::Scalar(scalar) if scalar.plain => Some(&scalar.text),
        _ => None,
    }
}

/// What a plain scalar is under the core schema of YAML 1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    Null,
    Bool,
    Number,
    Text,
}

pub(super) fn resolve(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Plain::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Plain::Bool,
        text if float(text).is_some() => Plain::Number,
        _ => Plain::Text,
    }
}

/// The number a plain scalar stands for, if it is one.
pub(super) fn float(text: &str) -> Option<f64> {
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
