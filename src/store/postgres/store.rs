//! The shared store: its state in this process, and the records of wallets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_postgres::Row;

use super::call::{Arguments, Called, Connection, retried};
use super::connect::ConnectionPool;
use super::failures::Failures;
use super::lease::Lease;
use super::name_cache::NameCache;
use super::timeline::raise_numbers;
use super::{LIMITS, SharedOptions, connect, schema};
use crate::domain::{BoundedCache, Wallet};
use crate::store::codec::{self, WalletState, corrupt};
use crate::store::key::address_key;
use crate::store::schema::names::STATES;
use crate::store::{Result, StoreError, StoreStats, WalletId, WalletRecord};

#[derive(Debug, Clone)]
pub(in crate::store) struct PgStore {
    pub(super) inner: Arc<PgInner>,
}

#[derive(Debug)]
pub(super) struct PgInner {
    pub(super) pool: ConnectionPool,
    pub(super) names: NameCache,
    pub(super) lease: Lease,
    pub(super) ids: BoundedCache<Wallet, WalletId>,
    /// The wallet of each number, which never changes.
    pub(super) wallets: BoundedCache<WalletId, Wallet>,
    /// States of wallets that this process wrote last.
    pub(super) states: BoundedCache<WalletId, Stored>,
    pub(super) failures: Failures,
    timeline: tokio::sync::Mutex<Option<Arc<str>>>,
    closed: AtomicBool,
    /// Set by an incompatible migration of a newer program: the versions found and supported.
    outdated: OnceLock<(u64, u64)>,
}

/// The row of a wallet's state.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) version: i64,
    pub(super) state: WalletState,
}

/// Columns of a state, in the order in which [`stored`] reads them.
pub(super) const STATE_COLUMNS: &str = "version, epoch, count, disordered, state";

/// Reads a state. The columns override the fields that its bytes repeat.
pub(super) fn stored(row: &Row) -> Called<Stored> {
    let bytes: &[u8] = row.try_get(4)?;
    let mut state = codec::decode_state(STATES, bytes)?;
    state.epoch = unsigned(row.try_get(1)?);
    state.count = unsigned(row.try_get(2)?);
    state.disordered = row.try_get(3)?;
    Ok(Stored { version: row.try_get(0)?, state })
}

pub(super) fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}

pub(super) fn signed(number: u64) -> i64 {
    number.cast_signed()
}

pub(super) fn number(id: WalletId) -> i64 {
    i64::from(id.0)
}

pub(super) fn wallet_id(number: i64) -> Result<WalletId> {
    u32::try_from(number).map(WalletId).map_err(|_| StoreError::Invalid("more than 2^32 wallets"))
}

impl PgStore {
    pub(in crate::store) async fn connect(options: &SharedOptions) -> Result<Self> {
        let pool = connect::pool(options)?;
        let failures = Failures::new(pool.clone());
        retried!(failures, schema::migrate(&pool))?;
        let inner = Arc::new(PgInner {
            pool,
            names: NameCache::new(),
            lease: Lease::default(),
            ids: BoundedCache::new(LIMITS.wallets_known),
            wallets: BoundedCache::new(LIMITS.wallets_known),
            states: BoundedCache::new(LIMITS.states_known),
            failures,
            timeline: tokio::sync::Mutex::default(),
            closed: AtomicBool::new(false),
            outdated: OnceLock::new(),
        });
        Ok(Self { inner })
    }

    pub(in crate::store) async fn intern(&self, wallet: &Wallet) -> Result<WalletRecord> {
        let view = self.view(None);
        if let Some(record) = view.wallet(wallet).await? {
            return Ok(WalletRecord::clone(&record));
        }
        retried!(self.inner.failures, self.inner.create(wallet))?;
        let found = view.wallet(wallet).await?;
        found.map(|record| WalletRecord::clone(&record)).ok_or(StoreError::Overtaken)
    }

    pub(in crate::store) async fn close(&self) {
        self.inner.closed.store(true, Ordering::Release);
        self.release_all().await;
        self.inner.pool.close();
    }

    pub(in crate::store) fn is_alive(&self) -> bool {
        self.inner.lease.node().is_some()
    }

    /// Sizes as estimated by the database: counting would read all rows.
    pub(in crate::store) async fn stats(&self) -> Result<StoreStats> {
        let stats = super::call::in_time(self.inner.stats()).await;
        stats.map_err(|error| {
            self.inner.failures.failed(&error);
            error.into_store()
        })
    }
}

impl PgInner {
    pub(super) async fn connection(&self) -> Called<Connection> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed.into());
        }
        if let Some(&(found, supported)) = self.outdated.get() {
            return Err(StoreError::NewerFormat { found, supported }.into());
        }
        let connection = Connection::take(&self.pool).await?;
        self.keep_to_timeline(&connection).await?;
        Ok(connection)
    }

    /// The rows of a single statement.
    pub(super) async fn rows(&self, sql: &str, args: &Arguments<'_>) -> Called<Vec<Row>> {
        let connection = self.connection().await?;
        let rows = connection.query(sql, args).await?;
        connection.give_back();
        Ok(rows)
    }

    pub(super) async fn row(&self, sql: &str, args: &Arguments<'_>) -> Called<Option<Row>> {
        Ok(self.rows(sql, args).await?.into_iter().next())
    }

    /// The number of rows that a single statement changed.
    pub(super) async fn execute(&self, sql: &str, args: &Arguments<'_>) -> Called<u64> {
        let connection = self.connection().await?;
        let changed = connection.execute(sql, args).await?;
        connection.give_back();
        Ok(changed)
    }

    /// Clears the caches if the connection is of another timeline. Other calls wait meanwhile.
    async fn keep_to_timeline(&self, connection: &Connection) -> Called<()> {
        let timeline = connection.timeline()?;
        let mut known = self.timeline.lock().await;
        if timeline.is_none() || *known == timeline {
            return Ok(());
        }
        // Boxed, so that the future of every call does not contain it.
        Box::pin(self.change_timeline(connection, &mut known)).await
    }

    async fn change_timeline(
        &self,
        connection: &Connection,
        known: &mut Option<Arc<str>>,
    ) -> Called<()> {
        // Behind a pooler a connection may have moved to another server since it was made.
        let timeline = connection.ask_timeline().await?;
        let Some(now) = timeline.as_deref().filter(|_| *known != timeline) else { return Ok(()) };
        raise_numbers(connection, now, known.is_some()).await?;
        if known.is_some() {
            tracing::warn!("the shared store has another timeline: commits may be lost");
            self.names.clear();
            self.ids.clear();
            self.wallets.clear();
            self.states.clear();
            // The state of its wallets in memory may include lost commits too.
            self.lease.lose();
        }
        *known = timeline;
        Ok(())
    }

    /// Makes every later call fail with this error.
    pub(super) fn outdate(&self, error: &StoreError) {
        if let StoreError::NewerFormat { found, supported } = *error
            && self.outdated.set((found, supported)).is_ok()
        {
            tracing::error!(%error, "a newer program has changed the shared store; this one stops");
        }
    }

    async fn create(&self, wallet: &Wallet) -> Called<()> {
        let (key, record) =
            (address_key(wallet.chain, &wallet.address), codec::encode_wallet(wallet)?);
        let state = codec::encode_state(&WalletState::default())?;
        let sql = "WITH new AS (INSERT INTO blotter.wallet (address, record) VALUES ($1, $2)
                       ON CONFLICT DO NOTHING RETURNING id)
                   INSERT INTO blotter.wallet_state (wallet, state) SELECT id, $3 FROM new";
        self.execute(sql, &[&key, &record, &state]).await?;
        Ok(())
    }

    pub(super) async fn id_of(&self, wallet: &Wallet) -> Called<Option<WalletId>> {
        if let Some(id) = self.ids.get(wallet) {
            return Ok(Some(id));
        }
        let key = address_key(wallet.chain, &wallet.address);
        let sql = "SELECT id FROM blotter.wallet WHERE address = $1";
        let Some(row) = self.row(sql, &[&key]).await? else { return Ok(None) };
        let id = wallet_id(row.try_get(0)?)?;
        self.ids.put(*wallet, id);
        self.wallets.put(id, *wallet);
        Ok(Some(id))
    }

    pub(super) async fn wallet_of(&self, id: WalletId) -> Called<Option<Wallet>> {
        if let Some(wallet) = self.wallets.get(&id) {
            return Ok(Some(wallet));
        }
        let sql = "SELECT record FROM blotter.wallet WHERE id = $1";
        let Some(row) = self.row(sql, &[&number(id)]).await? else { return Ok(None) };
        let wallet = codec::decode_wallet("wallet", row.try_get(0)?)?;
        self.wallets.put(id, wallet);
        Ok(Some(wallet))
    }

    async fn stats(&self) -> Called<StoreStats> {
        let sql = "SELECT relname::text, greatest(reltuples, 0)::bigint,
                       pg_total_relation_size(c.oid)::bigint
                   FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
                   WHERE nspname = 'blotter' AND relkind = 'r'";
        let mut stats = StoreStats { file_bytes: 0, rows: 0, wallets: 0, tokens: 0 };
        for row in self.rows(sql, &[]).await? {
            let (name, count): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
            let size: i64 = row.try_get(2)?;
            stats.file_bytes = stats.file_bytes.saturating_add(unsigned(size));
            match name {
                "trade" => stats.rows = unsigned(count),
                "wallet" => stats.wallets = unsigned(count),
                "token" => stats.tokens = unsigned(count),
                _ => {}
            }
        }
        Ok(stats)
    }
}

/// A number of a token or venue.
pub(super) fn small(number: i64, table: &'static str) -> Result<u32> {
    u32::try_from(number).map_err(|_| corrupt(table, "a number out of range"))
}
