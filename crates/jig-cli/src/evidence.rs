//! Reading what the store holds, for the commands that only look.

use std::sync::Arc;

use anyhow::anyhow;
use jig_controlplane::Store;
use jig_controlplane::store::{AttemptLookup, AttemptRecord, OpenError, OpenOptions, StoreError};
use serde::Serialize;

use crate::args::AttemptRef;
use crate::exit_code::CommandError;
use crate::output;
use crate::settings::Settings;

/// The store of a data directory, where there is one; looking makes nothing.
pub(crate) async fn open_if_any(settings: &Settings) -> Result<Option<Store>, CommandError> {
    if settings.data_dir()?.join("jig.db").exists() {
        open(settings).await.map(Some)
    } else {
        Ok(None)
    }
}

/// Opens the store of an existing data directory; looking makes nothing.
pub(crate) async fn open(settings: &Settings) -> Result<Store, CommandError> {
    let data = settings.data_dir()?;
    if !data.join("jig.db").exists() {
        return Err(CommandError::usage(anyhow!("{} holds no runs yet", data.display()))
            .hint("run something first (jig demo needs nothing), or name the right directory with --data"));
    }
    Store::open(
        &data,
        Arc::new(jig_process::SystemClock::new()),
        &OpenOptions::default(),
    )
    .await
    .map_err(cannot_open)
}

fn cannot_open(error: OpenError) -> CommandError {
    let damaged = matches!(
        error,
        OpenError::Database {
            source: StoreError::Damaged { .. },
            ..
        }
    );
    let error = CommandError::infrastructure(error);
    if damaged {
        return error.hint(
            "move jig.db, jig.db-wal and jig.db-shm away and jig makes new ones; \
             every attempt's trace.jsonl stays readable",
        );
    }
    error
}

/// The attempt a command line names.
pub(crate) async fn find(
    store: &Store,
    wanted: &AttemptRef,
) -> Result<AttemptRecord, CommandError> {
    let text = &wanted.attempt;
    match store
        .find_attempt(text)
        .await
        .map_err(CommandError::infrastructure)?
    {
        AttemptLookup::Found(attempt) => Ok(*attempt),
        AttemptLookup::Unknown if text == "latest" => {
            Err(CommandError::usage(anyhow!("there is no attempt yet")))
        }
        AttemptLookup::Unknown => Err(CommandError::usage(anyhow!(
            "no attempt is called {text:?}"
        ))
        .hint("name it by its id, by the first 8 or more characters of one, or as `latest`")),
        AttemptLookup::Ambiguous => Err(CommandError::usage(anyhow!(
            "more than one attempt starts with {text:?}"
        ))
        .hint("give more characters")),
    }
}

/// Prints a value as one line of JSON.
pub(crate) fn json_line<T: Serialize>(value: &T) -> Result<(), CommandError> {
    let text = serde_json::to_string(value).map_err(CommandError::infrastructure)?;
    output::result_line(&text);
    Ok(())
}
