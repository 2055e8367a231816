//! The mode and the model of a session: what is offered, and how it is chosen.

use jig_protocol::outcome::FailureClass;
use jig_runtime::failure::Failure;
use serde_json::{Value, json};

use crate::dialect::text;

/// Leaves the agent's own choice.
pub(crate) const DEFAULT: &str = "default";

/// Values named in an error.
const NAMED: usize = 12;

/// What can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    Mode,
    Model,
}

impl Setting {
    /// As agents and people call it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::Model => "model",
        }
    }

    /// Where the answer to an opened session lists the values, in the protocol's
    /// older form: the list, an entry's id, the current one, and the method and
    /// parameter that choose.
    const fn listed(self) -> [&'static str; 6] {
        match self {
            Self::Mode => [
                "modes",
                "availableModes",
                "id",
                "currentModeId",
                "session/set_mode",
                "modeId",
            ],
            Self::Model => [
                "models",
                "availableModels",
                "modelId",
                "currentModelId",
                "session/set_model",
                "modelId",
            ],
        }
    }
}

/// A request that chooses a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) setting: Setting,
    pub(crate) method: &'static str,
    pub(crate) params: Value,
}

/// How `wanted` is chosen in a session; `None` when it is in force already.
///
/// # Errors
///
/// When the agent does not offer it.
pub(crate) fn choose(
    setting: Setting,
    wanted: &str,
    session_id: &str,
    opened: &Value,
) -> Result<Option<Choice>, Failure> {
    let mut offered: Vec<String> = Vec::new();
    for option in options(setting, opened) {
        if option["currentValue"] == wanted {
            return Ok(None);
        }
        let values = values(&option["options"]);
        if values.contains(&wanted) {
            return Ok(Some(Choice {
                setting,
                method: "session/set_config_option",
                params: json!({
                    "sessionId": session_id,
                    "configId": option["id"],
                    "value": wanted,
                }),
            }));
        }
        offered.extend(values.into_iter().take(NAMED + 1).map(str::to_owned));
    }
    let [holder, list, id, current, method, parameter] = setting.listed();
    let holder = &opened[holder];
    if holder[current] == wanted {
        return Ok(None);
    }
    let listed = holder[list].as_array().into_iter().flatten();
    let listed: Vec<&str> = listed.map(|entry| text(entry, id)).collect();
    if listed.contains(&wanted) {
        return Ok(Some(Choice {
            setting,
            method,
            params: json!({"sessionId": session_id, parameter: wanted}),
        }));
    }
    // More are not shown, and an agent may list any number.
    for value in listed.into_iter().take(NAMED + 1) {
        if !offered.iter().any(|known| known == value) {
            offered.push(value.to_owned());
        }
    }
    Err(not_offered(setting, wanted, &offered))
}

/// The selectors of an opened session that are about this setting.
fn options(setting: Setting, opened: &Value) -> impl Iterator<Item = &Value> {
    let all = opened["configOptions"].as_array().into_iter().flatten();
    all.filter(move |option| {
        let category = text(option, "category");
        let about = if category.is_empty() {
            text(option, "id")
        } else {
            category
        };
        about == setting.as_str()
    })
}

/// The values of a selector, which may be in groups.
fn values(options: &Value) -> Vec<&str> {
    let mut values = Vec::new();
    for entry in options.as_array().into_iter().flatten() {
        match entry["options"].as_array() {
            Some(group) => values.extend(group.iter().map(|entry| text(entry, "value"))),
            None => values.push(text(entry, "value")),
        }
    }
    values.retain(|value| !value.is_empty());
    values
}

fn not_offered(setting: Setting, wanted: &str, offered: &[String]) -> Failure {
    let what = setting.as_str();
    let message = match offered {
        [] => format!("the agent offers no choice of its {what}, so it cannot be {wanted:?}"),
        _ => {
            let named = offered.iter().take(NAMED).map(String::as_str);
            let named = named.collect::<Vec<_>>().join(", ");
            let rest = if offered.len() > NAMED { ", …" } else { "" };
            format!("the agent has no {what} {wanted:?}; it has {named}{rest}")
        }
    };
    Failure::new(FailureClass::UnsupportedOption, message).with_hint(match setting {
        Setting::Model => {
            "set the role's `model`, or the agent's `model` in runtimes.toml, to one of the \
             agent's, or to `default`"
        }
        Setting::Mode => "set the agent's `mode` in runtimes.toml, or leave it out",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> Value {
        json!({
            "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "code"}]},
            "models": {"currentModelId": "a[low]", "availableModels": [{"modelId": "a[low]"}, {"modelId": "b[low]"}]},
            "configOptions": [
                {"id": "m", "category": "model", "currentValue": "a", "options": [
                    {"value": "a"},
                    {"group": "more", "name": "More", "options": [{"value": "b"}, {"value": "c"}]},
                ]},
                {"id": "thinking", "category": "thought_level", "currentValue": "x", "options": [{"value": "d"}]},
            ],
        })
    }

    fn chosen(setting: Setting, wanted: &str) -> Option<(&'static str, Value)> {
        let choice = choose(setting, wanted, "s", &opened()).unwrap();
        choice.map(|choice| (choice.method, choice.params))
    }

    #[test]
    fn a_value_is_chosen_the_way_it_is_offered() {
        assert_eq!(
            chosen(Setting::Model, "c"),
            Some((
                "session/set_config_option",
                json!({"sessionId": "s", "configId": "m", "value": "c"})
            ))
        );
        assert_eq!(
            chosen(Setting::Model, "b[low]"),
            Some((
                "session/set_model",
                json!({"sessionId": "s", "modelId": "b[low]"})
            ))
        );
        assert_eq!(
            chosen(Setting::Mode, "code"),
            Some((
                "session/set_mode",
                json!({"sessionId": "s", "modeId": "code"})
            ))
        );
        for current in ["a", "a[low]"] {
            assert_eq!(chosen(Setting::Model, current), None);
        }
        assert_eq!(chosen(Setting::Mode, "ask"), None);
    }

    #[test]
    fn what_is_not_offered_is_refused_with_what_is() {
        let failure = choose(Setting::Model, "d", "s", &opened()).unwrap_err();
        assert_eq!(failure.class, FailureClass::UnsupportedOption);
        assert_eq!(
            failure.message,
            "the agent has no model \"d\"; it has a, b, c, a[low], b[low]"
        );
        let failure = choose(Setting::Mode, "yolo", "s", &json!(null)).unwrap_err();
        assert_eq!(
            failure.message,
            "the agent offers no choice of its mode, so it cannot be \"yolo\""
        );
        assert!(failure.hint.unwrap().contains("runtimes.toml"));
    }
}
