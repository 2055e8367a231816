//! The operator's login: where it lies, what of it a role receives, and until
//! when it is good.

use std::path::PathBuf;

use jig_protocol::outcome::FailureClass;
use jig_protocol::time::Timestamp;
use jig_runtime::{OperatorHome, Seed, SeedError, login};
use serde_json::{Map, Value, json};

/// Below HOME: the login itself.
const CREDENTIALS: &str = ".claude/.credentials.json";

/// Below HOME: what the CLI remembers of its user.
const STATE: &str = ".claude.json";

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
    let said = match keychain {
        Some(said) => said,
        None => login::read(&places.credentials).map_err(|error| missing(&places, &error))?,
    };
    let said: Value = serde_json::from_slice(&said).unwrap_or_default();
    let Some(login) = kept_login(&said) else {
        return Err(no_login(
            "the Claude Code login is not in a form jig knows".to_owned(),
        ));
    };
    let expires_at = said["claudeAiOauth"]["expiresAt"]
        .as_i64()
        .map(Timestamp::from_millis);
    let mut files = vec![(PathBuf::from(CREDENTIALS), login)];
    if let Some(state) = login::read(&places.state)
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

fn missing(places: &Places, error: &std::io::Error) -> SeedError {
    let (keychain, verb) = match cfg!(target_os = "macos") {
        true => ("neither the keychain nor ", "holds"),
        false => ("", "does not hold"),
    };
    let file = places.credentials.display();
    no_login(format!(
        "{keychain}{file} {verb} a Claude Code login ({error})"
    ))
}

/// The part of the login that the CLI needs: without what it holds for other
/// servers, and without the refresh token. The CLI works without one (as long as
/// the access token is good); used in a HOME that is thrown away, a token that
/// can be used once would log the operator out.
fn kept_login(said: &Value) -> Option<Vec<u8>> {
    let mut account = said.get("claudeAiOauth")?.as_object()?.clone();
    account.get("accessToken")?.as_str()?;
    account.remove("refreshToken");
    serde_json::to_vec(&json!({ "claudeAiOauth": account })).ok()
}

fn no_login(message: String) -> SeedError {
    SeedError {
        class: FailureClass::Auth,
        message,
        hint: "log in with `claude /login`; or put ANTHROPIC_API_KEY into the role's `env` and run with --no-seed-auth"
            .to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const LOGIN: &str = r#"{"claudeAiOauth":{"accessToken":"a","refreshToken":"r","expiresAt":1764541315000},"mcpOAuth":{"x":{"accessToken":"b"}}}"#;

    const COPY: &str = r#"{"claudeAiOauth":{"accessToken":"a","expiresAt":1764541315000}}"#;

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
            (PathBuf::from(CREDENTIALS), COPY.as_bytes().to_vec())
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
        let other = br#"{"claudeAiOauth":{"accessToken":"k"}}"#.to_vec();
        let seed = seed(&operator(dir.path()), Some(other.clone())).unwrap();
        assert_eq!(seed.files, [(PathBuf::from(CREDENTIALS), other)]);
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
        for odd in [
            "not json",
            "{}",
            "[]",
            r#"{"claudeAiOauth":{"refreshToken":"r"}}"#,
        ] {
            write(dir.path().join(CREDENTIALS), odd);
            let error = seed(&operator(dir.path()), None).unwrap_err();
            assert!(error.message.contains("form jig knows"), "{error}");
        }
    }
}
