//! `jig def validate|explain|schema`

use std::path::{Path, PathBuf};

use jig_protocol::definition::{DiagnosticJson, explain, json_schema};
use serde::Serialize;

use crate::args::DefCommand;
use crate::definition_file::DefinitionFile;
use crate::exit_code::{CommandError, CommandResult, Exit};
use crate::output;
use crate::report::counted;
use crate::settings::Settings;

pub(crate) fn run(command: DefCommand, settings: &Settings) -> CommandResult {
    match command {
        DefCommand::Validate { files, strict } => Ok(validate(&files, strict, settings)),
        DefCommand::Explain { file } => explain_file(&file, settings),
        DefCommand::Schema => {
            output::result_line(&format!("{:#}", json_schema()));
            Ok(Exit::Done)
        }
    }
}

/// One file's answer of `jig def validate --json`.
#[derive(Debug, Serialize)]
struct Validated {
    path: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phases: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    roles: Option<usize>,
    /// Why the file could not be read; `diagnostics` is empty then.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    diagnostics: Vec<DiagnosticJson>,
}

fn validate(files: &[PathBuf], strict: bool, settings: &Settings) -> Exit {
    let answers: Vec<Validated> = files
        .iter()
        .map(|path| validate_one(path, strict, settings))
        .collect();
    if settings.json {
        match serde_json::to_string(&answers) {
            Ok(text) => output::result_line(&text),
            Err(error) => output::note(&format!("error: {error}")),
        }
    }
    if answers.iter().all(|answer| answer.ok) {
        Exit::Done
    } else {
        Exit::Usage
    }
}

fn validate_one(path: &Path, strict: bool, settings: &Settings) -> Validated {
    let shown = path.display().to_string();
    match DefinitionFile::read(path) {
        Ok(file) => {
            let ok = file.passes(strict);
            if !settings.json {
                say(&file, ok, settings.color);
            }
            let definition = file.definition.as_ref();
            Validated {
                path: shown,
                ok,
                name: definition.map(|definition| definition.name.to_string()),
                phases: definition.map(|definition| definition.phases.len()),
                roles: definition.map(|definition| definition.roster.len()),
                error: None,
                diagnostics: file
                    .diagnostics
                    .iter()
                    .map(|found| found.to_json())
                    .collect(),
            }
        }
        Err(error) => {
            let error = format!("{error:#}");
            if !settings.json {
                output::note(&output::harmless(&format!("error: {error}")));
            }
            Validated {
                path: shown,
                ok: false,
                name: None,
                phases: None,
                roles: None,
                error: Some(error),
                diagnostics: Vec::new(),
            }
        }
    }
}

fn say(file: &DefinitionFile, ok: bool, color: bool) {
    file.complain(color);
    let (errors, warnings) = file.counts();
    let path = file.path.display();
    match &file.definition {
        Some(definition) if ok => output::result_line(&format!(
            "ok {path}: {}, {}, {}",
            definition.name,
            counted(definition.phases.len() as u64, "phase"),
            counted(definition.roster.len() as u64, "role")
        )),
        _ => output::note(&format!(
            "{path}: {}, {}",
            counted(errors as u64, "error"),
            counted(warnings as u64, "warning")
        )),
    }
}

/// `jig def explain --json`.
#[derive(Debug, Serialize)]
struct Explained {
    name: String,
    text: String,
    mermaid: String,
    worst_case_sends: u32,
    group_runs: u64,
    worst_case_spend_usd: Option<f64>,
}

fn explain_file(path: &Path, settings: &Settings) -> CommandResult {
    let file = DefinitionFile::read(path).map_err(CommandError::usage)?;
    file.complain(settings.color);
    let Some(definition) = &file.definition else {
        return Ok(Exit::Usage);
    };
    let explanation = explain(definition);
    if settings.json {
        let bounds = jig_protocol::definition::bounds(definition);
        let answer = Explained {
            name: definition.name.to_string(),
            text: explanation.text,
            mermaid: explanation.mermaid,
            worst_case_sends: bounds.worst_case_sends,
            group_runs: bounds.group_runs,
            worst_case_spend_usd: bounds.worst_case_spend,
        };
        let text = serde_json::to_string(&answer).map_err(CommandError::infrastructure)?;
        output::result_line(&text);
    } else {
        let text = format!("{}\n{}", explanation.text, explanation.mermaid);
        output::result(&output::harmless(&text));
    }
    Ok(Exit::Done)
}
