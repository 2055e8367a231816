//! What a role receives of the operator's login.

use std::io::Read as _;
use std::path::Path;

use jig_protocol::outcome::FailureClass;
use jig_runtime::{OperatorHome, Seed, SeedError};
use serde_json::Value;

use crate::command_line;
use crate::operator::{self, Operator};

/// A larger file is no login.
const MAX_FILE: u64 = 1024 * 1024;

/// The operator's login, or nothing where the model provider asks for none.
pub(crate) fn seed(operator: &OperatorHome, settings: &Operator) -> Result<Seed, SeedError> {
    if !settings.needs_login() {
        return Ok(Seed {
            files: Vec::new(),
            dirs: Vec::new(),
            expires_at: None,
        });
    }
    let path = operator::directory(operator).join("auth.json");
    let login = read(&path)
        .map_err(|error| no_login(format!("{} holds no Codex login ({error})", path.display())))?;
    if !serde_json::from_slice::<Value>(&login).is_ok_and(|value| value.is_object()) {
        return Err(no_login(format!(
            "{} is not in a form jig knows",
            path.display()
        )));
    }
    Ok(Seed {
        files: vec![(command_line::login_file(), login)],
        dirs: vec![command_line::HOME.into()],
        expires_at: None,
    })
}

fn no_login(message: String) -> SeedError {
    SeedError {
        class: FailureClass::Auth,
        message,
        hint: "log in with `codex login`; or name a model provider with an `env_key` in Codex's config.toml, and put that variable into the role's `env`"
            .to_owned(),
    }
}

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
