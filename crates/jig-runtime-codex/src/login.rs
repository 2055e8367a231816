//! What a role receives of the operator's login.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jig_protocol::outcome::FailureClass;
use jig_protocol::time::Timestamp;
use jig_runtime::{OperatorHome, Seed, SeedError, login};
use serde_json::{Map, Value, json};

use crate::command_line;
use crate::operator::{self, Operator};

/// The operator's login, or nothing where the model provider asks for none.
///
/// # Errors
///
/// When there is no login, or what there is makes no sense.
pub(crate) fn seed(operator: &OperatorHome, settings: &Operator) -> Result<Seed, SeedError> {
    if !settings.needs_login() {
        return Ok(Seed::default());
    }
    let path = operator::directory(operator).join("auth.json");
    let shown = path.display();
    let said = login::read(&path)
        .map_err(|error| no_login(format!("{shown} does not hold a Codex login ({error})")))?;
    let said: Value = serde_json::from_slice(&said).unwrap_or_default();
    let Some((login, expires_at)) = kept(&said) else {
        return Err(no_login(format!("{shown} is not in a form jig knows")));
    };
    Ok(Seed {
        files: vec![(command_line::login_file(), login)],
        dirs: vec![command_line::HOME.into()],
        expires_at,
    })
}

/// What the CLI needs of a login, and until when it is good: the key or the
/// tokens, whichever the login is by, and those with an empty refresh token.
///
/// The CLI takes tokens without that field for none, and works with an empty one
/// as long as the access token is good. Used in a HOME that is thrown away, a
/// token that can be used once would log the operator out.
fn kept(login: &Value) -> Option<(Vec<u8>, Option<Timestamp>)> {
    let key = login["OPENAI_API_KEY"].as_str();
    let by_key = match login["auth_mode"].as_str() {
        Some("apikey") => true,
        Some("chatgpt") => false,
        Some(_) => return None,
        None => key.is_some(),
    };
    let mut copy = Map::new();
    let mut keep = |name: &str, value: &Value| {
        if !value.is_null() {
            copy.insert(name.to_owned(), value.clone());
        }
    };
    keep("auth_mode", &login["auth_mode"]);
    if by_key {
        keep("OPENAI_API_KEY", &key?.into());
        return Some((serde_json::to_vec(&copy).ok()?, None));
    }
    let access = login["tokens"]["access_token"].as_str()?;
    let mut tokens = json!({"access_token": access, "refresh_token": ""});
    for name in ["account_id", "id_token"] {
        if let Some(value) = login["tokens"].get(name) {
            tokens[name] = value.clone();
        }
    }
    keep("tokens", &tokens);
    keep("last_refresh", &login["last_refresh"]);
    Some((serde_json::to_vec(&copy).ok()?, expiry(access)))
}

/// Until when a JSON Web Token says it is good.
fn expiry(token: &str) -> Option<Timestamp> {
    let claims = token.split('.').nth(1)?;
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let seconds = claims.get("exp")?.as_i64()?;
    Some(Timestamp::from_millis(seconds.checked_mul(1_000)?))
}

fn no_login(message: String) -> SeedError {
    SeedError {
        class: FailureClass::Auth,
        message,
        hint: "log in with `codex login`; or put CODEX_API_KEY into the role's `env` and run with --no-seed-auth; or name a model provider with an `env_key` in Codex's config.toml and put that variable into `env`"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn token(claims: &Value) -> String {
        let claims = BASE64_URL_SAFE_NO_PAD.encode(claims.to_string());
        format!("e30.{claims}.c2ln")
    }

    fn operator(dir: &Path) -> OperatorHome {
        OperatorHome {
            home: dir.to_owned(),
            env: Default::default(),
        }
    }

    fn seeded(login: &str) -> Result<Seed, SeedError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".codex")).unwrap();
        std::fs::write(dir.path().join(".codex/auth.json"), login).unwrap();
        seed(&operator(dir.path()), &Operator::default())
    }

    #[test]
    fn the_copy_has_no_refresh_token_and_says_how_long_it_is_good() {
        let access = token(&json!({"exp": 1_764_541_315}));
        let mut login = json!({"OPENAI_API_KEY": null, "last_refresh": "2026-11-01T00:00:00Z",
            "tokens": {"id_token": "i", "access_token": access, "refresh_token": "REFRESH",
            "account_id": "a"}});
        let seed = seeded(&login.to_string()).unwrap();
        let (path, copy) = &seed.files[0];
        assert_eq!(path, &PathBuf::from(".codex/auth.json"));
        login["tokens"]["refresh_token"] = "".into();
        login.as_object_mut().unwrap().remove("OPENAI_API_KEY");
        assert_eq!(serde_json::from_slice::<Value>(copy).unwrap(), login);
        assert_eq!(seed.dirs, [PathBuf::from(".codex")]);
        let expires = Timestamp::from_millis(1_764_541_315_000);
        assert_eq!(seed.expires_at, Some(expires));
    }

    #[test]
    fn a_key_does_not_expire() {
        let access = token(&json!({"exp": 1}));
        for login in [
            json!({"OPENAI_API_KEY": "k"}),
            json!({"OPENAI_API_KEY": "k", "tokens": {"access_token": access}}),
        ] {
            assert_eq!(seeded(&login.to_string()).unwrap().expires_at, None);
        }
    }

    /// The login says by which of the two it is; the other one is not copied.
    #[test]
    fn the_mode_decides_and_nothing_else_is_copied() {
        let access = token(&json!({"exp": 1}));
        let both = |mode: &str| {
            json!({"auth_mode": mode, "OPENAI_API_KEY": "KEY", "agent_identity": "PRIVATE",
                "tokens": {"access_token": access, "refresh_token": "REFRESH", "more": "PRIVATE"}})
            .to_string()
        };
        for (mode, expires, holds) in [
            ("chatgpt", Some(Timestamp::from_millis(1_000)), "tokens"),
            ("apikey", None, "KEY"),
        ] {
            let seed = seeded(&both(mode)).unwrap();
            let copy = String::from_utf8(seed.files[0].1.clone()).unwrap();
            assert_eq!(seed.expires_at, expires, "{mode}");
            assert!(copy.contains(holds) && copy.contains(mode), "{copy}");
            assert_eq!(copy.contains("KEY"), mode == "apikey", "{copy}");
            assert!(
                !copy.contains("PRIVATE") && !copy.contains("REFRESH"),
                "{copy}"
            );
        }
        assert!(seeded(&both("something-new")).is_err());
        let none = json!({"auth_mode": "apikey", "OPENAI_API_KEY": null,
            "tokens": {"access_token": access}});
        assert!(seeded(&none.to_string()).is_err());
    }

    #[test]
    fn an_odd_token_says_nothing_of_its_end() {
        for odd in [
            "",
            "a",
            "a.b.c",
            "a.!.c",
            &token(&json!({"exp": "soon"})),
            &token(&json!([])),
        ] {
            let login = json!({"tokens": {"access_token": odd}});
            assert_eq!(
                seeded(&login.to_string()).unwrap().expires_at,
                None,
                "{odd}"
            );
        }
    }

    #[test]
    fn no_login_is_an_auth_error_with_a_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let missing = seed(&operator(dir.path()), &Operator::default()).unwrap_err();
        assert!(
            missing.message.contains("auth.json does not hold"),
            "{missing}"
        );
        let mut errors = vec![missing];
        for odd in ["", "not json", "{}", r#"{"tokens":{"refresh_token":"r"}}"#] {
            errors.push(seeded(odd).unwrap_err());
        }
        for error in errors {
            assert_eq!(error.class, FailureClass::Auth);
            assert!(error.hint.contains("codex login"), "{error}");
        }
    }

    #[test]
    fn a_provider_of_ones_own_needs_none() {
        let dir = tempfile::tempdir().unwrap();
        let own = "model_provider = \"m\"\n[model_providers.m]\nenv_key = \"K\"\n";
        let seed = seed(&operator(dir.path()), &Operator::parse(own).unwrap()).unwrap();
        assert!(seed.files.is_empty() && seed.dirs.is_empty());
    }
}
