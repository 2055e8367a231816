//! Opening the database of a data directory, made when it is missing.
//!
//! Several processes may do so at once: making, migrating and switching to the
//! write-ahead log happen under an exclusive file lock.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jig_protocol::time::Clock;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Connection as _, Row as _, SqlSafeStr as _};

use super::data_dir::{make_private_dir, network_file_system, open_private_file};
use super::error::{StoreError, failed};

/// How long SQLite itself waits for another process.
const BUSY_WAIT: Duration = Duration::from_secs(5);
/// How long one process waits for others to finish opening.
const OPEN_WAIT: Duration = Duration::from_secs(60);
const OPEN_POLL: Duration = Duration::from_millis(25);
const READERS: u32 = 4;

/// Every migration ever shipped; a shipped one is never edited.
const MIGRATIONS: &[(i64, &str, &str)] = &[(
    1,
    "initial",
    include_str!("../../migrations/0001_initial.sql"),
)];

/// How to open a store.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Open it on a network file system too. The write-ahead log shares memory
    /// between processes, so only one machine may use it then.
    pub allow_network_fs: bool,
}

/// Why a store could not be opened. Nothing was changed beyond making the
/// directory and an empty database.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A directory or file of the data directory cannot be used.
    #[error("cannot use {path}", path = path.display())]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Everyone on this machine may replace what lies in the data directory.
    #[error("{path} may be written by everyone; make it private (chmod 700)", path = path.display())]
    WorldWritable {
        /// The data directory.
        path: PathBuf,
    },
    /// The data directory lies on a file system of another machine.
    #[error(
        "{path} lies on {name}, where the database cannot be shared safely; \
         choose a local data directory", path = path.display()
    )]
    NetworkFileSystem {
        /// The data directory.
        path: PathBuf,
        /// The file system.
        name: &'static str,
    },
    /// Another process did not finish opening the database.
    #[error("another process has been opening {path} for {waited:?}", path = path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// A later version of jig has changed the database.
    #[error(
        "{path} was made by a newer jig (schema {found}, this one knows {known}); \
         use that version, or another data directory", path = path.display()
    )]
    NewerDatabase {
        /// The database.
        path: PathBuf,
        /// The highest migration applied.
        found: i64,
        /// The highest migration known.
        known: i64,
    },
    /// A migration does not fit the database, or is not the one that was applied.
    #[error("{path} does not have the schema it claims to have", path = path.display())]
    Migration {
        /// The database.
        path: PathBuf,
        /// What is wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database failed.
    #[error("cannot open {path}", path = path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// Why.
        source: StoreError,
    },
}

/// The open database of a data directory.
#[derive(Debug, Clone)]
pub struct Store {
    /// One connection: whoever writes has it alone.
    pub(super) writer: SqlitePool,
    pub(super) readers: SqlitePool,
    pub(super) clock: Arc<dyn Clock>,
    data_dir: PathBuf,
}

impl Store {
    /// Opens the store of `data_dir`, made when missing (directory 0700, files
    /// 0600), and brings it to this version's schema.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; an existing database was then not changed.
    pub async fn open(
        data_dir: &Path,
        clock: Arc<dyn Clock>,
        options: &OpenOptions,
    ) -> Result<Self, OpenError> {
        Self::open_with(data_dir, clock, options, MIGRATIONS).await
    }

    pub(super) async fn open_with(
        data_dir: &Path,
        clock: Arc<dyn Clock>,
        options: &OpenOptions,
        migrations: &'static [(i64, &'static str, &'static str)],
    ) -> Result<Self, OpenError> {
        let data_dir = prepare_directory(data_dir, options)?;
        let _opening = lock_for_opening(&data_dir.join("jig.db.lock"), &*clock).await?;
        let path = data_dir.join("jig.db");
        // Made here for its mode: the log files take over the database's.
        open_private_file(&path).map_err(|source| OpenError::Io {
            path: path.clone(),
            source,
        })?;
        let connect = SqliteConnectOptions::new()
            .filename(&path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_WAIT)
            .foreign_keys(true);
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            // SQLite ends a transaction by itself when the disk is full or fails;
            // sqlx then cannot roll back and the connection stays unusable.
            .before_acquire(|writer, _| Box::pin(async { Ok(!writer.is_in_transaction()) }))
            .connect_with(connect.clone())
            .await
            .map_err(|error| OpenError::Database {
                path: path.clone(),
                source: failed("open the database")(error),
            })?;
        if let Err(error) = migrate(&writer, &path, migrations).await {
            writer.close().await;
            return Err(error);
        }
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .connect_lazy_with(connect.pragma("query_only", "ON"));
        Ok(Self {
            writer,
            readers,
            clock,
            data_dir,
        })
    }

    /// The data directory, absolute.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The clock that the store was opened with.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Waits for what is in flight and closes every connection.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

fn prepare_directory(data_dir: &Path, options: &OpenOptions) -> Result<PathBuf, OpenError> {
    use std::os::unix::fs::MetadataExt as _;
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| OpenError::Io { path, source }
    };
    make_private_dir(data_dir).map_err(io(data_dir))?;
    let data_dir = data_dir.canonicalize().map_err(io(data_dir))?;
    let mode = data_dir.metadata().map_err(io(&data_dir))?.mode();
    if mode & 0o002 != 0 {
        return Err(OpenError::WorldWritable { path: data_dir });
    }
    let network = network_file_system(&data_dir).map_err(io(&data_dir))?;
    if let (Some(found), false) = (network, options.allow_network_fs) {
        return Err(OpenError::NetworkFileSystem {
            path: data_dir,
            name: found.0,
        });
    }
    for part in ["attempts", "runs"] {
        let part = data_dir.join(part);
        make_private_dir(&part).map_err(io(&part))?;
    }
    Ok(data_dir)
}

/// The lock is held for as long as the file lives.
async fn lock_for_opening(path: &Path, clock: &dyn Clock) -> Result<File, OpenError> {
    let io = |source| OpenError::Io {
        path: path.to_path_buf(),
        source,
    };
    let file = open_private_file(path).map_err(io)?;
    let deadline = clock.monotonic().saturating_add(OPEN_WAIT);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(io(error)),
            Err(TryLockError::WouldBlock) if clock.monotonic() >= deadline => {
                return Err(OpenError::Locked {
                    path: path.to_path_buf(),
                    waited: OPEN_WAIT,
                });
            }
            Err(TryLockError::WouldBlock) => {
                let next = clock.monotonic().saturating_add(OPEN_POLL);
                clock.sleep_until(next).await;
            }
        }
    }
}

async fn migrate(
    writer: &SqlitePool,
    path: &Path,
    migrations: &'static [(i64, &'static str, &'static str)],
) -> Result<(), OpenError> {
    let known = migrations.iter().map(|(version, ..)| *version).max();
    let known = known.unwrap_or_default();
    let found = applied_version(writer)
        .await
        .map_err(|source| OpenError::Database {
            path: path.to_path_buf(),
            source,
        })?;
    if found > known {
        return Err(OpenError::NewerDatabase {
            path: path.to_path_buf(),
            found,
            known,
        });
    }
    let migrations = migrations
        .iter()
        .map(|(version, name, sql)| {
            Migration::new(
                *version,
                (*name).into(),
                MigrationType::Simple,
                sql.into_sql_str(),
                false,
            )
        })
        .collect();
    Migrator::with_migrations(migrations)
        .run(writer)
        .await
        .map_err(|error| OpenError::Migration {
            path: path.to_path_buf(),
            source: error.into(),
        })
}

/// The highest migration that was applied; 0 for a new database.
async fn applied_version(writer: &SqlitePool) -> Result<i64, StoreError> {
    let act = "read the schema's version";
    let tables = sqlx::query(
        "SELECT COUNT(*) AS found FROM sqlite_master WHERE type = 'table' AND name = '_sqlx_migrations'",
    )
    .fetch_one(writer)
    .await
    .and_then(|row| row.try_get::<i64, _>("found"))
    .map_err(failed(act))?;
    if tables == 0 {
        return Ok(0);
    }
    sqlx::query("SELECT COALESCE(MAX(version), 0) AS highest FROM _sqlx_migrations")
        .fetch_one(writer)
        .await
        .and_then(|row| row.try_get("highest"))
        .map_err(failed(act))
}
