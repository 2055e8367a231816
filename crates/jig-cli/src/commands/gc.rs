//! `jig gc`: prunes attempts, and what the store says of them, past retention.

use std::collections::BTreeSet;
use std::path::Path;

use jig_controlplane::service::{apply_prune, plan_prune};
use jig_controlplane::{Store, direct};
use jig_engine::host::retention::{self, GcPlan, Kept, Needed};
use jig_protocol::ids::AttemptId;
use jig_protocol::limits::Retention;
use serde::Serialize;

use crate::args::GcArgs;
use crate::compose::Machine;
use crate::evidence::{json_line, open_if_any};
use crate::exit_code::{CommandError, CommandResult, Exit};
use crate::output;
use crate::report::counted;
use crate::settings::Settings;

/// `jig gc --json`.
#[derive(Debug, Default, Serialize)]
struct Pruned {
    dry_run: bool,
    /// Attempt directories that are (or would be) removed.
    directories: Vec<String>,
    /// Attempts that the store forgets (or would forget).
    attempts: Vec<AttemptId>,
    /// Past their time, but they must stay: which, and why.
    stay: Vec<String>,
    caches: bool,
    problems: Vec<String>,
}

pub(crate) async fn run(args: GcArgs, settings: &Settings) -> CommandResult {
    let Some(store) = open_if_any(settings).await? else {
        output::note("there is nothing to prune: no run was ever recorded here");
        return Ok(Exit::Done);
    };
    let machine = Machine::find(settings)?;
    let done = prune(&args, &store, &machine).await;
    store.close().await;
    let done = done?;
    if settings.json {
        json_line(&done)?;
    } else {
        output::result(&output::harmless(&prose(&done)));
    }
    for problem in &done.problems {
        output::note(&output::harmless(&format!("warning: {problem}")));
    }
    Ok(if done.problems.is_empty() {
        Exit::Done
    } else {
        Exit::Infrastructure
    })
}

async fn prune(args: &GcArgs, store: &Store, machine: &Machine) -> Result<Pruned, CommandError> {
    let now = machine.clock.now();
    let data = store.data_dir();
    let running = |run| direct::may_be_running(data, run);
    let snapshot = retention::snapshot(data, &running).map_err(CommandError::infrastructure)?;
    let plan = GcPlan::new(snapshot, Retention::default(), now);
    let rows = plan_prune(store, Retention::default())
        .await
        .map_err(CommandError::infrastructure)?;
    let mut done = Pruned {
        dry_run: args.dry_run,
        directories: plan
            .remove
            .iter()
            .map(|kept| kept.directory.display().to_string())
            .collect(),
        attempts: rows.attempts.clone(),
        stay: plan.stay.iter().map(stays).collect(),
        caches: args.caches,
        problems: Vec::new(),
    };
    if args.dry_run {
        return Ok(done);
    }
    let report = retention::apply(&plan, &machine.git).await;
    done.problems.extend(
        report
            .problems
            .into_iter()
            .map(|(attempt, why)| format!("{attempt}: {why}")),
    );
    // Rows go only once their directories did: what is on disk stays findable.
    let left: BTreeSet<AttemptId> = plan
        .remove
        .iter()
        .filter(|kept| kept.directory.symlink_metadata().is_ok())
        .map(|kept| kept.attempt)
        .collect();
    let mut rows = rows;
    rows.attempts.retain(|attempt| !left.contains(attempt));
    done.attempts = apply_prune(store, &rows)
        .await
        .map_err(CommandError::infrastructure)?;
    if args.caches {
        done.problems.extend(remove_caches(data).await);
    }
    Ok(done)
}

/// Removes the caches unless a run may be using them; what was wrong.
async fn remove_caches(data: &Path) -> Option<String> {
    match direct::any_may_be_running(data) {
        Ok(false) => {}
        Ok(true) => {
            return Some("caches: a run is going on and may use them; they stay".to_owned());
        }
        Err(error) => {
            return Some(format!(
                "caches: whether a run is going on cannot be seen: {error}"
            ));
        }
    }
    let removed = retention::remove_caches(data).await;
    removed.err().map(|error| format!("caches: {error}"))
}

fn stays(kept: &Kept) -> String {
    let why = kept.needed.map_or("", Needed::as_str);
    format!("{}: {why}", kept.directory.display())
}

fn prose(done: &Pruned) -> String {
    let verb = if done.dry_run {
        "would remove"
    } else {
        "removed"
    };
    let mut out = String::new();
    for directory in &done.directories {
        out.push_str(&format!("{verb} {directory}\n"));
    }
    for stay in &done.stay {
        out.push_str(&format!("keeps {stay}\n"));
    }
    if done.caches {
        out.push_str(&format!("{verb} the download caches\n"));
    }
    out.push_str(&format!(
        "{verb} {} and {} from the store\n",
        match done.directories.len() {
            1 => "1 attempt directory".to_owned(),
            many => format!("{many} attempt directories"),
        },
        counted(done.attempts.len() as u64, "attempt")
    ));
    out
}
