//! `runtimes.toml`: which agents the operator has, and how each is started.
//!
//! Pure: whoever reads the file sees to it that nobody else could have written
//! it, because it names programs that will be run.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use jig_protocol::definition::Name;
use serde::Deserialize;

/// The agents of a file, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agents {
    /// `[acp.<name>]`: what `runtime: acp:<name>` starts.
    #[serde(default)]
    pub acp: BTreeMap<Name, Agent>,
}

/// One agent, as the operator describes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// The program and its arguments.
    pub command: AgentCommand,
    /// The method to authenticate with before a session is opened; without it
    /// the agent is not asked to authenticate.
    #[serde(default)]
    pub auth_method: Option<Word>,
    /// The agent's mode for every session; without it the agent's own.
    #[serde(default)]
    pub mode: Option<Word>,
    /// The model for every role, in the agent's words, whatever the role says;
    /// `default` leaves the agent's own.
    #[serde(default)]
    pub model: Option<Word>,
    /// Whether a session is continued by a later send where the agent says that
    /// it can. `false` for one that says so and cannot.
    #[serde(default = "yes")]
    pub resume: bool,
    /// Files of the agent's login, as paths below the operator's home.
    #[serde(default)]
    pub seed: Vec<SeedPath>,
}

const fn yes() -> bool {
    true
}

/// Why a file is of no use: what is wrong, and where.
///
/// It repeats nothing of the file but names of keys: a value may be a secret
/// that somebody put there by mistake.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct AgentsError {
    line: usize,
    what: String,
}

impl Agents {
    /// Reads the text of a `runtimes.toml`.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its place. An unknown key is wrong.
    pub fn parse(text: &str) -> Result<Self, AgentsError> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            AgentsError {
                line: before.map_or(1, |before| before.matches('\n').count() + 1),
                what: without_values(error.message()),
            }
        })
    }
}

/// What is wrong, without the value that is.
fn without_values(message: &str) -> String {
    let parts: Vec<&str> = message.split('"').collect();
    match parts.as_slice() {
        [first, .., last] => format!("{first}\"…\"{last}"),
        _ => message.to_owned(),
    }
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct AgentCommand {
    program: String,
    args: Vec<String>,
}

impl AgentCommand {
    /// An absolute path, or a name to be looked up on the operator's PATH.
    #[must_use]
    pub fn program(&self) -> &Path {
        Path::new(&self.program)
    }

    /// The arguments.
    #[must_use]
    pub fn args(&self) -> &[String] {
        &self.args
    }
}

impl TryFrom<Vec<String>> for AgentCommand {
    type Error = &'static str;

    fn try_from(words: Vec<String>) -> Result<Self, &'static str> {
        if words.iter().any(|word| word.contains('\0')) {
            return Err("a word of the command holds a NUL");
        }
        let mut words = words.into_iter();
        let program = words.next().filter(|program| !program.trim().is_empty());
        let program = program.ok_or("the command is empty; its first word is the program")?;
        if program.contains('/') && !program.starts_with('/') {
            return Err("the program is an absolute path, or a name to be found on PATH");
        }
        Ok(Self {
            program,
            args: words.collect(),
        })
    }
}

/// A text that says something.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Word(String);

impl Word {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Word {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        if text.trim().is_empty() {
            return Err("an empty text; leave the key out instead");
        }
        Ok(Self(text))
    }
}

/// A path of a file below a home directory.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "PathBuf")]
pub struct SeedPath(PathBuf);

impl SeedPath {
    /// The path, relative to the home.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<PathBuf> for SeedPath {
    type Error = &'static str;

    fn try_from(path: PathBuf) -> Result<Self, &'static str> {
        let plain = |part| matches!(part, Component::Normal(_));
        let text = path.as_os_str().as_encoded_bytes();
        if text.is_empty() || text.ends_with(b"/") || !path.components().all(plain) {
            return Err("a seed is a file below the home directory, without `..`");
        }
        Ok(Self(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_described() {
        let agents = Agents::parse(
            r#"
            [acp.codex]
            command = ["codex-acp", "-c", "x=1"]
            auth_method = "api-key"
            mode = "auto"
            model = "default"
            resume = false
            seed = [".codex/auth.json"]

            [acp.plain]
            command = ["/opt/agent"]
            "#,
        )
        .unwrap();
        let codex = &agents.acp["codex"];
        assert_eq!(codex.command.program(), Path::new("codex-acp"));
        assert_eq!(codex.command.args(), ["-c", "x=1"]);
        assert_eq!(
            codex.auth_method.as_ref().map(Word::as_str),
            Some("api-key")
        );
        assert_eq!(codex.seed[0].as_path(), Path::new(".codex/auth.json"));
        assert!(!codex.resume);
        let plain = &agents.acp["plain"];
        assert!(plain.resume && plain.seed.is_empty() && plain.mode.is_none());
        assert_eq!(Agents::parse("").unwrap(), Agents::default());
    }

    #[test]
    fn whatever_is_wrong_is_refused_with_its_place() {
        let agent = |rest: &str| format!("[acp.a]\ncommand = [\"a\"]\n{rest}");
        for (text, line, words) in [
            (agent("comand = 1"), 3, "unknown field `comand`"),
            ("[mcp.a]\n".to_owned(), 1, "unknown field `mcp`"),
            ("[acp.a]\nmode = \"x\"\n".to_owned(), 1, "command"),
            (
                "[acp.a]\ncommand = \"a b\"\n".to_owned(),
                2,
                "invalid type: string",
            ),
            (
                "[acp.a]\ncommand = []\n".to_owned(),
                2,
                "the command is empty",
            ),
            (
                "[acp.a]\ncommand = [\" \"]\n".to_owned(),
                2,
                "the command is empty",
            ),
            (
                "[acp.a]\ncommand = [\"./a\"]\n".to_owned(),
                2,
                "absolute path",
            ),
            (
                "[acp.a]\ncommand = [\"bin/a\"]\n".to_owned(),
                2,
                "absolute path",
            ),
            (
                "[acp.a]\ncommand = [\"a\", \"\\u0000\"]\n".to_owned(),
                2,
                "NUL",
            ),
            (
                "[acp.\"a b\"]\ncommand = [\"a\"]\n".to_owned(),
                1,
                "is not a name",
            ),
            (agent("mode = \"\""), 3, "empty text"),
            (agent("seed = [\"/etc/passwd\"]"), 3, "below the home"),
            (agent("seed = [\"../x\"]"), 3, "below the home"),
            (agent("seed = [\"a/../../x\"]"), 3, "below the home"),
            (agent("seed = [\"a/\"]"), 3, "below the home"),
            (agent("seed = [\"\"]"), 3, "below the home"),
            (agent("[acp.a]\ncommand = [\"b\"]"), 3, "duplicate"),
            ("[acp".to_owned(), 1, ""),
        ] {
            let error = Agents::parse(&text).expect_err(&text).to_string();
            assert!(error.contains(&format!("line {line}")), "{text:?}: {error}");
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }

    #[test]
    fn values_are_not_repeated() {
        for text in [
            "[acp.a]\ncommand = [\"a\"]\nenv = {K = \"SECRET\"}\n",
            "[acp.a]\ncommand = [\"a\", \"--key=SECRET\"\n",
            "[acp.a]\ncommand = \"SECRET\"\n",
            "[acp.a]\ncommand = [\"a\"]\nresume = \"SEC\\\"RET\"\n",
            "[acp.a]\ncommand = [\"./SECRET\"]\n",
            "SECRET",
        ] {
            let error = Agents::parse(text).unwrap_err();
            let told = format!("{error} {:?}", error.to_string());
            assert!(!told.contains("SEC"), "{told}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC{0,60}", head in "(\\[acp\\.a\\]\n)?(command = )?") {
            let _ = Agents::parse(&format!("{head}{text}"));
        }
    }
}
