//! Creates the tables by numbered migrations, under a lock.

use super::call::{CallError, Called, Connection};
use super::connect::ConnectionPool;
use crate::store::{Result, StoreError};

/// The version of this program's tables.
const VERSION: i32 = 1;

/// A migration, and the lowest version of a program that can use the tables after it: older
/// programs from that version on keep running while a newer one migrates.
struct Migration {
    compatible: i32,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[Migration { compatible: 1, sql: include_str!("schema_1.sql") }];

/// One process migrates at a time; a second one then finds the migration done.
const PREPARE: &str = "
CREATE SCHEMA IF NOT EXISTS blotter;
CREATE TABLE IF NOT EXISTS blotter.schema_version (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    compatible integer NOT NULL
);
INSERT INTO blotter.schema_version VALUES (true, 0, 0) ON CONFLICT DO NOTHING;
";

/// Migrates the schema to this program's version.
///
/// # Errors
/// `NewerFormat` for a schema of a newer program that is not compatible with this one.
pub(super) async fn migrate(pool: &ConnectionPool) -> Called<()> {
    migrate_by(pool, MIGRATIONS).await
}

async fn migrate_by(pool: &ConnectionPool, migrations: &[Migration]) -> Called<()> {
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
    let supported = i32::try_from(migrations.len()).unwrap_or(VERSION);
    check((found, compatible), supported)?;
    let done = usize::try_from(found).unwrap_or_default();
    for (at, migration) in migrations.iter().enumerate().skip(done) {
        connection.batch(migration.sql).await?;
        let version = i32::try_from(at + 1).unwrap_or(VERSION);
        let sql = "UPDATE blotter.schema_version SET version = $1, compatible = $2";
        connection.execute(sql, &[&version, &migration.compatible]).await?;
        if found > 0 && migration.compatible > compatible {
            connection.batch(FENCE).await?;
        }
        tracing::info!(version, "the schema of the shared store was migrated");
    }
    connection.commit().await
}

/// Ends the leases of running older programs in the transaction of a migration that they cannot
/// use, so that their pending writes are stale. They stop at their next heartbeat.
const FENCE: &str = "
DELETE FROM blotter.node;
UPDATE blotter.wallet_state SET holder = NULL, epoch = epoch + 1, version = version + 1;
";

/// The error of this program on tables that only programs from version `compatible` on can use.
pub(super) fn refusal(compatible: i32) -> Option<StoreError> {
    check((compatible, compatible), VERSION).err()
}

/// Creates the version table. If two processes do so at once, one of them fails, and finds the
/// table on its second attempt.
async fn prepare(connection: &Connection) -> Called<()> {
    match connection.batch(PREPARE).await {
        Err(CallError::Database(error)) if error.code().is_some() => {
            connection.batch(PREPARE).await
        }
        prepared => prepared,
    }
}

fn check((found, compatible): (i32, i32), supported: i32) -> Result<()> {
    let number = |version: i32| u64::try_from(version).unwrap_or_default();
    if found > supported && compatible > supported {
        return Err(StoreError::NewerFormat { found: number(found), supported: number(supported) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use futures_util::future::{join3, select};
    use std::pin::pin;
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::domain::{Address, ChainId, UnixMillis, Wallet};
    use crate::store::postgres::store::PgStore;
    use crate::store::postgres::{LIMITS, SharedOptions, connect};
    use crate::store::{WalletId, WalletPatch, Written};

    const FIRST: Migration = Migration { compatible: 1, sql: include_str!("schema_1.sql") };
    /// Migrations of later programs that do not exist.
    const ADDS: Migration = Migration {
        compatible: 1,
        sql: "ALTER TABLE blotter.wallet_state ADD COLUMN newer text; SELECT pg_sleep(0.3)",
    };
    const BREAKS: Migration = Migration {
        compatible: 3,
        sql: "ALTER TABLE blotter.wallet_state RENAME COLUMN newer TO newest",
    };

    /// An empty database; `None` without a server.
    #[expect(clippy::print_stdout, reason = "what is skipped is counted")]
    async fn empty_database() -> Option<SharedOptions> {
        let Ok(server) = std::env::var("BLOTTER_TEST_POSTGRES") else {
            println!("SKIPPED: no PostgreSQL server is named by BLOTTER_TEST_POSTGRES");
            return None;
        };
        let name = format!("schema_{}", getrandom::u64().unwrap());
        let pool = connect::pool(&SharedOptions { url: server.clone(), connections: 2 }).unwrap();
        let connection = Connection::take(&pool).await.unwrap();
        connection.batch(&format!("CREATE DATABASE {name}")).await.unwrap();
        let (address, _) = server.rsplit_once('/').unwrap();
        Some(SharedOptions { url: format!("{address}/{name}"), connections: 4 })
    }

    /// A write that only the holder of a wallet may make.
    async fn write(store: &PgStore, id: WalletId, at: u64) -> Result<Written> {
        let patch = WalletPatch { checked_at: Some(UnixMillis(at)), ..WalletPatch::default() };
        store.update_wallet(id, 0, patch).await
    }

    async fn until(mut is_so: impl FnMut() -> bool) {
        let end = Instant::now() + LIMITS.lease;
        while !is_so() {
            assert!(Instant::now() < end, "it took longer than a lease");
            sleep(LIMITS.pause_min).await;
        }
    }

    /// Two newer programs start at once while an old one writes; then an incompatible one starts.
    async fn upgrade(options: &SharedOptions, old: &PgStore) {
        until(|| old.is_alive()).await;
        let wallet = Wallet { chain: ChainId(1), address: Address::Evm([1; 20]) };
        let id = old.intern(&wallet).await.unwrap().id;
        assert!(old.hold(id).await.unwrap());
        let writes = async {
            for at in 0..20 {
                let written = write(old, id, at).await;
                assert!(matches!(written, Ok(Written::Stored { .. })), "{at}: {written:?}");
            }
        };
        let pool = connect::pool(options).unwrap();
        let newer = [FIRST, ADDS];
        let (one, two, ()) =
            join3(migrate_by(&pool, &newer), migrate_by(&pool, &newer), writes).await;
        one.and(two).unwrap();
        let fresh = PgStore::connect(options).await.unwrap();
        assert!(fresh.view(None).wallet(&wallet).await.unwrap().is_some());
        migrate_by(&pool, &[FIRST, ADDS, BREAKS]).await.unwrap();
        let refused = write(old, id, 21).await;
        assert!(!matches!(refused, Ok(Written::Stored { .. })), "{refused:?}");
        let end = Instant::now() + LIMITS.lease;
        while !matches!(old.view(None).wallet(&wallet).await, Err(StoreError::NewerFormat { .. })) {
            assert!(Instant::now() < end, "it reads on");
            sleep(LIMITS.pause_min).await;
        }
        assert!(!old.is_alive());
        let started = PgStore::connect(options).await;
        assert!(matches!(started, Err(StoreError::NewerFormat { .. })), "{started:?}");
    }

    #[tokio::test]
    async fn a_running_program_goes_on_over_a_compatible_migration_and_stops_at_another() {
        let Some(options) = empty_database().await else { return };
        let old = PgStore::connect(&options).await.unwrap();
        let (lease, upgrade) = (pin!(old.keep_lease()), pin!(upgrade(&options, &old)));
        select(lease, upgrade).await;
    }

    #[test]
    fn a_newer_schema_is_refused_unless_it_is_marked_compatible() {
        assert!(check((VERSION, 1), VERSION).is_ok() && check((0, 0), VERSION).is_ok());
        assert!(check((VERSION + 1, VERSION), VERSION).is_ok());
        let refused = check((VERSION + 1, VERSION + 1), VERSION);
        assert!(matches!(refused, Err(StoreError::NewerFormat { .. })), "{refused:?}");
        assert_eq!(MIGRATIONS.len(), usize::try_from(VERSION).unwrap());
        assert!(refusal(VERSION).is_none() && refusal(VERSION + 1).is_some());
    }
}
