//! Who an agent says it is.

use jig_protocol::text::head;
use serde_json::{Value, json};

use crate::dialect::text;

/// Of a name or a version more is not kept; nor of methods to authenticate with.
const SHOWN_BYTES: usize = 100;
const AUTH_METHODS: usize = 64;

/// The version of the protocol that is spoken here.
pub(crate) const PROTOCOL: u64 = 1;

/// An agent's answer to `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Greeting {
    /// What it calls itself; empty when it does not say.
    pub name: String,
    /// Its version; empty when it does not say.
    pub version: String,
    /// Whether it can load a session and repeat what was said in it.
    pub loads: bool,
    /// Whether it can continue a session without repeating anything.
    pub resumes: bool,
    /// The ids of the methods it offers to authenticate with.
    pub auth_methods: Vec<String>,
    /// The version of the protocol it wants to speak.
    pub protocol: Option<u64>,
}

impl Greeting {
    /// Reads a result of `initialize`; what is missing is not offered.
    #[must_use]
    pub fn read(result: &Value) -> Self {
        let can = &result["agentCapabilities"];
        let methods = result["authMethods"].as_array().into_iter().flatten();
        Self {
            name: head(text(&result["agentInfo"], "name"), SHOWN_BYTES).to_owned(),
            version: head(text(&result["agentInfo"], "version"), SHOWN_BYTES).to_owned(),
            loads: can["loadSession"] == true,
            resumes: can["sessionCapabilities"]["resume"].is_object(),
            auth_methods: methods
                .take(AUTH_METHODS)
                .map(|method| head(text(method, "id"), SHOWN_BYTES).to_owned())
                .collect(),
            protocol: result["protocolVersion"].as_u64(),
        }
    }

    /// The result that [`Self::read`] reads as this, without all that is not
    /// asked for, which may be large.
    pub(crate) fn said(&self) -> Value {
        let methods = self.auth_methods.iter();
        let methods: Vec<Value> = methods.map(|id| json!({ "id": id })).collect();
        let mut can = json!({ "loadSession": self.loads });
        if self.resumes {
            can["sessionCapabilities"] = json!({ "resume": {} });
        }
        json!({
            "protocolVersion": self.protocol,
            "agentInfo": { "name": self.name, "version": self.version },
            "agentCapabilities": can,
            "authMethods": methods,
        })
    }

    /// Whether a session can be continued by a later process.
    #[must_use]
    pub const fn continues(&self) -> bool {
        self.loads || self.resumes
    }

    /// Whether it speaks the version of the protocol that is spoken here.
    #[must_use]
    pub fn is_understood(&self) -> bool {
        self.protocol == Some(PROTOCOL)
    }

    /// Name and version, for people.
    #[must_use]
    pub fn title(&self) -> String {
        let said = format!("{} {}", self.name, self.version);
        match said.trim() {
            "" => "an agent that does not say its name".to_owned(),
            said => said.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However much an agent says of itself, what is kept reads the same again.
    #[test]
    fn what_is_kept_is_small_and_says_the_same() {
        let methods: Vec<Value> = (0..100_000)
            .map(|n| json!({"id": format!("method {n}"), "description": "long"}))
            .collect();
        let long = "x".repeat(1_000_000);
        let said = json!({"protocolVersion": 1, "authMethods": methods, "more": long,
            "agentInfo": {"name": long, "version": "1"},
            "agentCapabilities": {"sessionCapabilities": {"resume": {}}}});
        let greeting = Greeting::read(&said);
        assert!(greeting.is_understood() && greeting.resumes && !greeting.loads);
        let kept = greeting.said();
        assert!(kept.to_string().len() < 10_000);
        assert_eq!(Greeting::read(&kept), greeting);
        let silent = Greeting::default();
        assert_eq!(Greeting::read(&silent.said()), silent);
    }

    #[test]
    fn what_is_not_said_is_not_offered() {
        for odd in [
            json!(null),
            json!({}),
            json!({"agentInfo": 3, "authMethods": {}}),
        ] {
            let greeting = Greeting::read(&odd);
            assert_eq!(greeting, Greeting::default());
            assert!(!greeting.is_understood() && !greeting.continues());
            assert_eq!(greeting.title(), "an agent that does not say its name");
        }
    }
}
