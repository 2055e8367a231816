//! The database: the only place with SQL.
//!
//! One file per table; a function is one statement, named after the question it
//! answers. Every write runs in a `WriteTx` that began IMMEDIATE on the one
//! writer connection; a guard stands in the WHERE clause and the caller learns
//! whether a row changed. A row that cannot be read aborts the whole operation.

pub(crate) mod attempts;
pub(crate) mod claim_requests;
mod data_dir;
mod decode;
pub(crate) mod definitions;
mod encode;
pub(crate) mod envelopes;
mod error;
pub(crate) mod events;
pub(crate) mod gate_results;
pub(crate) mod holders;
pub(crate) mod jobs;
pub(crate) mod leases;
mod open;
pub(crate) mod prune;
pub(crate) mod read;
pub(crate) mod runs;
#[cfg(test)]
mod tests;
pub(crate) mod worktrees;
mod write_tx;

pub use attempts::AttemptRecord;
pub(crate) use data_dir::open_private_file;
pub use data_dir::{NetworkFileSystem, attempt_dir, trace_path};
pub use definitions::DefinitionRecord;
pub(crate) use encode::encode;
pub use envelopes::EnvelopeRecord;
pub use error::StoreError;
pub use gate_results::GateRecord;
pub use jobs::JobRecord;
pub use open::{OpenError, OpenOptions, Store};
pub use read::AttemptLookup;
pub use runs::RunRecord;
pub use worktrees::{WorktreeRecord, WorktreeState};
pub(crate) use write_tx::WriteTx;

/// What statements run on.
pub(crate) type Db = sqlx::SqliteConnection;
