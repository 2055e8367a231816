//! What each agent program needs to ask the loopback model and nothing else.

use std::ffi::OsString;

use super::server::ModelServer;

/// The key that the programs are given; the server masks whatever comes.
pub const KEY: &str = "sk-loopback";

impl ModelServer {
    /// The variables by which Claude Code asks this server, never another
    /// host, gives up soon, and runs as root. To be added to `PATH`, `HOME`
    /// and `TMPDIR`; never run it without a `HOME` of the test's own.
    #[must_use]
    pub fn claude_env(&self) -> Vec<(OsString, OsString)> {
        let url = self.url();
        let pairs = [
            ("ANTHROPIC_BASE_URL", url.as_str()),
            ("ANTHROPIC_API_KEY", KEY),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "1"),
            ("IS_SANDBOX", "1"),
        ];
        pairs
            .map(|(name, value)| (name.into(), value.into()))
            .into()
    }

    /// The variables that go with [`ModelServer::codex_config`].
    #[must_use]
    pub fn codex_env(&self) -> Vec<(OsString, OsString)> {
        vec![("LOOPBACK_KEY".into(), KEY.into())]
    }

    /// A `config.toml` by which Codex asks this server, never another host,
    /// and gives up soon. It belongs into `$CODEX_HOME`, by default
    /// `$HOME/.codex`.
    #[must_use]
    pub fn codex_config(&self) -> String {
        let url = self.openai_url();
        format!(
            r#"model = "gpt-5.5"
model_provider = "loopback"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
plugins = false
apps = false
unbounded_connection_retries = false

[model_providers.loopback]
name = "loopback"
base_url = "{url}"
wire_api = "responses"
env_key = "LOOPBACK_KEY"
request_max_retries = 1
stream_max_retries = 1
"#
        )
    }
}
