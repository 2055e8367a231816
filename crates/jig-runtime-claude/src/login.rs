//! The operator's login: where it lies, what of it a role receives, and until
//! when it is good.

use std::io::Read;
use std::path::{Path, PathBuf};

use jig_protocol::outcome::FailureClass;
use jig_protocol::time::Timestamp;
use jig_runtime::{OperatorHome, Seed, SeedError};
use serde_json::{Map, Value};

/// Below HOME: the login itself.
const CREDENTIALS: &str = ".claude/.credentials.json";

/// Below HOME: what the CLI remembers of its user.
const STATE: &str = ".claude.json";

/// A login is a few hundred bytes; a file beyond this is none.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// The parts of the CLI's state that tell it that its first-run questions were
/// answered. Everything else, such as projects and the secrets of their tool
/// servers, stays with the operator.
const KEPT_STATE: [&str; 5] = [
    "hasCompletedOnboarding",
    "lastOnboardingVersion",
    "oauthAccount",
    "theme",
    "userID",
];

/// Where the operator's files lie.
struct Places {
    credentials: PathBuf,
    state: PathBuf,
}

impl Places {
    fn of(operator: &OperatorHome) -> Self {
        match operator
            .env
            .get(std::ffi::OsStr::new("CLAUDE_CONFIG_DIR"))
            .filter(|dir| !dir.is_empty())
        {
            Some(dir) => {
                let dir = PathBuf::from(dir);
                Self {
                    credentials: dir.join(".credentials.json"),
                    state: dir.join(STATE),
                }
            }
            None => Self {
                credentials: operator.home.join(CREDENTIALS),
                state: operator.home.join(STATE),
            },
        }
    }
}

/// What a role's HOME needs. `keychain` is the login that the system's keychain
/// holds, where there is one; it goes before the file.
///
/// # Errors
///
/// When there is no login, or what there is makes no sense.
pub(crate) fn seed(operator: &OperatorHome, keychain: Option<Vec<u8>>) -> Result<Seed, SeedError> {
    let places = Places::of(operator);
    let login = match keychain {
        Some(login) => login,
        None => read(&places.credentials).map_err(|error| {
            let keychain = if cfg!(target_os = "macos") {
                "neither the keychain nor "
            } else {
                ""
            };
            let verb = if cfg!(target_os = "macos") {
                "holds"
            } else {
                "does not hold"
            };
            no_login(format!(
                "{keychain}{} {verb} a Claude Code login ({error})",
                places.credentials.display()
            ))
        })?,
    };
    if !serde_json::from_slice::<Value>(&login).is_ok_and(|value| value.is_object()) {
        return Err(no_login(
            "the Claude Code login is not in a form jig knows".to_owned(),
        ));
    }
    let expires_at = expires_at(&login);
    let mut files = vec![(PathBuf::from(CREDENTIALS), login)];
    if let Some(state) = read(&places.state)
        .ok()
        .and_then(|state| kept_state(&state))
    {
        files.push((PathBuf::from(STATE), state));
    }
    Ok(Seed {
        files,
        dirs: vec![PathBuf::from(".claude")],
        expires_at,
    })
}

fn no_login(message: String) -> SeedError {
    SeedError {
        class: FailureClass::Auth,
        message,
        hint: "log in with `claude /login`; or put ANTHROPIC_API_KEY into the role's `env` and run with --no-seed-auth"
            .to_owned(),
    }
}

/// A regular file's content, bounded.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = std::fs::File::open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > MAX_FILE {
        return Err(std::io::Error::other("not a small regular file"));
    }
    let mut content = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut content)?;
    Ok(content)
}

/// The parts of the state that a role receives.
fn kept_state(state: &[u8]) -> Option<Vec<u8>> {
    let state: Map<String, Value> = serde_json::from_slice(state).ok()?;
    let kept: Map<String, Value> = state
        .into_iter()
        .filter(|(name, _)| KEPT_STATE.contains(&name.as_str()))
        .collect();
    serde_json::to_vec(&Value::Object(kept)).ok()
}

/// Until when a login is good; `None` when it does not say.
pub(crate) fn expires_at(login: &[u8]) -> Option<Timestamp> {
    let login: Value = serde_json::from_slice(login).ok()?;
    login["claudeAiOauth"]["expiresAt"]
        .as_i64()
        .map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: &str =
        r#"{"claudeAiOauth":{"accessToken":"a","refreshToken":"r","expiresAt":1764541315000}}"#;

    fn operator(dir: &Path) -> OperatorHome {
        OperatorHome {
            home: dir.to_owned(),
            env: Default::default(),
        }
    }

    fn write(path: PathBuf, content: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    #[test]
    fn the_file_is_the_login_and_the_state_is_trimmed() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path().join(CREDENTIALS), LOGIN);
        write(
            dir.path().join(STATE),
            r#"{"hasCompletedOnboarding":true,"mcpServers":{"x":{"env":{"TOKEN":"secret"}}},"projects":{}}"#,
        );
        let seed = seed(&operator(dir.path()), None).unwrap();
        assert_eq!(
            seed.files[0],
            (PathBuf::from(CREDENTIALS), LOGIN.as_bytes().to_vec())
        );
        assert_eq!(
            seed.files[1],
            (
                PathBuf::from(STATE),
                br#"{"hasCompletedOnboarding":true}"#.to_vec()
            )
        );
        assert_eq!(seed.dirs, [PathBuf::from(".claude")]);
        assert_eq!(
            seed.expires_at,
            Some(Timestamp::from_millis(1_764_541_315_000))
        );
    }

    #[test]
    fn the_keychain_goes_before_the_file() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path().join(CREDENTIALS), LOGIN);
        let seed = seed(&operator(dir.path()), Some(b"{}".to_vec())).unwrap();
        assert_eq!(seed.files, [(PathBuf::from(CREDENTIALS), b"{}".to_vec())]);
        assert_eq!(seed.expires_at, None);
    }

    #[test]
    fn the_operators_config_directory_counts() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path().join("conf/.credentials.json"), LOGIN);
        let mut operator = operator(dir.path());
        assert!(seed(&operator, None).is_err());
        operator
            .env
            .insert("CLAUDE_CONFIG_DIR".into(), dir.path().join("conf").into());
        assert_eq!(seed(&operator, None).unwrap().files.len(), 1);
    }

    #[test]
    fn no_login_is_an_auth_error_with_a_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let error = seed(&operator(dir.path()), None).unwrap_err();
        assert_eq!(error.class, FailureClass::Auth);
        assert!(error.message.contains(".credentials.json"), "{error}");
        assert!(error.hint.contains("--no-seed-auth"));
        write(dir.path().join(CREDENTIALS), "not json");
        assert!(seed(&operator(dir.path()), None).is_err());
        let fifo = dir.path().join("dir");
        std::fs::create_dir(&fifo).unwrap();
        assert!(read(&fifo).is_err());
    }
}
