//! What is answered to an agent that asks whether it may.
//!
//! Nobody sits in front of a run. What an agent may change is judged by the
//! write boundary, so it is allowed to try, once at a time: a permission for
//! ever would change how the agent works from then on.

use serde_json::{Value, json};

use crate::dialect::text;

/// The answer, and what it was in words.
pub(crate) fn decide(params: &Value, ours: bool) -> (Value, &'static str) {
    let option = |kind: &str| {
        params["options"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|option| text(option, "kind") == kind && option["optionId"].is_string())
            .map(|option| &option["optionId"])
    };
    let selected = |id: &Value| json!({"outcome": {"outcome": "selected", "optionId": id}});
    match (option("allow_once"), option("reject_once")) {
        (Some(id), _) if ours => (selected(id), "allowed once"),
        (_, Some(id)) => (selected(id), "rejected"),
        _ => (json!({"outcome": {"outcome": "cancelled"}}), "cancelled"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(kinds: &[&str], ours: bool) -> (Value, &'static str) {
        let options: Vec<Value> = kinds
            .iter()
            .map(|kind| json!({"optionId": format!("id-{kind}"), "kind": kind, "name": "x"}))
            .collect();
        let (answer, words) = decide(&json!({"options": options}), ours);
        (answer["outcome"]["optionId"].clone(), words)
    }

    #[test]
    fn once_and_never_for_ever() {
        let all = ["allow_always", "allow_once", "reject_once", "reject_always"];
        assert_eq!(
            decided(&all, true),
            (json!("id-allow_once"), "allowed once")
        );
        assert_eq!(
            decided(&["allow_always", "reject_once"], true),
            (json!("id-reject_once"), "rejected")
        );
        for forever in [
            &["allow_always"][..],
            &["allow_always", "reject_always"],
            &[],
        ] {
            assert_eq!(decided(forever, true), (Value::Null, "cancelled"));
        }
        // Of a session that is not this send's, nothing is allowed.
        assert_eq!(decided(&all, false).1, "rejected");
        assert_eq!(decided(&["allow_once"], false).1, "cancelled");
    }

    #[test]
    fn odd_options_allow_nothing() {
        for params in [
            json!(null),
            json!({"options": "allow_once"}),
            json!({"options": [{"kind": "allow_once"}]}),
            json!({"options": [{"kind": "allow_once", "optionId": 1}]}),
        ] {
            assert_eq!(decide(&params, true).1, "cancelled");
        }
    }
}
