//! The parts of the operator's cargo configuration that say where crates come
//! from, without what would log in anywhere.

use std::path::Path;

use jig_protocol::text::without_userinfo;
use toml::{Table, Value};

/// The tables that are copied.
const KEPT: [&str; 3] = ["source", "registries", "http"];

/// Keys that hold, or fetch, a secret.
const SECRET: [&str; 5] = [
    "token",
    "secret-key",
    "secret-key-subject",
    "credential-provider",
    "global-credential-providers",
];

/// Keys whose values are paths relative to the directory that holds `.cargo`.
const PATHS: [&str; 3] = ["directory", "local-registry", "cainfo"];

/// What a role's or a command's `config.toml` says, made of the operator's;
/// `None` when there is nothing to say. A file that cargo itself would refuse
/// is as good as none.
pub(super) fn without_secrets(text: &str, relative_to: &Path) -> Option<String> {
    let config: Table = text.parse().ok()?;
    let mut kept = Table::new();
    for name in KEPT {
        if let Some(Value::Table(table)) = config.get(name) {
            let table = clean_table(table, relative_to);
            if !table.is_empty() {
                kept.insert(name.to_owned(), Value::Table(table));
            }
        }
    }
    if kept.is_empty() {
        return None;
    }
    toml::to_string(&kept).ok()
}

fn clean_table(table: &Table, relative_to: &Path) -> Table {
    table
        .iter()
        .filter(|(key, _)| !SECRET.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), clean(key, value, relative_to)))
        .filter(|(_, value)| !value.as_table().is_some_and(Table::is_empty))
        .collect()
}

fn clean(key: &str, value: &Value, relative_to: &Path) -> Value {
    match value {
        Value::Table(table) => Value::Table(clean_table(table, relative_to)),
        Value::Array(list) => Value::Array(
            list.iter()
                .map(|value| clean(key, value, relative_to))
                .collect(),
        ),
        Value::String(text) if PATHS.contains(&key) && !text.is_empty() => {
            Value::String(relative_to.join(text).to_string_lossy().into_owned())
        }
        Value::String(text) => Value::String(without_userinfo(text)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_stay_and_logins_go() {
        let text = r#"
            [build]
            rustc-wrapper = "/evil"
            [source.crates-io]
            replace-with = "mirror"
            [source.mirror]
            registry = "sparse+https://me:hunter2@mirror.example/index/"
            [source.vendored]
            directory = "vendor"
            [registries.ours]
            index = "https://ours.example/@scope/index"
            token = "hunter2"
            credential-provider = ["cargo:token-from-stdout", "echo", "hunter2"]
            [registry]
            token = "hunter2"
            [http]
            proxy = "me:hunter2@proxy.example:3128"
            timeout = 30
        "#;
        let kept = without_secrets(text, Path::new("/home/op")).unwrap();
        insta::assert_snapshot!(kept, @r#"
        [http]
        proxy = "proxy.example:3128"
        timeout = 30

        [registries.ours]
        index = "https://ours.example/@scope/index"

        [source.crates-io]
        replace-with = "mirror"

        [source.mirror]
        registry = "sparse+https://mirror.example/index/"

        [source.vendored]
        directory = "/home/op/vendor"
        "#);
    }

    #[test]
    fn nothing_worth_saying_is_no_file() {
        let at = Path::new("/");
        assert_eq!(without_secrets("[build]\njobs = 1", at), None);
        assert_eq!(without_secrets("[source", at), None);
        assert_eq!(
            without_secrets("[registries.x]\ntoken = \"t\"\n[http]", at),
            None
        );
    }
}
