//! `jig version`

use serde_json::json;

use crate::exit_code::Exit;
use crate::settings::Settings;
use crate::{output, version};

pub(crate) fn run(settings: &Settings) -> Exit {
    if settings.json {
        output::result_line(
            &json!({"version": version::SHORT, "commit": version::COMMIT}).to_string(),
        );
    } else {
        let commit = version::COMMIT.unwrap_or("unknown commit");
        output::result_line(&format!("jig {} ({commit})", version::SHORT));
    }
    Exit::Done
}
