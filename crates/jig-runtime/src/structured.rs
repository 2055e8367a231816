//! What an agent is asked to answer with where its CLI takes a JSON Schema: the
//! envelope, in one place for every adapter.
//!
//! There are two forms. The open one leaves room for fields of a definition's
//! own. The strict one is for vendors that demand that every object names all
//! of its properties, requires them all and allows no others: a definition's
//! own fields are then listed as names and values, and [`unfold`] makes them
//! fields again.

use jig_protocol::envelope::Envelope;
use serde_json::{Map, Value, json};

/// Where the strict form lists a definition's own fields.
const FURTHER_FIELDS: &str = "further_fields";

/// The open form.
#[must_use]
pub fn envelope_schema() -> Value {
    json!({
        "type": "object",
        "properties": base_properties(),
        "required": ["status", "summary"],
        "additionalProperties": true,
    })
}

/// The strict form.
#[must_use]
pub fn strict_envelope_schema() -> Value {
    let mut properties = base_properties();
    properties[FURTHER_FIELDS] = json!({
        "type": "array",
        "description": "every other field that the answer is asked to have, as its name and its value; empty if there is none",
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "value": {"anyOf": [
                    {"type": "string"},
                    {"type": "number"},
                    {"type": "boolean"},
                    {"type": "array", "items": {"type": "string"}},
                ]},
            },
            "required": ["name", "value"],
            "additionalProperties": false,
        },
    });
    let mut required: Vec<&str> = Envelope::BASE_FIELDS.into();
    required.push(FURTHER_FIELDS);
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn base_properties() -> Value {
    json!({
        "status": {"type": "string", "enum": ["success", "fail"]},
        "summary": {"type": "string"},
        "artifacts": {"type": "array", "items": {"type": "string"}},
        "notes_for_next_agent": {"type": "string"},
    })
}

/// An answer in the strict form as the envelope that it means; `None` when it is
/// in another form and has to be read as it is.
///
/// A listed field never replaces one that the envelope has by itself.
#[must_use]
pub fn unfold(answer: &str) -> Option<String> {
    let mut fields: Map<String, Value> = serde_json::from_str(answer.trim()).ok()?;
    let Value::Array(further) = fields.remove(FURTHER_FIELDS)? else {
        return None;
    };
    for field in further {
        let Value::Object(mut field) = field else {
            return None;
        };
        match (field.remove("name"), field.remove("value")) {
            (Some(Value::String(name)), Some(value)) => {
                fields.entry(name).or_insert(value);
            }
            _ => return None,
        }
    }
    Some(Value::Object(fields).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the vendor's strict mode demands of every object.
    fn assert_strict(schema: &Value) {
        if schema["type"] == "object" {
            assert_eq!(schema["additionalProperties"], false, "{schema}");
            let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
            let mut required: Vec<_> = schema["required"].as_array().unwrap().iter().collect();
            required.sort_by_key(|name| name.as_str());
            assert_eq!(names, required, "{schema}");
        }
        match schema {
            Value::Object(parts) => parts.values().for_each(assert_strict),
            Value::Array(parts) => parts.iter().for_each(assert_strict),
            _ => {}
        }
    }

    #[test]
    fn the_strict_form_is_strict_at_every_depth() {
        assert_strict(&strict_envelope_schema());
    }

    #[test]
    fn both_forms_have_the_envelopes_fields() {
        for schema in [envelope_schema(), strict_envelope_schema()] {
            for field in Envelope::BASE_FIELDS {
                assert!(schema["properties"][field].is_object(), "{field}");
            }
        }
        assert_eq!(envelope_schema()["additionalProperties"], true);
    }

    #[test]
    fn listed_fields_become_fields() {
        let answer = r#"{"status":"success","summary":"s","artifacts":[],"notes_for_next_agent":"",
            "further_fields":[{"name":"verdict","value":"pass"},{"name":"risk","value":2},
            {"name":"status","value":"fail"}]}"#;
        let envelope = Envelope::extract(&unfold(answer).unwrap()).unwrap();
        assert_eq!(envelope.status.as_str(), "success");
        assert_eq!(envelope.field("verdict"), Some(&json!("pass")));
        assert_eq!(envelope.field("risk"), Some(&json!(2)));
        assert_eq!(envelope.field(FURTHER_FIELDS), None);
    }

    #[test]
    fn an_answer_in_another_form_is_left_alone() {
        for answer in [
            "done",
            r#"{"status":"success"}"#,
            r#"{"status":"success","further_fields":{}}"#,
            r#"{"further_fields":[1]}"#,
            r#"{"further_fields":[{"name":"a"}]}"#,
            r#"text {"further_fields":[]}"#,
        ] {
            assert_eq!(unfold(answer), None, "{answer}");
        }
    }
}
