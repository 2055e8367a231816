//! The field view: what envelopes and reports have said so far.
//!
//! One flat map for the attempt; guards and the publish hold read it. Whoever
//! writes last wins, except that a field reported by a code phase belongs to
//! that phase: no agent can talk it down.

use std::collections::{BTreeMap, BTreeSet};

use jig_protocol::event::ReportedFieldProtected;
use jig_protocol::predicate::Fields;
use serde_json::Value;

/// The fields known so far, and who owns which.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FieldView {
    values: Fields,
    /// Reported field → the code phase that reported it last.
    owners: BTreeMap<String, String>,
}

impl FieldView {
    /// The fields, for guards and predicates.
    pub(crate) fn values(&self) -> &Fields {
        &self.values
    }

    /// Takes in an accepted agent envelope. Owned fields keep their value; each
    /// claim that differs from it is given back.
    pub(crate) fn merge_agent(
        &mut self,
        role: &str,
        envelope: &Fields,
    ) -> Vec<ReportedFieldProtected> {
        let mut refused = Vec::new();
        for (field, claimed) in envelope {
            let Some(owner) = self.owners.get(field) else {
                self.values.insert(field.clone(), claimed.clone());
                continue;
            };
            let kept = self.values.get(field).cloned().unwrap_or(Value::Null);
            if !same(&kept, claimed) {
                refused.push(ReportedFieldProtected {
                    role: role.to_owned(),
                    field: field.clone(),
                    reported_by: owner.clone(),
                    kept,
                    ignored: claimed.clone(),
                });
            }
        }
        refused
    }

    /// Takes in what a code phase's adapter says, also of a failed run.
    ///
    /// `reported` names the fields of a successful report; they belong to
    /// `phase` from now on. What an earlier run of the phase had reported and
    /// this one did not is forgotten but stays owned: a stale value must not
    /// decide, and an agent must not fill the gap.
    pub(crate) fn merge_code(
        &mut self,
        phase: &str,
        envelope: &Fields,
        reported: &BTreeSet<String>,
    ) {
        for (field, owner) in &self.owners {
            if owner == phase {
                self.values.remove(field);
            }
        }
        for (field, value) in envelope {
            self.values.insert(field.clone(), value.clone());
        }
        for field in reported {
            self.owners.insert(field.clone(), phase.to_owned());
        }
    }
}

/// Deep equality; 1 and 1.0 are the same number, as in predicates.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .all(|(key, x)| y.get(key).is_some_and(|y| same(x, y)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(value: Value) -> Fields {
        match value {
            Value::Object(map) => map,
            other => panic!("not an object: {other}"),
        }
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_last_agent_wins_where_nobody_reported() {
        let mut view = FieldView::default();
        assert_eq!(view.merge_agent("a", &fields(json!({"x": 1}))), vec![]);
        assert_eq!(view.merge_agent("b", &fields(json!({"x": 2}))), vec![]);
        assert_eq!(view.values().get("x"), Some(&json!(2)));
    }

    #[test]
    fn an_agent_cannot_change_what_a_code_phase_reported() {
        let mut view = FieldView::default();
        view.merge_code("risk", &fields(json!({"risk": "high"})), &names(&["risk"]));
        let refused = view.merge_agent("dev", &fields(json!({"risk": "low", "y": 1})));
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].kept, json!("high"));
        assert_eq!(refused[0].ignored, json!("low"));
        assert_eq!(refused[0].reported_by, "risk");
        assert_eq!(view.values().get("risk"), Some(&json!("high")));
        assert_eq!(view.values().get("y"), Some(&json!(1)));
    }

    #[test]
    fn repeating_the_reported_value_is_silent_at_any_depth() {
        let mut view = FieldView::default();
        let report = json!({"r": {"list": [1, {"a": 2.0}]}});
        view.merge_code("p", &fields(report), &names(&["r"]));
        let same = fields(json!({"r": {"list": [1.0, {"a": 2}]}}));
        assert_eq!(view.merge_agent("dev", &same), vec![]);
        let other = fields(json!({"r": {"list": [1, {"a": 3}]}}));
        assert_eq!(view.merge_agent("dev", &other).len(), 1);
    }

    #[test]
    fn another_reporter_takes_a_field_over() {
        let mut view = FieldView::default();
        view.merge_code("one", &fields(json!({"r": 1})), &names(&["r"]));
        view.merge_code("two", &fields(json!({"r": 2})), &names(&["r"]));
        // A failed rerun of the former owner takes nothing away any more.
        view.merge_code("one", &fields(json!({"passed": false})), &names(&[]));
        assert_eq!(view.values().get("r"), Some(&json!(2)));
        let refused = view.merge_agent("dev", &fields(json!({"r": 3})));
        assert_eq!(refused[0].reported_by, "two");
    }

    #[test]
    fn a_failed_report_clears_its_fields_and_no_agent_may_fill_the_gap() {
        let mut view = FieldView::default();
        view.merge_code("risk", &fields(json!({"risk": "low"})), &names(&["risk"]));
        view.merge_code("risk", &fields(json!({"passed": false})), &names(&[]));
        assert_eq!(view.values().get("risk"), None);
        let refused = view.merge_agent("dev", &fields(json!({"risk": "low"})));
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].kept, Value::Null);
        assert_eq!(view.values().get("risk"), None);
    }
}
