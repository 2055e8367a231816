//! The database: the only place with SQL.

/// The open database of a data directory.
#[derive(Debug)]
pub struct Store {}
