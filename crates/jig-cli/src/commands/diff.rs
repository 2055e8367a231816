//! `jig attempt diff`: what an attempt changed, as it was kept in its
//! checkpoints.
//!
//! An agent may have written the configuration of the attempt's repository, so
//! the diff is made from its objects alone.

use anyhow::anyhow;
use jig_controlplane::Store;
use jig_controlplane::store::{WorktreeState, attempt_dir};
use jig_engine::host::AttemptDirs;
use jig_git::evidence::diff_objects;
use jig_protocol::event::{Event, EventKind};
use jig_protocol::ids::AttemptId;
use serde::Serialize;
use serde_json::Value;

use super::attempt::all_events;
use crate::args::AttemptRef;
use crate::compose::Machine;
use crate::evidence::{find, json_line};
use crate::exit_code::CommandError;
use crate::output;
use crate::settings::Settings;

/// `jig attempt diff --json`.
#[derive(Debug, Serialize)]
struct Diffed {
    from: String,
    to: String,
    diff: String,
}

/// What is compared: two commits (or the empty tree), in hex.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Range {
    from: String,
    to: String,
}

pub(crate) async fn run(
    store: &Store,
    wanted: &AttemptRef,
    phase: Option<&str>,
    settings: &Settings,
) -> Result<(), CommandError> {
    let attempt = find(store, wanted).await?;
    let job = store
        .job(attempt.job_id)
        .await
        .map_err(CommandError::infrastructure)?
        .ok_or_else(|| {
            CommandError::infrastructure(anyhow!("job {} is not recorded", attempt.job_id))
        })?;
    let mut checkpoints = Vec::new();
    all_events(store, &attempt, |event| {
        checkpoints.extend(checkpoint(&event));
        Ok(())
    })
    .await?;
    let Some(range) = range(&job.base_sha, &checkpoints, phase) else {
        return Err(no_range(store, attempt.id, phase).await?);
    };
    let dirs = AttemptDirs::at(attempt_dir(store.data_dir(), attempt.id));
    let machine = Machine::find(settings)?;
    let objects = dirs.git().join("objects");
    let scratch = tempfile::tempdir().map_err(CommandError::infrastructure)?;
    let diff = diff_objects(
        &machine.git,
        &objects,
        scratch.path(),
        &range.from,
        &range.to,
    )
    .await
    .map_err(|error| {
        CommandError::infrastructure(error)
            .hint("the attempt's repository may have been pruned by jig gc")
    })?;
    let text = String::from_utf8_lossy(&diff).into_owned();
    if settings.json {
        json_line(&Diffed {
            from: range.from,
            to: range.to,
            diff: text,
        })
    } else {
        output::result(&output::harmless(&text));
        Ok(())
    }
}

/// Why there is nothing to compare, and where to look instead.
async fn no_range(
    store: &Store,
    attempt: AttemptId,
    phase: Option<&str>,
) -> Result<CommandError, CommandError> {
    let kept = store.worktree(attempt).await;
    let kept = kept
        .map_err(CommandError::infrastructure)?
        .filter(|tree| tree.state == WorktreeState::Retained);
    let error = match phase {
        Some(phase) => {
            anyhow!(
                "phase {phase:?} of attempt {attempt} left no checkpoint; only one that passed does"
            )
        }
        None => anyhow!("attempt {attempt} left no checkpoint: no phase passed"),
    };
    Ok(CommandError::usage(error).hint(match kept {
        Some(tree) => format!("its work tree was kept: {}", tree.path),
        None => "jig attempt show lists its phases and how they ended".to_owned(),
    }))
}

/// The phase and commit of a checkpoint event.
fn checkpoint(event: &Event) -> Option<(String, String)> {
    if event.kind != EventKind::Log || event.name.as_deref() != Some("checkpoint") {
        return None;
    }
    let payload = event.payload.as_ref()?;
    let text = |name: &str| payload.get(name).and_then(Value::as_str).map(str::to_owned);
    Some((text("phase")?, text("commit")?))
}

/// From the base to the last checkpoint, or from the checkpoint before a
/// phase's last one to that one.
fn range(base: &str, checkpoints: &[(String, String)], phase: Option<&str>) -> Option<Range> {
    let last = match phase {
        None => checkpoints.len().checked_sub(1)?,
        Some(phase) => checkpoints.iter().rposition(|(name, _)| name == phase)?,
    };
    let before = phase
        .and_then(|_| last.checked_sub(1))
        .and_then(|at| checkpoints.get(at));
    Some(Range {
        from: before.map_or(base, |(_, commit)| commit).to_owned(),
        to: checkpoints.get(last)?.1.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_compared_with_what_stood_before_it() {
        let points: Vec<(String, String)> =
            [("plan", "1"), ("build", "2"), ("test", "3"), ("build", "4")]
                .map(|(a, b)| (a.into(), b.into()))
                .into();
        let of = |phase| range("0", &points, phase).map(|range| (range.from, range.to));
        assert_eq!(of(None), Some(("0".into(), "4".into())));
        assert_eq!(of(Some("plan")), Some(("0".into(), "1".into())));
        assert_eq!(of(Some("build")), Some(("3".into(), "4".into())));
        assert_eq!(of(Some("nothing")), None);
        assert_eq!(range("0", &[], None), None);
    }
}
