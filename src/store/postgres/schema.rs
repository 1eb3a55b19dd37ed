//! The tables, made by numbered migrations under a lock.

use deadpool_postgres::Pool;

use super::call::{CallError, Connection};
use crate::store::StoreError;

/// What this program's tables are.
const VERSION: i32 = 1;

/// A migration, and the least version of a program that can use the tables after it: while a newer
/// program migrates, older ones that this allows go on.
struct Migration {
    compatible: i32,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[Migration { compatible: 1, sql: include_str!("schema_1.sql") }];

/// One process migrates at a time; the second one finds it done.
const PREPARE: &str = "
CREATE SCHEMA IF NOT EXISTS blotter;
CREATE TABLE IF NOT EXISTS blotter.schema_version (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    compatible integer NOT NULL
);
INSERT INTO blotter.schema_version VALUES (true, 0, 0) ON CONFLICT DO NOTHING;
";

/// Brings the schema up to date.
///
/// # Errors
/// `NewerFormat` for one that a newer program has made and not marked as compatible.
pub(super) async fn migrate(pool: &Pool) -> Result<(), CallError> {
    let connection = Connection::take(pool).await?;
    let exists = "SELECT to_regclass('blotter.schema_version') IS NOT NULL";
    let exists = connection.query_opt(exists, &[]).await?.is_some_and(|row| row.get(0));
    if !exists {
        prepare(&connection).await?;
    }
    connection.begin().await?;
    let sql = "SELECT version, compatible FROM blotter.schema_version FOR UPDATE";
    let row = connection.query_opt(sql, &[]).await?;
    let (found, compatible): (i32, i32) = row.map_or((0, 0), |row| (row.get(0), row.get(1)));
    check(found, compatible)?;
    let done = usize::try_from(found).unwrap_or_default();
    for (at, migration) in MIGRATIONS.iter().enumerate().skip(done) {
        connection.batch(migration.sql).await?;
        let version = i32::try_from(at + 1).unwrap_or(VERSION);
        let sql = "UPDATE blotter.schema_version SET version = $1, compatible = $2";
        connection.execute(sql, &[&version, &migration.compatible]).await?;
        tracing::info!(version, "the schema of the shared store was migrated");
    }
    connection.commit().await
}

/// Two processes that start on an empty database at once: one of them meets what the other makes.
async fn prepare(connection: &Connection) -> Result<(), CallError> {
    match connection.batch(PREPARE).await {
        Err(CallError::Database(error)) if error.code().is_some() => {
            connection.batch(PREPARE).await
        }
        prepared => prepared,
    }
}

fn check(found: i32, compatible: i32) -> Result<(), StoreError> {
    let number = |version: i32| u64::try_from(version).unwrap_or_default();
    if found > VERSION && compatible > VERSION {
        return Err(StoreError::NewerFormat { found: number(found), supported: number(VERSION) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_schema_is_refused_unless_it_is_marked_compatible() {
        assert!(check(VERSION, 1).is_ok() && check(0, 0).is_ok());
        assert!(check(VERSION + 1, VERSION).is_ok());
        let refused = check(VERSION + 1, VERSION + 1);
        assert!(matches!(refused, Err(StoreError::NewerFormat { .. })), "{refused:?}");
        assert_eq!(MIGRATIONS.len(), usize::try_from(VERSION).unwrap());
    }
}
