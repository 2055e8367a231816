//! How the database can fail, told apart by what a person can do about it.

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A statement that did not succeed; nothing of its transaction was kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process held the database longer than the wait allows.
    #[error("could not {act}: the database stayed busy")]
    Busy {
        /// What was tried.
        act: &'static str,
        /// SQLite's words.
        source: Cause,
    },
    /// No room on the disk.
    #[error("could not {act}: the disk is full")]
    Full {
        /// What was tried.
        act: &'static str,
        /// SQLite's words.
        source: Cause,
    },
    /// The file or its directory may not be written.
    #[error("could not {act}: the database may not be written")]
    ReadOnly {
        /// What was tried.
        act: &'static str,
        /// SQLite's words.
        source: Cause,
    },
    /// The file is no database, or damaged.
    #[error("could not {act}: the database file is damaged")]
    Damaged {
        /// What was tried.
        act: &'static str,
        /// SQLite's words.
        source: Cause,
    },
    /// A key, a reference or a check of the schema does not allow the row.
    #[error("could not {act}: the schema does not allow it")]
    Constraint {
        /// What was tried.
        act: &'static str,
        /// SQLite's words.
        source: Cause,
    },
    /// A stored value cannot be read; nothing was concluded from the rest.
    #[error("the stored {table}.{column} cannot be read")]
    Decode {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        source: Cause,
    },
    /// A row that a row refers to is not there.
    #[error("the stored {table} row {key} is missing")]
    Missing {
        /// The table.
        table: &'static str,
        /// What was looked up.
        key: String,
    },
    /// Anything else.
    #[error("could not {act}")]
    Other {
        /// What was tried.
        act: &'static str,
        /// SQLite's words.
        source: Cause,
    },
}

impl StoreError {
    /// Whether trying the whole transaction again later may succeed.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }

    /// Whether the schema itself refused a row.
    #[must_use]
    pub const fn is_constraint(&self) -> bool {
        matches!(self, Self::Constraint { .. })
    }
}

/// Turns SQLite's answer into ours. The low byte of its extended code is the
/// primary one.
pub(super) fn failed(act: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| {
        let code = error
            .as_database_error()
            .and_then(|database| database.code())
            .and_then(|code| code.parse::<i32>().ok())
            .map(|code| code & 0xff);
        let source: Cause = Box::new(error);
        match code {
            Some(5 | 6) => StoreError::Busy { act, source },
            Some(8 | 14) => StoreError::ReadOnly { act, source },
            Some(11 | 26) => StoreError::Damaged { act, source },
            Some(13) => StoreError::Full { act, source },
            Some(19) => StoreError::Constraint { act, source },
            _ => StoreError::Other { act, source },
        }
    }
}
