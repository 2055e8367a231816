//! The names of runtimes.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::name::{InvalidName, Name};

/// The name of an agent adapter, as definitions and `--runtime` spell it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RuntimeName(String);

impl RuntimeName {
    /// Claude Code.
    pub const CLAUDE_CODE: &'static str = "claude-code";
    /// OpenAI Codex.
    pub const CODEX: &'static str = "codex";
    /// The scripted stand-in.
    pub const SCRIPTED: &'static str = "scripted";

    /// Every runtime a definition may name, besides those of [`Self::ACP`].
    pub const KNOWN: [&'static str; 3] = [Self::CLAUDE_CODE, Self::CODEX, Self::SCRIPTED];

    /// What begins the name of an agent that speaks the Agent Client Protocol;
    /// the operator's name of the agent follows.
    pub const ACP: &'static str = "acp:";

    /// The runtime of an agent that speaks the Agent Client Protocol.
    #[must_use]
    pub fn acp(agent: &Name) -> Self {
        Self(format!("{}{agent}", Self::ACP))
    }

    /// The operator's name of the agent, for a runtime made by [`Self::acp`].
    #[must_use]
    pub fn acp_agent(&self) -> Option<&str> {
        self.0.strip_prefix(Self::ACP)
    }

    /// The runtime of that name, if a definition may name it.
    ///
    /// # Errors
    ///
    /// For `acp:` followed by no name, what is wrong with that; `None` for a
    /// word that names no runtime.
    pub fn parse(text: &str) -> Result<Self, Option<InvalidName>> {
        match text.strip_prefix(Self::ACP) {
            Some(agent) => Ok(Self::acp(&agent.parse().map_err(Some)?)),
            None if Self::KNOWN.contains(&text) => Ok(Self::new(text)),
            None => Err(None),
        }
    }

    /// A runtime's name; whether it is known is for the caller to check.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuntimeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RuntimeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
