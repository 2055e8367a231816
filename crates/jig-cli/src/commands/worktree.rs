//! `jig worktree list|show|release`

use std::path::Path;

use anyhow::anyhow;
use jig_controlplane::Store;
use jig_controlplane::service::{release_worktree, worktree_missing};
use jig_controlplane::store::{WorktreeRecord, WorktreeState, attempt_dir};
use jig_engine::host::AttemptDirs;

use crate::args::{AttemptRef, WorktreeCommand};
use crate::evidence::{find, json_line, open, open_if_any};
use crate::exit_code::{CommandError, CommandResult, Exit};
use crate::output;
use crate::settings::Settings;

pub(crate) async fn run(command: WorktreeCommand, settings: &Settings) -> CommandResult {
    match command {
        WorktreeCommand::List => list(settings).await,
        WorktreeCommand::Show(wanted) => {
            let store = open(settings).await?;
            let done = show(&store, &wanted, settings).await;
            store.close().await;
            done
        }
        WorktreeCommand::Release { attempt, confirm } => {
            let store = open(settings).await?;
            let done = release(&store, &attempt, confirm, settings).await;
            store.close().await;
            done
        }
    }
}

async fn list(settings: &Settings) -> CommandResult {
    let kept = match open_if_any(settings).await? {
        None => Vec::new(),
        Some(store) => {
            let kept = store.retained_worktrees().await;
            store.close().await;
            kept.map_err(CommandError::infrastructure)?
        }
    };
    if settings.json {
        kept.iter().try_for_each(json_line)?;
    } else if kept.is_empty() {
        output::note("no work tree is kept");
    } else {
        kept.iter().for_each(|tree| {
            output::result_line(&output::harmless(&format!(
                "{}  {}  {}",
                tree.attempt_id, tree.path, tree.reason
            )));
        });
    }
    Ok(Exit::Done)
}

async fn record(store: &Store, wanted: &AttemptRef) -> Result<WorktreeRecord, CommandError> {
    let attempt = find(store, wanted).await?;
    store
        .worktree(attempt.id)
        .await
        .map_err(CommandError::infrastructure)?
        .ok_or_else(|| {
            CommandError::usage(anyhow!("no work tree of attempt {} was kept", attempt.id))
                .hint("jig worktree list names those that were")
        })
}

async fn show(store: &Store, wanted: &AttemptRef, settings: &Settings) -> CommandResult {
    let tree = record(store, wanted).await?;
    if settings.json {
        json_line(&tree)?;
    } else {
        output::result(&output::harmless(&format!(
            "attempt     {}\nrepository  {}\npath        {}\nstate       {}\nkept        {} ({})\n",
            tree.attempt_id, tree.repository, tree.path, tree.state, tree.created_at, tree.reason
        )));
    }
    Ok(Exit::Done)
}

async fn release(
    store: &Store,
    wanted: &AttemptRef,
    confirm: bool,
    settings: &Settings,
) -> CommandResult {
    let tree = record(store, wanted).await?;
    if tree.state != WorktreeState::Retained {
        return Err(CommandError::usage(anyhow!(
            "the work tree of attempt {} is {} already",
            tree.attempt_id,
            tree.state
        )));
    }
    let path = tree_of(store, &tree)?;
    if !confirm {
        return Err(CommandError::usage(anyhow!(
            "this removes {} for good: {}",
            path.display(),
            tree.reason
        ))
        .hint("look into it first; then say it again with --confirm"));
    }
    let released = if path.symlink_metadata().is_ok() {
        jig_engine::host::release_tree(&path)
            .await
            .map_err(CommandError::infrastructure)?;
        release_worktree(store, tree.attempt_id).await
    } else {
        let gone = format!("note: {} was gone already", path.display());
        output::note(&output::harmless(&gone));
        worktree_missing(store, tree.attempt_id).await
    }
    .map_err(CommandError::infrastructure)?;
    if settings.json {
        json_line(&released)?;
    } else {
        output::result_line(&output::harmless(&format!(
            "{} {}",
            released.state, released.path
        )));
    }
    Ok(Exit::Done)
}

/// The tree's path, derived and not believed: only the tree of an attempt of
/// this data directory is ever removed.
fn tree_of(store: &Store, tree: &WorktreeRecord) -> Result<std::path::PathBuf, CommandError> {
    let derived = AttemptDirs::at(attempt_dir(store.data_dir(), tree.attempt_id)).tree();
    if Path::new(&tree.path) == derived {
        return Ok(derived);
    }
    Err(CommandError::infrastructure(anyhow!(
        "the ledger says {}, but the work tree of attempt {} would be {}; nothing was removed",
        tree.path,
        tree.attempt_id,
        derived.display()
    )))
}
