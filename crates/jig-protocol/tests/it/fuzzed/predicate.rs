//! The parsers of guards and predicates.

use std::fmt::Display;
use std::str::FromStr;

use jig_protocol::predicate::{Fields, Guard, InvalidPredicate, Op, Predicate, is_field_name};
use serde_json::{Value, json};

pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(predicate) = reads::<Predicate>(&text) {
        compares(&predicate);
        assert_eq!(reads::<Guard>(&text), Some(Guard::Predicate(predicate)));
    }
    if let Some(guard) = reads::<Guard>(&text) {
        assert!(is_field_name(guard.field()));
        if matches!(guard, Guard::Truthy(_)) {
            assert!(!guard.holds(&Fields::new()));
        }
    }
}

/// Parses; what was read is written and read again as the same, and what was
/// not is refused in words that are fit for a terminal.
fn reads<T>(text: &str) -> Option<T>
where
    T: FromStr<Err = InvalidPredicate> + Display + PartialEq + std::fmt::Debug,
{
    match text.parse::<T>() {
        Ok(read) => {
            assert_eq!(read.to_string().parse::<T>().as_ref(), Ok(&read));
            Some(read)
        }
        Err(error) => {
            let shown = error.to_string();
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
            None
        }
    }
}

fn compares(predicate: &Predicate) {
    assert!(is_field_name(&predicate.field));
    let with =
        |value: Value| -> Fields { std::iter::once((predicate.field.clone(), value)).collect() };
    let opposite = |fields: &Fields| {
        let mut opposite = predicate.clone();
        opposite.op = match predicate.op {
            Op::Equal => Op::NotEqual,
            Op::NotEqual => Op::Equal,
        };
        opposite.holds(fields)
    };
    let equal = predicate.op == Op::Equal;
    assert_eq!(predicate.holds(&with(predicate.literal.clone())), equal);
    // Absent is null, and nothing else.
    assert_eq!(
        predicate.holds(&Fields::new()),
        predicate.literal.is_null() == equal
    );
    for value in [json!(null), json!(true), json!(0), json!(1.5), json!("x")] {
        let fields = with(value.clone());
        assert_ne!(predicate.holds(&fields), opposite(&fields));
        let same_type =
            std::mem::discriminant(&value) == std::mem::discriminant(&predicate.literal);
        assert!(same_type || predicate.holds(&fields) != equal, "{value}");
    }
    for value in [json!([]), json!({}), json!([predicate.literal])] {
        assert_ne!(predicate.holds(&with(value)), equal);
    }
}
