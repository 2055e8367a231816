//! Guards and predicates over the field view.
//!
//! A predicate is `<field> == <literal>` or `<field> != <literal>`; a guard is
//! a predicate or a lone field name, tested for truth. Comparison is typed:
//! values of different types are never equal. An absent field equals `null`
//! only, so `!=` holds for a field nobody reported: holds fail closed.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

/// The fields known so far, by name.
pub type Fields = Map<String, Value>;

/// What a phase's `if` says.
#[derive(Debug, Clone, PartialEq)]
pub enum Guard {
    /// The field is present and truthy.
    Truthy(String),
    /// The predicate holds.
    Predicate(Predicate),
}

/// A comparison of one field with a literal.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicate {
    /// The field's name.
    pub field: String,
    /// Whether equality or its opposite is asked for.
    pub op: Op,
    /// What it is compared with: null, a boolean, a number or a string.
    pub literal: Value,
    source: String,
}

/// The comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

/// A guard or predicate that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a predicate: {why}", crate::text::quoted(.text))]
pub struct InvalidPredicate {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

/// Whether `text` may name a field: `[A-Za-z_][A-Za-z0-9_]*`.
#[must_use]
pub fn is_field_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a value counts as true: absent, null, false, 0, "", [] and {} do
/// not, all else does.
#[must_use]
pub fn is_truthy(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(map)) => !map.is_empty(),
    }
}

impl Guard {
    /// Whether the guarded phase runs, given the fields.
    #[must_use]
    pub fn holds(&self, fields: &Fields) -> bool {
        match self {
            Self::Truthy(field) => is_truthy(fields.get(field)),
            Self::Predicate(predicate) => predicate.holds(fields),
        }
    }

    /// The field it reads.
    #[must_use]
    pub fn field(&self) -> &str {
        match self {
            Self::Truthy(field) => field,
            Self::Predicate(predicate) => &predicate.field,
        }
    }
}

impl Predicate {
    /// Whether the predicate holds for the fields.
    #[must_use]
    pub fn holds(&self, fields: &Fields) -> bool {
        let equal = equals(
            fields.get(&self.field).unwrap_or(&Value::Null),
            &self.literal,
        );
        match self.op {
            Op::Equal => equal,
            Op::NotEqual => !equal,
        }
    }
}

/// What a field of known type holds, when `predicate` compares it with a literal
/// that it can never equal; `None` when the comparison makes sense or the
/// field's type is not known.
#[must_use]
pub fn wrong_literal(predicate: &Predicate) -> Option<&'static str> {
    // Every field may be absent, and an absent field equals null.
    if predicate.literal.is_null() {
        return None;
    }
    let (fits, expected) = match predicate.field.as_str() {
        "approved" | "passed" => (predicate.literal.is_boolean(), "`true` or `false`"),
        "status" => (
            matches!(predicate.literal.as_str(), Some("success" | "fail")),
            "`success` or `fail`",
        ),
        "exit_code" => (predicate.literal.is_number(), "a number"),
        "summary" | "notes_for_next_agent" | "output_tail" => {
            (predicate.literal.is_string(), "a text")
        }
        "artifacts" | "changed_files" | "failures" | "blocking" | "findings" => (
            false,
            "a list; a lone field name tests whether it holds anything",
        ),
        _ => return None,
    };
    (!fits).then_some(expected)
}

fn equals(value: &Value, literal: &Value) -> bool {
    match (value, literal) {
        // 1 and 1.0 are the same number, whatever the text said; whole numbers are
        // compared as such, since doubles cannot tell large ones apart.
        (Value::Number(a), Value::Number(b)) => {
            a == b || ((a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64())
        }
        (a, b) => a == b,
    }
}

impl FromStr for Guard {
    type Err = InvalidPredicate;

    fn from_str(text: &str) -> Result<Self, InvalidPredicate> {
        let trimmed = text.trim();
        if !trimmed.contains(char::is_whitespace)
            && !trimmed.contains("==")
            && !trimmed.contains("!=")
        {
            if LITERAL_WORDS.contains(&trimmed) {
                return Err(InvalidPredicate {
                    text: text.to_owned(),
                    why: "a lone word names a field, and this one is a literal".to_owned(),
                });
            }
            if is_field_name(trimmed) {
                return Ok(Self::Truthy(trimmed.to_owned()));
            }
            return Err(InvalidPredicate {
                text: text.to_owned(),
                why: "a lone word must be a field name (`[A-Za-z_][A-Za-z0-9_]*`)".to_owned(),
            });
        }
        text.parse().map(Self::Predicate)
    }
}

/// Words that stand for a value and thus for no field.
const LITERAL_WORDS: [&str; 3] = ["true", "false", "null"];

impl FromStr for Predicate {
    type Err = InvalidPredicate;

    fn from_str(text: &str) -> Result<Self, InvalidPredicate> {
        let refuse = |why: &str| InvalidPredicate {
            text: text.to_owned(),
            why: why.to_owned(),
        };
        let trimmed = text.trim();
        let end = trimmed
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .ok_or_else(|| refuse("expected `<field> == <literal>` or `<field> != <literal>`"))?;
        let (field, rest) = trimmed.split_at(end);
        if !is_field_name(field) {
            return Err(refuse(
                "it must start with a field name (`[A-Za-z_][A-Za-z0-9_]*`)",
            ));
        }
        if LITERAL_WORDS.contains(&field) {
            return Err(refuse(
                "it must start with a field name, and this one is a literal",
            ));
        }
        let rest = rest.trim_start();
        let (op, literal) = if let Some(rest) = rest.strip_prefix("==") {
            (Op::Equal, rest)
        } else if let Some(rest) = rest.strip_prefix("!=") {
            (Op::NotEqual, rest)
        } else {
            return Err(refuse("the operator must be `==` or `!=`"));
        };
        if literal.starts_with('=') {
            return Err(refuse("the operator must be `==` or `!=`"));
        }
        let literal = parse_literal(literal.trim()).map_err(refuse)?;
        Ok(Self {
            field: field.to_owned(),
            op,
            literal,
            source: trimmed.to_owned(),
        })
    }
}

/// A literal: `true`, `false`, `null`, a number, or a string, quoted or bare.
fn parse_literal(text: &str) -> Result<Value, &'static str> {
    let Some(first) = text.chars().next() else {
        return Err("the literal is missing");
    };
    if first == '"' || first == '\'' {
        let inner = text
            .strip_prefix(first)
            .and_then(|rest| rest.strip_suffix(first))
            .ok_or("the quoted literal is not closed, or something follows it")?;
        if inner.contains(first) {
            return Err("something follows the quoted literal");
        }
        return Ok(Value::String(inner.to_owned()));
    }
    if text.contains(char::is_whitespace) {
        return Err("a literal with spaces must be quoted; there is no `and`, `or` or `not`");
    }
    if text.contains(['"', '\'', '=']) {
        return Err("a bare literal may not contain quotes or `=`");
    }
    Ok(match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        text if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            match serde_json::from_str::<serde_json::Number>(text) {
                Ok(number) => Value::Number(number),
                Err(_) => Value::String(text.to_owned()),
            }
        }
        text => Value::String(text.to_owned()),
    })
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truthy(field) => f.write_str(field),
            Self::Predicate(predicate) => predicate.fmt(f),
        }
    }
}
