//! The write transaction: one at a time, immediate, all or nothing.

use sqlx::{Sqlite, Transaction};

use super::error::{StoreError, failed};
use super::{Db, Store};

/// How often a transaction's start is tried; each try waits for SQLite's own
/// busy wait. SQLite hands the lock to anyone, so a queue may starve one.
const BEGIN_TRIES: u32 = 6;

/// A write transaction. Dropped without [`WriteTx::commit`] it leaves no trace.
#[derive(Debug)]
pub(crate) struct WriteTx {
    tx: Transaction<'static, Sqlite>,
}

impl Store {
    /// Begins the write transaction that is to `act`.
    pub(crate) async fn begin(&self, act: &'static str) -> Result<WriteTx, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let begun = self.writer.begin_with("BEGIN IMMEDIATE").await;
            match begun.map_err(failed(act)) {
                Ok(tx) => return Ok(WriteTx { tx }),
                Err(error) if error.is_busy() && tries < BEGIN_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl WriteTx {
    /// The connection, for the next statement.
    pub(crate) fn db(&mut self) -> &mut Db {
        #[cfg(test)]
        super::tests::faults::step();
        &mut self.tx
    }

    /// Makes it last: when this returns, a loss of power changes nothing.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        #[cfg(test)]
        super::tests::faults::step();
        self.tx.commit().await.map_err(failed("commit"))?;
        #[cfg(test)]
        super::tests::faults::step();
        Ok(())
    }
}
