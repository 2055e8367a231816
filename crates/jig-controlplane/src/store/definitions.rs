//! `definitions`, `definition_generations`, `definition_texts`: a definition's
//! name, each generation of it, and every text by its digest.

use jig_protocol::time::Timestamp;
use serde::Serialize;

use super::Db;
use super::decode::{Columns, one};
use super::error::{StoreError, failed};

/// A definition at its newest generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DefinitionRecord {
    /// Its id.
    pub id: String,
    /// Its name, unique.
    pub name: String,
    /// Grows by one with every changed text, from 1.
    pub generation: u32,
    /// The BLAKE3 digest of the newest text, in hex.
    pub digest: String,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When its newest generation was.
    pub updated_at: Timestamp,
}

fn read(columns: &Columns<'_>) -> Result<DefinitionRecord, StoreError> {
    Ok(DefinitionRecord {
        id: columns.text("id")?,
        name: columns.text("name")?,
        generation: columns.number("generation")?,
        digest: columns.text("digest")?,
        created_at: columns.moment("created_at")?,
        updated_at: columns.moment("updated_at")?,
    })
}

pub(crate) async fn by_name(
    db: &mut Db,
    name: &str,
) -> Result<Option<DefinitionRecord>, StoreError> {
    let row = sqlx::query(
        "SELECT d.id, d.name, d.generation, g.digest, d.created_at, d.updated_at
         FROM definitions d
         JOIN definition_generations g
           ON g.definition_id = d.id AND g.generation = d.generation
         WHERE d.name = $1",
    )
    .bind(name)
    .fetch_optional(db)
    .await
    .map_err(failed("read a definition"))?;
    one("definitions", row.as_ref(), read)
}

pub(crate) async fn keep_text(db: &mut Db, digest: &str, source: &str) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO definition_texts (digest, source) VALUES ($1, $2)
         ON CONFLICT (digest) DO NOTHING",
    )
    .bind(digest)
    .bind(source)
    .execute(db)
    .await
    .map_err(failed("store a definition's text"))?;
    Ok(())
}

pub(crate) async fn text(db: &mut Db, digest: &str) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("SELECT source FROM definition_texts WHERE digest = $1")
        .bind(digest)
        .fetch_optional(db)
        .await
        .map_err(failed("read a definition's text"))?;
    one("definition_texts", row.as_ref(), |columns| {
        columns.text("source")
    })
}

pub(crate) async fn insert(
    db: &mut Db,
    id: &str,
    name: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO definitions (id, name, generation, created_at, updated_at)
         VALUES ($1, $2, 1, $3, $3)",
    )
    .bind(id)
    .bind(name)
    .bind(now.as_micros())
    .execute(db)
    .await
    .map_err(failed("store a definition"))?;
    Ok(())
}

/// Whether the definition was still at the generation before.
pub(crate) async fn advance(
    db: &mut Db,
    id: &str,
    from: u32,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let changed = sqlx::query(
        "UPDATE definitions SET generation = generation + 1, updated_at = $3
         WHERE id = $1 AND generation = $2",
    )
    .bind(id)
    .bind(i64::from(from))
    .bind(now.as_micros())
    .execute(db)
    .await
    .map_err(failed("advance a definition's generation"))?;
    Ok(changed.rows_affected() == 1)
}

pub(crate) async fn insert_generation(
    db: &mut Db,
    id: &str,
    generation: u32,
    digest: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO definition_generations (definition_id, generation, digest, created_at)
         VALUES ($1, $2, $3, $4)",
    )
    .bind(id)
    .bind(i64::from(generation))
    .bind(digest)
    .bind(now.as_micros())
    .execute(db)
    .await
    .map_err(failed("store a definition's generation"))?;
    Ok(())
}
