//! The script: what each role does, send by send.

use std::collections::BTreeMap;
use std::time::Duration;

use jig_protocol::definition::Definition;
use jig_protocol::outcome::FailureClass;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A whole script, checked. See `docs/scripted-runtime.md`.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Whether sessions can be continued by a later send.
    pub can_resume: bool,
    /// Each role's steps, one per send.
    pub roles: BTreeMap<String, Vec<Step>>,
}

/// What a role does when it is sent one prompt. The order of the fields is the
/// order of the acts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Texts that must occur in the prompt.
    pub expect: Texts,
    /// Texts that must not occur in the prompt.
    pub expect_absent: Texts,
    /// Barriers that this step reaches.
    pub reach: Texts,
    /// Barriers that another role must have reached before this step goes on.
    pub wait_for: Texts,
    /// Files to write: path and content.
    pub write: BTreeMap<String, String>,
    /// Files and directories to remove.
    pub delete: Vec<String>,
    /// Symbolic links to make: path and target.
    pub symlink: BTreeMap<String, String>,
    /// Modes to set: path and octal digits.
    pub chmod: BTreeMap<String, Mode>,
    /// A shell command to run.
    pub run: Option<String>,
    /// Whether a failure of `run` is a fault of the script.
    pub run_must_succeed: bool,
    /// A shell command to leave behind in the background.
    pub spawn: Option<String>,
    /// Whether what `spawn` starts leaves the process group.
    pub setsid: bool,
    /// Tool calls to report.
    pub tools: Vec<Tool>,
    /// Free text before the answer; a list is one message sent in parts.
    pub text: Option<Text>,
    /// How long to wait before the answer.
    pub delay: Option<Pause>,
    /// The answer.
    pub emit: Option<Emit>,
    /// What the send is said to have used.
    pub usage: Option<StepUsage>,
    /// How the process ends.
    pub end: End,
    /// With `end: error`: which kind of failure.
    pub error_class: Option<FailureClass>,
    /// With `end: error`: how long the vendor is said to ask to wait.
    pub retry_after: Option<Pause>,
}

/// One text or several.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "OneOrMany", into = "Vec<String>")]
pub struct Texts(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Texts {
    fn from(texts: OneOrMany) -> Self {
        match texts {
            OneOrMany::One(text) => Self(vec![text]),
            OneOrMany::Many(texts) => Self(texts),
        }
    }
}

impl From<Texts> for Vec<String> {
    fn from(texts: Texts) -> Self {
        texts.0
    }
}

/// Free text of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub enum Text {
    /// A whole message.
    Whole(String),
    /// A message that arrives in parts.
    Parts(Vec<String>),
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected an object or a text (quote `on`, `yes`, numbers)"
)]
pub enum Emit {
    /// Sent as it is written.
    Verbatim(String),
    /// Sent as one line of JSON.
    Object(serde_json::Map<String, Value>),
}

impl Emit {
    /// The answer as the agent says it.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Verbatim(text) => text.clone(),
            Self::Object(object) => Value::Object(object.clone()).to_string(),
        }
    }
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The tool's name.
    pub name: String,
    /// What it was called with.
    #[serde(default)]
    pub input: Value,
}

/// What a send is said to have used, by itself.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StepUsage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens in the context after the send.
    pub context_tokens: u64,
}

/// How the agent's process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// With its answer and exit code 0.
    #[default]
    Ok,
    /// By a SIGKILL of its own, without a result.
    Crash,
    /// With a result that reports an error.
    Error,
    /// With this exit code; after the answer, when there is one.
    Exit(u8),
    /// Not at all; after the answer, when there is one.
    Hang,
}

/// A time such as `500ms`, `2s` or `1m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause(pub Duration);

impl Serialize for Pause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}ms", self.0.as_millis()))
    }
}

impl<'de> Deserialize<'de> for Pause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor = match unit {
            "ms" => Some(1),
            "s" => Some(1_000),
            "m" => Some(60_000),
            _ => None,
        };
        number
            .parse::<u64>()
            .ok()
            .zip(factor)
            .and_then(|(number, factor)| number.checked_mul(factor))
            .map(|millis| Self(Duration::from_millis(millis)))
            .ok_or_else(|| {
                serde::de::Error::custom(format!(
                    "{text:?} is no time; write a whole number and `ms`, `s` or `m`"
                ))
            })
    }
}

/// A file mode, written as octal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode(pub u32);

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:o}", self.0))
    }
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u32::from_str_radix(&text, 8)
            .ok()
            .filter(|mode| *mode <= 0o7777)
            .map(Self)
            .ok_or_else(|| {
                serde::de::Error::custom(format!(
                    "{text:?} is no file mode; write up to four octal digits, such as \"755\""
                ))
            })
    }
}

/// Why a text is no script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The text is not of the script's form. The message names line and column.
    #[error("{0}")]
    Form(String),
    /// A step asks for something that makes no sense.
    #[error("role `{role}`, step {step}: {problem}")]
    Step {
        /// The role.
        role: String,
        /// The step, counted from 1.
        step: usize,
        /// What is wrong, in words.
        problem: String,
    },
    /// The script plays roles that the definition does not have.
    #[error(
        "the script plays {}, but the definition's roles are {}",
        list(unknown),
        list(known)
    )]
    UnknownRoles {
        /// The script's roles that the definition lacks.
        unknown: Vec<String>,
        /// The definition's roles.
        known: Vec<String>,
    },
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// The script as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default = "yes")]
    can_resume: bool,
    roles: BTreeMap<String, Vec<Step>>,
}

const fn yes() -> bool {
    true
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    ///
    /// When the text is no YAML, has an unknown or repeated key or a value of
    /// the wrong kind (all with line and column), or when a step makes no sense.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let written: Written =
            serde_yaml::from_str(text).map_err(|error| ScriptError::Form(error.to_string()))?;
        for (role, steps) in &written.roles {
            for (at, step) in steps.iter().enumerate() {
                step.check().map_err(|problem| ScriptError::Step {
                    role: role.clone(),
                    step: at + 1,
                    problem,
                })?;
            }
        }
        Ok(Self {
            can_resume: written.can_resume,
            roles: written.roles,
        })
    }

    /// Checks that the definition has every role that the script plays.
    ///
    /// # Errors
    ///
    /// [`ScriptError::UnknownRoles`], naming them all.
    pub fn check_roles(&self, definition: &Definition) -> Result<(), ScriptError> {
        let known: Vec<String> = definition
            .roster
            .keys()
            .map(|role| role.as_str().to_owned())
            .collect();
        let unknown: Vec<String> = self
            .roles
            .keys()
            .filter(|role| !known.contains(role))
            .cloned()
            .collect();
        if unknown.is_empty() {
            Ok(())
        } else {
            Err(ScriptError::UnknownRoles { unknown, known })
        }
    }
}

impl Step {
    /// What the types cannot say.
    fn check(&self) -> Result<(), String> {
        let problem = match self.end {
            End::Ok if self.emit.is_none() => "a step that ends `ok` needs `emit`",
            End::Crash if self.emit.is_some() => {
                "a step that ends with `crash` has no answer to `emit`"
            }
            End::Ok | End::Crash | End::Exit(_) | End::Hang
                if self.error_class.is_some() || self.retry_after.is_some() =>
            {
                "`error_class` and `retry_after` need `end: error`"
            }
            _ if self.run_must_succeed && self.run.is_none() => "`run_must_succeed` needs `run`",
            _ if self.setsid && self.spawn.is_none() => "`setsid` needs `spawn`",
            _ => return self.check_usage(),
        };
        Err(problem.to_owned())
    }

    fn check_usage(&self) -> Result<(), String> {
        match self.usage.and_then(|usage| usage.cost_usd) {
            Some(cost) if !cost.is_finite() || cost < 0.0 => Err(format!(
                "`cost_usd` is {cost}; it cannot be less than nothing"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
can_resume: false
roles:
  builder:
    - expect: ["Task:"]
      expect_absent: no such words
      reach: a
      wait_for: [b, c]
      write: {src/a.txt: "one\n", "~/x": "", /tmp/y: z}
      delete: [old.txt]
      symlink: {link: target}
      chmod: {run.sh: "755"}
      run: "git add -A"
      run_must_succeed: true
      spawn: "sleep 600"
      setsid: true
      tools: [{name: Edit, input: {file: src/a.txt}}, {name: Bash}]
      text: [free, text]
      delay: 500ms
      emit: {status: success, artifacts: [src/a.txt]}
      usage: {input_tokens: 10, output_tokens: 5, cost_usd: 0.01}
    - {emit: "verbatim", end: {exit: 3}}
    - {end: crash}
    - {end: hang}
    - {end: error, error_class: rate_limited, retry_after: 2s}
  reviewer: []
"#;

    #[test]
    fn the_whole_format() {
        let script = Script::parse(WHOLE).unwrap();
        assert!(!script.can_resume);
        let steps = &script.roles["builder"];
        let first = &steps[0];
        assert_eq!(first.expect.0, ["Task:"]);
        assert_eq!(first.expect_absent.0, ["no such words"]);
        assert_eq!((first.reach.0.len(), first.wait_for.0.len()), (1, 2));
        assert_eq!(first.write.len(), 3);
        assert_eq!(first.chmod["run.sh"], Mode(0o755));
        assert_eq!(first.tools[1].input, Value::Null);
        assert_eq!(
            first.text,
            Some(Text::Parts(vec!["free".into(), "text".into()]))
        );
        assert_eq!(first.delay, Some(Pause(Duration::from_millis(500))));
        assert_eq!(
            first.emit.as_ref().unwrap().text(),
            r#"{"artifacts":["src/a.txt"],"status":"success"}"#
        );
        assert_eq!(first.end, End::Ok);
        assert_eq!(steps[1].end, End::Exit(3));
        assert_eq!(steps[1].emit, Some(Emit::Verbatim("verbatim".into())));
        assert_eq!(
            [steps[2].end, steps[3].end, steps[4].end],
            [End::Crash, End::Hang, End::Error]
        );
        assert_eq!(steps[4].error_class, Some(FailureClass::RateLimited));
        assert!(script.roles["reviewer"].is_empty());
    }

    #[test]
    fn a_step_survives_the_way_to_the_child() {
        for step in &Script::parse(WHOLE).unwrap().roles["builder"] {
            let line = serde_json::to_string(step).unwrap();
            assert_eq!(&serde_json::from_str::<Step>(&line).unwrap(), step);
        }
    }

    #[test]
    fn resuming_is_the_default() {
        assert!(Script::parse("roles: {}").unwrap().can_resume);
    }

    fn refused(text: &str) -> String {
        Script::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn unknown_and_wrong_keys_are_named_with_their_place() {
        for (text, named) in [
            ("roles:\n  a:\n    - emti: x\n", "emti"),
            ("roles: {}\nrolles: {}\n", "rolles"),
            ("roles:\n  a:\n    - {emit: x, tools: [{nam: y}]}\n", "nam"),
            (
                "roles:\n  a:\n    - {emit: x, usage: {tokens: 1}}\n",
                "tokens",
            ),
            ("roles:\n  a:\n    - {emit: x, delay: soon}\n", "soon"),
            (
                "roles:\n  a:\n    - {emit: x, chmod: {f: \"999\"}}\n",
                "999",
            ),
            ("roles:\n  a:\n    - {end: later}\n", "later"),
            ("roles:\n  a:\n    - {emit: on}\n", "an object or a text"),
            (
                "roles:\n  a:\n    - {emit: x, expect: {}}\n",
                "a list of texts",
            ),
            ("roles:\n  a: []\n  a: []\n", "a"),
        ] {
            let message = refused(text);
            assert!(
                message.contains(named) && message.contains("line"),
                "{text}: {message}"
            );
        }
    }

    #[test]
    fn steps_that_make_no_sense_are_named() {
        for (step, named) in [
            ("{}", "`emit`"),
            ("{end: crash, emit: x}", "crash"),
            ("{emit: x, error_class: auth}", "error_class"),
            ("{emit: x, run_must_succeed: true}", "run_must_succeed"),
            ("{emit: x, setsid: true}", "setsid"),
            ("{emit: x, usage: {cost_usd: -1}}", "cost_usd"),
        ] {
            let message = refused(&format!(
                "roles:\n  who:\n    - {{emit: first}}\n    - {step}\n"
            ));
            assert!(
                message.contains("role `who`, step 2") && message.contains(named),
                "{step}: {message}"
            );
        }
    }
}
