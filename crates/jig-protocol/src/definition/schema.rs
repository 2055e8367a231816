//! The JSON Schema of the language, made of the same table the parser reads.

use serde_json::{Map, Value, json};

use super::grammar::{CODE_KEYS, DEFINITION, GATE, Object, PHASE, ROLE, Shape};
use super::model::RuntimeName;

const NAME: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";
/// [`RuntimeName::ACP`], then a name.
const ACP_AGENT: &str = "^acp:[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";
const DURATION: &str = "^([0-9]+(ms|s|m|h))+$";

/// The schema of a definition file (JSON Schema, draft 2020-12), for editors.
///
/// It knows every key, type, word and bound; rules that need more than one
/// place of the file are the parser's alone.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = object(&DEFINITION);
    if let Value::Object(map) = &mut schema {
        map.insert(
            "$schema".to_owned(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        map.insert("title".to_owned(), json!("A jig definition"));
    }
    schema
}

fn object(object: &Object) -> Value {
    let mut properties = Map::new();
    for field in object.fields {
        let mut value = shape(&field.shape);
        if let Value::Object(map) = &mut value {
            map.insert("description".to_owned(), json!(field.doc));
        }
        if field.name == "thinking" {
            value = json!({"description": field.doc, "deprecated": true});
        }
        properties.insert(field.name.to_owned(), value);
    }
    let required: Vec<&str> = object
        .fields
        .iter()
        .filter(|field| field.required)
        .map(|field| field.name)
        .collect();
    let mut schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    });
    if let Value::Object(map) = &mut schema {
        if !required.is_empty() {
            map.insert("required".to_owned(), json!(required));
        }
        if let Some(rules) = rules(object) {
            map.insert("allOf".to_owned(), rules);
        }
    }
    schema
}

/// What depends on another key of the same object.
fn rules(object: &Object) -> Option<Value> {
    if std::ptr::eq(object, &ROLE) {
        return Some(json!([
            {"oneOf": [{"required": ["system_prompt"]}, {"required": ["system_prompt_path"]}]},
            {"oneOf": [{"required": ["user_prompt"]}, {"required": ["user_prompt_path"]}]},
        ]));
    }
    if std::ptr::eq(object, &PHASE) {
        let code_only: Map<String, Value> = CODE_KEYS
            .iter()
            .map(|key| ((*key).to_owned(), json!(false)))
            .collect();
        return Some(json!([
            {
                "if": {"properties": {"kind": {"const": "agent"}}, "required": ["kind"]},
                "then": {"required": ["owner"], "properties": code_only},
            },
            {
                "if": {"properties": {"kind": {"const": "code"}}, "required": ["kind"]},
                "then": {"required": ["command"]},
            },
        ]));
    }
    if std::ptr::eq(object, &GATE) {
        return Some(json!([
            {
                "if": {"properties": {"name": {"const": "tests_pass"}}, "required": ["name"]},
                "then": {"required": ["command"]},
                "else": {"properties": {"command": false}},
            },
            {
                "if": {"properties": {"name": {"const": "tests_intact"}}, "required": ["name"]},
                "else": {"properties": {"allow": false}},
            },
        ]));
    }
    None
}

fn shape(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Name => json!({"type": "string", "pattern": NAME}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Count(least, most) => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Shape::Dollars(true) => json!({"type": "number", "minimum": 0}),
        Shape::Dollars(false) => json!({"type": "number", "exclusiveMinimum": 0}),
        Shape::Duration => json!({"type": "string", "pattern": DURATION}),
        Shape::Choice(words) => json!({"enum": words}),
        Shape::Runtime => json!({"oneOf": [
            {"enum": RuntimeName::KNOWN},
            {"type": "string", "pattern": ACP_AGENT},
        ]}),
        Shape::List(item) => json!({"type": "array", "items": self::shape(item)}),
        Shape::Names(item) => json!({
            "type": "object",
            "propertyNames": {"pattern": NAME},
            "additionalProperties": self::shape(item),
        }),
        Shape::Texts => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Shape::Object(inner) => object(inner),
    }
}
