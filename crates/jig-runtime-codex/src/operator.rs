//! What of the operator's own configuration a send is started with: the model
//! provider and where it is reached, and no secret.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use jig_protocol::text;
use jig_runtime::{OperatorHome, login};
use toml::{Table, Value};

/// The vendor's own provider, which the CLI takes where none is named.
const VENDOR: &str = "openai";

/// Whether a value is of the kind that its setting has.
type Fits = fn(&Value) -> bool;

/// What a provider's table may say, and as what: how to reach it, and the names of
/// variables that hold what it wants to be given. Headers and tokens written out
/// are not among them.
const KEPT: [(&str, Fits); 9] = [
    ("env_http_headers", |value| {
        value
            .as_table()
            .is_some_and(|names| names.values().all(Value::is_str))
    }),
    ("env_key", Value::is_str),
    ("name", Value::is_str),
    ("request_max_retries", Value::is_integer),
    ("requires_openai_auth", Value::is_bool),
    ("stream_idle_timeout_ms", Value::is_integer),
    ("stream_max_retries", Value::is_integer),
    ("supports_websockets", Value::is_bool),
    ("wire_api", Value::is_str),
];

/// Settings of the operator's that sends keep.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Operator {
    settings: Table,
    /// What was left out, for a person.
    left_out: Vec<String>,
}

/// Where the operator's Codex keeps its files.
pub(crate) fn directory(operator: &OperatorHome) -> PathBuf {
    let own = operator.env.get(OsStr::new("CODEX_HOME"));
    match own.filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => operator.home.join(".codex"),
    }
}

impl Operator {
    /// Reads the operator's `config.toml`; a missing one says nothing, and one
    /// that cannot be read is as good as missing, with a word of it.
    #[must_use]
    pub fn read(operator: &OperatorHome) -> Self {
        let path = directory(operator).join("config.toml");
        match login::read(&path) {
            Ok(said) => Self::parse(&String::from_utf8_lossy(&said))
                .unwrap_or_else(|problem| Self::not_kept(&path, problem)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::default(),
            Err(error) => Self::not_kept(&path, error.to_string()),
        }
    }

    fn not_kept(path: &Path, problem: String) -> Self {
        Self {
            settings: Table::new(),
            left_out: vec![format!(
                "{} is not used: {problem}",
                text::quoted(&path.display().to_string())
            )],
        }
    }

    /// Takes what is kept from the text of a `config.toml`.
    ///
    /// # Errors
    ///
    /// Where the text is no TOML; nothing of it is repeated, since it may hold
    /// secrets.
    pub fn parse(said: &str) -> Result<Self, String> {
        let table: Table = said.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| {
                let before = said.get(..span.start).unwrap_or(said);
                before.matches('\n').count() + 1
            });
            format!("line {line} is no TOML")
        })?;
        let mut kept = Self::default();
        let Some(Value::String(chosen)) = table.get("model_provider") else {
            return Ok(kept);
        };
        kept.keep("model_provider", chosen.as_str().into());
        let provider = table.get("model_providers").and_then(|all| all.get(chosen));
        if let Some(Value::Table(provider)) = provider {
            let provider = Value::Table(kept.provider(chosen, provider));
            let providers = Table::from_iter([(chosen.clone(), provider)]);
            kept.keep("model_providers", Value::Table(providers));
        }
        Ok(kept)
    }

    fn keep(&mut self, name: &str, value: Value) {
        self.settings.insert(name.to_owned(), value);
    }

    fn provider(&mut self, name: &str, provider: &Table) -> Table {
        let mut kept = Table::new();
        let mut left_out = Vec::new();
        for (field, value) in provider {
            let as_it_is = KEPT.iter().any(|(name, fits)| name == field && fits(value));
            match (field.as_str(), value) {
                _ if as_it_is => {
                    kept.insert(field.clone(), value.clone());
                }
                ("base_url", Value::String(url)) => {
                    let (plain, whole) = plain_address(url);
                    if !whole {
                        left_out.push("the secrets of base_url");
                    }
                    kept.insert(field.clone(), plain.into());
                }
                ("query_params", Value::Table(params)) => {
                    // The interface's version is named this way.
                    let version = params.get_key_value("api-version");
                    let version = version.filter(|(_, value)| value.is_str());
                    let version = version.map(|(name, value)| (name.clone(), value.clone()));
                    let names = params.keys().map(String::as_str);
                    left_out.extend(names.filter(|name| *name != "api-version"));
                    kept.insert(field.clone(), Value::Table(version.into_iter().collect()));
                }
                _ => left_out.push(field),
            }
        }
        if !left_out.is_empty() {
            let fields = left_out.into_iter().map(text::quoted);
            let fields: Vec<String> = fields.collect();
            self.left_out.push(format!(
                "of the model provider {} these settings are not passed on: {}",
                text::quoted(name),
                fields.join(", ")
            ));
        }
        kept
    }

    /// What goes into the configuration of every send.
    pub(crate) const fn settings(&self) -> &Table {
        &self.settings
    }

    /// What the operator has and sends do not, in words.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The variable from which the chosen provider takes its key, where it has
    /// one; a role has to list it in `env`.
    #[must_use]
    pub fn key_variable(&self) -> Option<&str> {
        self.chosen()?.get("env_key")?.as_str()
    }

    /// Whether sends need the login of the vendor's: they do but for a provider
    /// of the operator's own that does not ask for it.
    #[must_use]
    pub fn needs_login(&self) -> bool {
        match (self.chosen_name(), self.chosen()) {
            (None | Some(VENDOR), None) => true,
            // Another that comes with the CLI, such as one of a local server.
            (Some(_), None) => false,
            (_, Some(provider)) => {
                provider.get("requires_openai_auth") == Some(&Value::Boolean(true))
            }
        }
    }

    fn chosen_name(&self) -> Option<&str> {
        self.settings.get("model_provider")?.as_str()
    }

    fn chosen(&self) -> Option<&Table> {
        let name = self.chosen_name()?;
        let providers = self.settings.get("model_providers")?;
        providers.get(name)?.as_table()
    }
}

/// An address without name, password, query and fragment, and whether that is
/// all of it.
fn plain_address(url: &str) -> (String, bool) {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (address, more) = url.split_at(end);
    // A password may hold a slash: whatever stands before the last `@` goes.
    let plain = match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        (_, None) => address.to_owned(),
    };
    let whole = more.is_empty() && plain.len() == address.len();
    (plain, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = r#"
model = "gpt-5.5"
model_provider = "mine"
developer_instructions = "do as I say"
[mcp_servers.x]
command = "evil"
[features]
plugins = true
[model_providers.mine]
name = "mine"
base_url = "https://user:SEC/RET@example.invalid/v1?key=SECRET#SECRET"
wire_api = "responses"
env_key = "MINE_KEY"
env_http_headers = { "x-team" = "TEAM_VARIABLE" }
http_headers = { authorization = "Bearer SECRET" }
experimental_bearer_token = "SECRET"
query_params = { api-version = "2026-01", code = "SECRET" }
stream_max_retries = 2
supports_websockets = "SECRET"
request_max_retries = ["SECRET"]
[model_providers.mine.auth]
command = "print-token"
[model_providers.other]
base_url = "http://localhost:1234/v1"
requires_openai_auth = true
"#;

    #[test]
    fn the_provider_is_kept_without_secrets_and_nothing_else_is() {
        let kept = Operator::parse(OWN).unwrap();
        let expected: Table = r#"
model_provider = "mine"
[model_providers.mine]
name = "mine"
base_url = "https://example.invalid/v1"
wire_api = "responses"
env_key = "MINE_KEY"
env_http_headers = { "x-team" = "TEAM_VARIABLE" }
query_params = { api-version = "2026-01" }
stream_max_retries = 2
"#
        .parse()
        .unwrap();
        assert_eq!(kept.settings, expected);
        assert_eq!(
            kept.left_out(),
            [
                "of the model provider `mine` these settings are not passed on: `auth`, \
                 `the secrets of base_url`, `experimental_bearer_token`, `http_headers`, `code`, \
                 `request_max_retries`, `supports_websockets`"
            ]
        );
        assert_eq!(kept.key_variable(), Some("MINE_KEY"));
        assert!(!kept.needs_login());
    }

    #[test]
    fn a_login_is_needed_unless_a_provider_of_ones_own_does_without() {
        let needs = |said: &str| Operator::parse(said).unwrap().needs_login();
        assert!(needs(""));
        assert!(needs("model_provider = \"openai\""));
        assert!(!needs("model_provider = \"ollama\""));
        assert!(needs(
            &OWN.replace("provider = \"mine\"", "provider = \"other\"")
        ));
        assert!(!needs(OWN));
    }

    #[test]
    fn a_configuration_that_cannot_be_read_is_told_without_its_text() {
        let dir = tempfile::tempdir().unwrap();
        let operator = OperatorHome {
            home: dir.path().to_owned(),
            env: Default::default(),
        };
        assert_eq!(Operator::read(&operator), Operator::default());
        let path = dir.path().join(".codex/config.toml");
        std::fs::create_dir_all(&path).unwrap();
        let read = |operator: &OperatorHome| Operator::read(operator).left_out().concat();
        assert!(read(&operator).ends_with("config.toml` is not used: not a small regular file"));
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, "a = 1\nSECRET [").unwrap();
        assert!(read(&operator).ends_with("config.toml` is not used: line 2 is no TOML"));
        std::fs::write(&path, OWN).unwrap();
        assert_eq!(Operator::read(&operator), Operator::parse(OWN).unwrap());
    }

    #[test]
    fn the_operators_own_directory_counts() {
        let dir = tempfile::tempdir().unwrap();
        let mut operator = OperatorHome {
            home: dir.path().to_owned(),
            env: Default::default(),
        };
        let own = dir.path().join("own");
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join("config.toml"), OWN).unwrap();
        operator.env.insert("CODEX_HOME".into(), own.into());
        assert_eq!(Operator::read(&operator).key_variable(), Some("MINE_KEY"));
    }
}
