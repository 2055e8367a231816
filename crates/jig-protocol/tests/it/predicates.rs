//! Guards, predicates and truth, row by row.

use jig_protocol::predicate::{Fields, Guard, Predicate, is_truthy, wrong_literal};
use serde_json::{Value, json};

fn fields(value: &Value) -> Fields {
    Fields::from_iter([("x".to_owned(), value.clone())])
}

/// value, truthy, and for each literal whether `x == <literal>` holds.
#[test]
fn truth_and_equality() {
    let literals = [
        "true", "false", "null", "0", "1", "1.0", "low", "\"1\"", "\"true\"", "\"null\"", "\"\"",
    ];
    #[rustfmt::skip]
    let table: &[(Value, bool, [bool; 11])] = &[
        //                          true   false  null   0      1      1.0    low    "1"    "true" "null" ""
        (json!(null),       false, [false, false, true,  false, false, false, false, false, false, false, false]),
        (json!(true),       true,  [true,  false, false, false, false, false, false, false, false, false, false]),
        (json!(false),      false, [false, true,  false, false, false, false, false, false, false, false, false]),
        (json!(0),          false, [false, false, false, true,  false, false, false, false, false, false, false]),
        (json!(-0.0),       false, [false, false, false, true,  false, false, false, false, false, false, false]),
        (json!(1),          true,  [false, false, false, false, true,  true,  false, false, false, false, false]),
        (json!(1.0),        true,  [false, false, false, false, true,  true,  false, false, false, false, false]),
        (json!(0.5),        true,  [false, false, false, false, false, false, false, false, false, false, false]),
        (json!(""),         false, [false, false, false, false, false, false, false, false, false, false, true]),
        (json!("low"),      true,  [false, false, false, false, false, false, true,  false, false, false, false]),
        (json!("false"),    true,  [false, false, false, false, false, false, false, false, false, false, false]),
        (json!("true"),     true,  [false, false, false, false, false, false, false, false, true,  false, false]),
        (json!("1"),        true,  [false, false, false, false, false, false, false, true,  false, false, false]),
        (json!("null"),     true,  [false, false, false, false, false, false, false, false, false, true,  false]),
        (json!([]),         false, [false, false, false, false, false, false, false, false, false, false, false]),
        (json!([0]),        true,  [false, false, false, false, false, false, false, false, false, false, false]),
        (json!({}),         false, [false, false, false, false, false, false, false, false, false, false, false]),
        (json!({"a": 1}),   true,  [false, false, false, false, false, false, false, false, false, false, false]),
    ];
    for (value, truthy, equal) in table {
        assert_eq!(is_truthy(Some(value)), *truthy, "{value}");
        let fields = fields(value);
        assert_eq!("x".parse::<Guard>().unwrap().holds(&fields), *truthy);
        for (literal, expected) in literals.iter().zip(equal) {
            let holds = |op: &str| {
                let text = format!("x {op} {literal}");
                text.parse::<Predicate>().unwrap().holds(&fields)
            };
            assert_eq!(holds("=="), *expected, "{value} == {literal}");
            assert_eq!(holds("!="), !*expected, "{value} != {literal}");
        }
    }
}

#[test]
fn an_absent_field_equals_null_only_so_holds_fail_closed() {
    let nothing = Fields::new();
    for (text, holds) in [
        ("risk != low", true),
        ("risk == low", false),
        ("risk == null", true),
        ("risk != null", false),
        ("risk == false", false),
        ("risk == 0", false),
        ("risk == \"\"", false),
    ] {
        assert_eq!(
            text.parse::<Predicate>().unwrap().holds(&nothing),
            holds,
            "{text}"
        );
    }
    assert!(!"risk".parse::<Guard>().unwrap().holds(&nothing));
    assert!(!is_truthy(None));
}

#[test]
fn literals_are_typed() {
    for (text, literal) in [
        ("x==true", json!(true)),
        ("  x   ==   true  ", json!(true)),
        ("x == True", json!("True")),
        ("x == -1", json!(-1)),
        ("x == 1e3", json!(1000.0)),
        ("x == 007", json!("007")),
        ("x == 1.2.3", json!("1.2.3")),
        ("x == two-words", json!("two-words")),
        ("x == \"two words\"", json!("two words")),
        ("x == 'two words'", json!("two words")),
        ("x == \"it's\"", json!("it's")),
        ("x == \"true\"", json!("true")),
        ("x != ''", json!("")),
        ("x == a!b", json!("a!b")),
    ] {
        assert_eq!(
            text.parse::<Predicate>().unwrap().literal,
            literal,
            "{text}"
        );
    }
}

#[test]
fn what_is_no_predicate() {
    for text in [
        "",
        " ",
        "x",
        "x =",
        "x = y",
        "x ==",
        "== y",
        "x === y",
        "x == y z",
        "x == \"y",
        "x == \"y\" z",
        "x == a\"b",
        "x < 1",
        "x and y",
        "not x",
        "a.b == 1",
        "1x == 1",
        "é == 1",
        "x == y == z",
        "x != == y",
    ] {
        assert!(text.parse::<Predicate>().is_err(), "{text:?}");
    }
    for text in ["", "a b", "1x", "true", "false", "null", "x-y", "a.b", "!x"] {
        assert!(text.parse::<Guard>().is_err(), "{text:?}");
    }
}

#[test]
fn large_whole_numbers_are_told_apart() {
    let predicate: Predicate = "x == 9007199254740993".parse().unwrap();
    assert!(predicate.holds(&fields(&json!(9_007_199_254_740_993_u64))));
    assert!(!predicate.holds(&fields(&json!(9_007_199_254_740_992_u64))));
}

#[test]
fn known_fields_refuse_literals_they_never_equal() {
    for (text, wrong) in [
        ("approved == true", false),
        ("approved != false", false),
        ("approved != fals", true),
        ("approved == \"true\"", true),
        ("approved == 1", true),
        ("approved == null", false),
        ("status == success", false),
        ("status == \"fail\"", false),
        ("status == ok", true),
        ("status == true", true),
        ("passed == yes", true),
        ("exit_code != 0", false),
        ("exit_code == zero", true),
        ("summary == done", false),
        ("summary == true", true),
        ("artifacts == x", true),
        ("blocking != null", false),
        ("risk != anything", false),
        ("revised == 1", false),
    ] {
        let predicate: Predicate = text.parse().unwrap();
        assert_eq!(wrong_literal(&predicate).is_some(), wrong, "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn shown_predicates_read_back(text in "[a-z]{1,3} ?(==|!=) ?([a-z0-9.-]{1,4}|\"[a-z ]{0,4}\")") {
        if let Ok(predicate) = text.parse::<Predicate>() {
            proptest::prop_assert_eq!(predicate.to_string().parse::<Predicate>().unwrap(), predicate);
        }
    }

    #[test]
    fn not_equal_is_the_opposite(value in "[a-z0-9]{0,4}", literal in "[a-z0-9]{1,4}") {
        let fields = fields(&serde_json::from_str(&value).unwrap_or(Value::String(value)));
        let holds = |op: &str| format!("x {op} {literal}").parse::<Predicate>().unwrap().holds(&fields);
        proptest::prop_assert_ne!(holds("=="), holds("!="));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,30}") {
        let _ = text.parse::<Guard>();
        let _ = text.parse::<Predicate>();
    }
}
