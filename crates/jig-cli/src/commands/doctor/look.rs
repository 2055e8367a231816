//! What there is to look at, and how it is told.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::agents;
use crate::compose::Machine;
use crate::evidence::{json_line, open_if_any};
use crate::exit_code::{CommandError, CommandResult, Exit};
use crate::output;
use crate::settings::Settings;

/// Below this a run may fail for want of room.
const FREE_BYTES: u64 = 1024 * 1024 * 1024;

/// How a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// Something works less well, or not yet.
    Warning,
    /// No run can work.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    name: String,
    level: Level,
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Finding {
    pub(super) fn ok(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            level: Level::Ok,
            detail: detail.into(),
            advice: None,
        }
    }

    pub(super) fn not(
        level: Level,
        name: impl Into<String>,
        detail: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            level,
            detail: detail.into(),
            advice: Some(advice.into()).filter(|advice| !advice.is_empty()),
        }
    }
}

pub(crate) async fn run(settings: &Settings) -> CommandResult {
    let machine = Machine::find(settings)?;
    let data = settings.data_dir()?;
    let mut findings = vec![git(&machine).await];
    findings.extend(agents::look(&machine, &data).await);
    findings.extend([
        sandbox(),
        data_dir(&data, settings).await,
        free_space(&data),
    ]);
    if settings.json {
        findings.iter().try_for_each(json_line)?;
    } else {
        findings
            .iter()
            .for_each(|finding| output::result(&output::harmless(&prose(finding))));
    }
    let broken = findings
        .iter()
        .any(|finding| finding.level == Level::Problem);
    Ok(if broken {
        Exit::Infrastructure
    } else {
        Exit::Done
    })
}

fn prose(finding: &Finding) -> String {
    let mark = match finding.level {
        Level::Ok => "ok  ",
        Level::Warning => "note",
        Level::Problem => "FAIL",
    };
    let advice = finding
        .advice
        .as_ref()
        .map(|advice| format!("       → {advice}\n"))
        .unwrap_or_default();
    format!("{mark} {}: {}\n{advice}", finding.name, finding.detail)
}

async fn git(machine: &Machine) -> Finding {
    match machine.git.check_version().await {
        Ok((major, minor)) => Finding::ok("git", format!("version {major}.{minor}")),
        Err(error) => Finding::not(
            Level::Problem,
            "git",
            error.to_string(),
            "install git 2.41 or later; nothing works without it",
        ),
    }
}

fn sandbox() -> Finding {
    Finding::not(
        Level::Warning,
        "sandbox",
        "tier none: this version has no kernel sandbox",
        "the write boundary still verifies and undoes; see docs/SECURITY.md for what it does not cover",
    )
}

async fn data_dir(data: &Path, settings: &Settings) -> Finding {
    const NAME: &str = "data directory";
    let shown = data.display();
    let problem = |detail: String, advice: &str| Finding::not(Level::Problem, NAME, detail, advice);
    let Some(existing) = existing_ancestor(data) else {
        return problem(
            format!("{shown} cannot be made"),
            "choose another with --data",
        );
    };
    if !existing.is_dir() {
        return problem(
            format!("{} is not a directory", existing.display()),
            "choose another with --data",
        );
    }
    if rustix::fs::access(&existing, rustix::fs::Access::WRITE_OK).is_err() {
        return problem(
            format!("{} cannot be written", existing.display()),
            "make it yours (chown, chmod 700), or choose another with --data",
        );
    }
    match open_if_any(settings).await {
        Ok(Some(store)) => {
            store.close().await;
            Finding::ok(NAME, shown.to_string())
        }
        Ok(None) if existing == data => Finding::ok(NAME, format!("{shown} (no run yet)")),
        Ok(None) => Finding::ok(NAME, format!("{shown} (made by the first run)")),
        Err(CommandError { error, hint, .. }) => {
            problem(format!("{error:#}"), &hint.unwrap_or_default())
        }
    }
}

fn existing_ancestor(path: &Path) -> Option<PathBuf> {
    path.ancestors()
        .find(|dir| dir.symlink_metadata().is_ok())
        .map(Path::to_owned)
}

fn free_space(data: &Path) -> Finding {
    const NAME: &str = "free disk";
    let free = existing_ancestor(data)
        .and_then(|dir| rustix::fs::statvfs(&dir).ok())
        .map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
    match free {
        None => Finding::not(
            Level::Warning,
            NAME,
            "unknown",
            "make sure that there is room for a checkout per run",
        ),
        Some(free) => {
            let detail = format!("{:.1} GiB", free as f64 / 1024.0 / 1024.0 / 1024.0);
            if free < FREE_BYTES {
                Finding::not(
                    Level::Warning,
                    NAME,
                    detail,
                    "make room: jig gc --dry-run shows what could go",
                )
            } else {
                Finding::ok(NAME, detail)
            }
        }
    }
}
