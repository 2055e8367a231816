//! The configuration that a send is started with: all of it is jig's.
//!
//! The CLI reads no other: the one of the work tree counts only where a project
//! is trusted, and nothing here trusts one.

use toml::Table;

use crate::operator::Operator;

/// Switches of the CLI that are off, and why.
///
/// - `analytics`: reports to the vendor; without a network each send waits for
///   it.
/// - `plugins`, `apps`: what the account has installed; asked for at a host of
///   the vendor's.
/// - `unbounded_connection_retries`: asks a server that is not there for ever.
/// - update check: nobody reads it.
/// - `project_doc_max_bytes`, `skills`: files of the work tree and of the home
///   have no say in what a role is told.
/// - `history`: a second copy of every prompt.
/// - `shell_snapshot`: a file with all variables, keys among them, which would
///   stay when jig and the CLI are killed.
const SWITCHES: &str = r#"
check_for_update_on_startup = false
project_doc_max_bytes = 0

[analytics]
enabled = false

[features]
apps = false
hooks = false
plugins = false
shell_snapshot = false
unbounded_connection_retries = false

[history]
persistence = "none"

[skills]
include_instructions = false
"#;

/// The text of the configuration.
pub(crate) fn config(system_prompt: &str, operator: &Operator) -> String {
    let mut table: Table = SWITCHES.parse().unwrap_or_default();
    if !system_prompt.is_empty() {
        // Kept by the thread: on later sends it need not be the same, and is.
        table.insert("developer_instructions".to_owned(), system_prompt.into());
    }
    for (name, value) in operator.settings() {
        table.insert(name.clone(), value.clone());
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switches_are_written_as_they_stand_and_texts_as_they_are() {
        let prompt = "Say \"\"\" and '''\n[features]\nplugins = true\n\u{7f}é";
        let written: Table = config(prompt, &Operator::default()).parse().unwrap();
        let mut expected: Table = SWITCHES.parse().unwrap();
        assert_eq!(expected.len(), 6);
        expected.insert("developer_instructions".into(), prompt.into());
        assert_eq!(written, expected);
        let none: Table = config("", &Operator::default()).parse().unwrap();
        assert_eq!(none, SWITCHES.parse().unwrap());
    }
}
