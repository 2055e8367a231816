//! What may be asked of a store by whoever shows it.

use jig_protocol::event::Event;
use jig_protocol::ids::{AttemptId, JobId, RunId};
use sqlx::pool::PoolConnection;
use sqlx::{Sqlite, SqlitePool};

use super::error::{StoreError, failed};
use super::{
    AttemptRecord, Db, EnvelopeRecord, GateRecord, JobRecord, RunRecord, Store, WorktreeRecord,
    attempts, definitions, envelopes, events, gate_results, jobs, runs, worktrees,
};

/// A connection for reading.
#[derive(Debug)]
pub(crate) struct Reader(PoolConnection<Sqlite>);

impl Reader {
    pub(crate) fn db(&mut self) -> &mut Db {
        &mut self.0
    }
}

async fn acquire(readers: &SqlitePool) -> Result<Reader, StoreError> {
    let connection = readers.acquire().await;
    Ok(Reader(connection.map_err(failed("read the database"))?))
}

/// What a text stands for when it should name an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptLookup {
    /// Exactly one attempt.
    Found(Box<AttemptRecord>),
    /// No attempt.
    Unknown,
    /// The start of several attempts' ids.
    Ambiguous,
}

/// Reads; each function fails with [`StoreError`] rather than answer in part.
#[expect(clippy::missing_errors_doc, reason = "said once, above")]
impl Store {
    pub(crate) async fn reader(&self) -> Result<Reader, StoreError> {
        acquire(&self.readers).await
    }

    /// The attempt that `text` names: `latest`, a whole id, or the start of one
    /// (8 characters or more).
    pub async fn find_attempt(&self, text: &str) -> Result<AttemptLookup, StoreError> {
        let mut reader = self.reader().await?;
        let is_prefix = text.len() >= 8
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'));
        let mut found = if text == "latest" {
            attempts::newest(reader.db(), 1).await?
        } else if is_prefix {
            attempts::by_prefix(reader.db(), text).await?
        } else {
            Vec::new()
        };
        Ok(match (found.pop(), found.is_empty()) {
            (None, _) => AttemptLookup::Unknown,
            (Some(attempt), true) => AttemptLookup::Found(Box::new(attempt)),
            (Some(_), false) => AttemptLookup::Ambiguous,
        })
    }

    /// An attempt.
    pub async fn attempt(&self, id: AttemptId) -> Result<Option<AttemptRecord>, StoreError> {
        attempts::by_id(self.reader().await?.db(), id).await
    }

    /// The newest attempts, newest first.
    pub async fn newest_attempts(&self, limit: u32) -> Result<Vec<AttemptRecord>, StoreError> {
        attempts::newest(self.reader().await?.db(), limit).await
    }

    /// A job.
    pub async fn job(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        jobs::by_id(self.reader().await?.db(), id).await
    }

    /// A job's attempts, oldest first.
    pub async fn attempts_of(&self, job: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
        attempts::of_job(self.reader().await?.db(), job).await
    }

    /// A run.
    pub async fn run(&self, id: RunId) -> Result<Option<RunRecord>, StoreError> {
        runs::by_id(self.reader().await?.db(), id).await
    }

    /// A run's jobs, in the order they were admitted.
    pub async fn jobs_of(&self, run: RunId) -> Result<Vec<JobRecord>, StoreError> {
        jobs::of_run(self.reader().await?.db(), run).await
    }

    /// The definition's text with that digest, as a run froze it.
    pub async fn definition_text(&self, digest: &str) -> Result<Option<String>, StoreError> {
        definitions::text(self.reader().await?.db(), digest).await
    }

    /// Up to `limit` events of an attempt with a seq above `after`, ascending.
    pub async fn events(
        &self,
        attempt: AttemptId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, StoreError> {
        events::after(self.reader().await?.db(), attempt, after, limit).await
    }

    /// Every check of every gate's round of an attempt, in order.
    pub async fn gates(&self, attempt: AttemptId) -> Result<Vec<GateRecord>, StoreError> {
        gate_results::of_attempt(self.reader().await?.db(), attempt).await
    }

    /// Every answer of an attempt, in order.
    pub async fn envelopes(&self, attempt: AttemptId) -> Result<Vec<EnvelopeRecord>, StoreError> {
        envelopes::of_attempt(self.reader().await?.db(), attempt).await
    }

    /// The work trees that are kept, oldest first.
    pub async fn retained_worktrees(&self) -> Result<Vec<WorktreeRecord>, StoreError> {
        worktrees::retained(self.reader().await?.db()).await
    }

    /// What the ledger says of an attempt's work tree.
    pub async fn worktree(&self, attempt: AttemptId) -> Result<Option<WorktreeRecord>, StoreError> {
        worktrees::by_attempt(self.reader().await?.db(), attempt).await
    }
}
