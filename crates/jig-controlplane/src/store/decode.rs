//! Reading rows: every value is checked, and the first that is wrong ends the
//! whole operation.

use std::error::Error;
use std::str::FromStr;

use jig_protocol::time::Timestamp;
use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::error::StoreError;

/// One row, with the name of its table for what there is to complain about.
pub(super) struct Columns<'r> {
    pub(super) table: &'static str,
    pub(super) row: &'r SqliteRow,
}

impl<'r> Columns<'r> {
    fn get<T>(&self, column: &'static str) -> Result<T, StoreError>
    where
        T: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
    {
        self.row
            .try_get(column)
            .map_err(|error| self.bad(column, error))
    }

    fn bad(
        &self,
        column: &'static str,
        error: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> StoreError {
        StoreError::Decode {
            table: self.table,
            column,
            source: error.into(),
        }
    }

    pub(super) fn text(&self, column: &'static str) -> Result<String, StoreError> {
        self.get(column)
    }

    pub(super) fn optional_text(&self, column: &'static str) -> Result<Option<String>, StoreError> {
        self.get(column)
    }

    pub(super) fn number<T: TryFrom<i64>>(&self, column: &'static str) -> Result<T, StoreError> {
        let value: i64 = self.get(column)?;
        T::try_from(value).map_err(|_| self.bad(column, format!("{value} is out of range")))
    }

    pub(super) fn flag(&self, column: &'static str) -> Result<bool, StoreError> {
        match self.get::<i64>(column)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.bad(column, format!("{other} is neither 0 nor 1"))),
        }
    }

    pub(super) fn moment(&self, column: &'static str) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::from_micros(self.get(column)?))
    }

    pub(super) fn optional_moment(
        &self,
        column: &'static str,
    ) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.get::<Option<i64>>(column)?.map(Timestamp::from_micros))
    }

    /// An id, a state, or anything else with one spelling.
    pub(super) fn word<T>(&self, column: &'static str) -> Result<T, StoreError>
    where
        T: FromStr,
        T::Err: Error + Send + Sync + 'static,
    {
        self.text(column)?
            .parse()
            .map_err(|error| self.bad(column, error))
    }

    pub(super) fn json<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, StoreError> {
        serde_json::from_str(&self.text(column)?).map_err(|error| self.bad(column, error))
    }

    pub(super) fn optional_json<T: DeserializeOwned>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, StoreError> {
        self.optional_text(column)?
            .map(|text| serde_json::from_str(&text).map_err(|error| self.bad(column, error)))
            .transpose()
    }
}

/// Reads all rows or none.
pub(super) fn all<T>(
    table: &'static str,
    rows: &[SqliteRow],
    read: impl Fn(&Columns<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    rows.iter()
        .map(|row| read(&Columns { table, row }))
        .collect()
}

/// Reads the row, where there is one.
pub(super) fn one<T>(
    table: &'static str,
    row: Option<&SqliteRow>,
    read: impl Fn(&Columns<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    row.map(|row| read(&Columns { table, row })).transpose()
}
