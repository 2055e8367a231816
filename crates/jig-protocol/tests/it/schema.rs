//! The JSON Schema agrees with the parser.

use std::path::Path;

use jig_protocol::definition::{Code, json_schema, parse};
use serde_json::Value;

/// A validator for the keywords the schema uses, and no others.
fn fits(schema: &Value, value: &Value) -> bool {
    let Value::Object(rules) = schema else {
        return schema
            .as_bool()
            .expect("a schema is an object or a boolean");
    };
    rules.iter().all(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "title" | "description" | "deprecated" | "then" | "else" => true,
        "type" => match rule.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            other => panic!("unknown type {other}"),
        },
        "properties" => rule
            .as_object()
            .unwrap()
            .iter()
            .all(|(name, inner)| value.get(name).is_none_or(|value| fits(inner, value))),
        "additionalProperties" => value.as_object().is_none_or(|map| {
            let known = rules.get("properties").and_then(Value::as_object);
            map.iter()
                .filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)))
                .all(|(_, value)| fits(rule, value))
        }),
        "propertyNames" => value.as_object().is_none_or(|map| {
            map.keys()
                .all(|name| fits(rule, &Value::String(name.clone())))
        }),
        "required" => value.as_object().is_none_or(|map| {
            let names = rule.as_array().unwrap();
            names
                .iter()
                .all(|name| map.contains_key(name.as_str().unwrap()))
        }),
        "items" => value
            .as_array()
            .is_none_or(|items| items.iter().all(|item| fits(rule, item))),
        "enum" => rule.as_array().unwrap().contains(value),
        "const" => rule == value,
        "pattern" => value
            .as_str()
            .is_none_or(|text| match rule.as_str().unwrap() {
                "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" => {
                    text.parse::<jig_protocol::definition::Name>().is_ok()
                }
                "^acp:[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" => {
                    jig_protocol::definition::RuntimeName::parse(text)
                        .is_ok_and(|runtime| runtime.acp_agent().is_some())
                }
                "^([0-9]+(ms|s|m|h))+$" => jig_protocol::definition::duration::parse(text).is_ok(),
                other => panic!("unknown pattern {other}"),
            }),
        "minimum" => value
            .as_f64()
            .is_none_or(|number| number >= rule.as_f64().unwrap()),
        "maximum" => value
            .as_f64()
            .is_none_or(|number| number <= rule.as_f64().unwrap()),
        "exclusiveMinimum" => value
            .as_f64()
            .is_none_or(|number| number > rule.as_f64().unwrap()),
        "allOf" => rule
            .as_array()
            .unwrap()
            .iter()
            .all(|inner| fits(inner, value)),
        "oneOf" => {
            rule.as_array()
                .unwrap()
                .iter()
                .filter(|inner| fits(inner, value))
                .count()
                == 1
        }
        "if" => {
            let branch = if fits(rule, value) { "then" } else { "else" };
            rules.get(branch).is_none_or(|inner| fits(inner, value))
        }
        other => panic!("the test knows no keyword {other}"),
    })
}

fn files(dir: &str) -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir);
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path.display().to_string(), text)
        })
        .collect()
}

/// What only the schema's reader can see: shape, not how things fit together.
const SHAPE: [Code; 9] = [
    Code::UnknownKey,
    Code::WrongType,
    Code::Missing,
    Code::Choice,
    Code::Range,
    Code::Prompt,
    Code::WrongKind,
    Code::Gate,
    Code::GateField,
];

#[test]
fn both_agree_on_every_file() {
    let schema = json_schema();
    let (mut good, mut bad) = (0, 0);
    for (name, text) in files("tests/it/definitions")
        .into_iter()
        .chain(files("../../examples/definitions"))
    {
        // By YAML 1.2, as editors read it: `off` is a text.
        let options = serde_yaml::options! { strict_booleans: true };
        let Ok(value) = serde_yaml::from_str_with_options::<Value>(&text, options) else {
            continue;
        };
        let parsed = parse(&text);
        let problems: Vec<Code> = parsed
            .diagnostics
            .iter()
            .map(|problem| problem.code)
            .collect();
        if parsed.definition.is_some() {
            good += 1;
            assert!(
                fits(&schema, &value),
                "{name}: the parser accepts it, the schema does not"
            );
        }
        // A duration's range is no shape, and the test's YAML reader expands merge keys.
        let shapes = problems.iter().filter(|code| SHAPE.contains(code)).count();
        if shapes > 0 && !name.contains("too-long") && !name.contains("merge-key") {
            bad += 1;
            assert!(
                !fits(&schema, &value),
                "{name}: {problems:?}, but the schema accepts it"
            );
        }
    }
    assert!(
        good >= 8 && bad >= 8,
        "{good} good and {bad} bad files were compared"
    );
}
