//! Reads: one statement each.

use std::sync::{Arc, Mutex};

use tokio_postgres::Row;

use super::LIMITS;
use super::call::{Arguments, Called, calls, retried};
use super::slice::StoredSlice;
use super::store::{PgInner, PgStore, number, unsigned, wallet_id};
use crate::domain::{
    Address, ChainId, Family, Height, KeyId, LearnedPrice, Minute, Position, Rows, SourceAccount,
    UnixMillis, UnixSeconds, Wallet, lock, opaque,
};
use crate::store::codec::{self, WalletState, corrupt};
use crate::store::key::{RowBounds, RowKey, time_of};
use crate::store::schema::names::{ACCOUNTS, ANCHORS, PENDING, STATES, WALLETS};
use crate::store::{
    Anchor, Credit, DeliveredRange, KeptCandle, Pending, Result, StoreError, TokenRecord, WalletId,
    WalletRecord, WantedPlace, WantedValue,
};

/// A state and rows behind a key, in one statement and so of one moment. To keep rows narrow, the
/// numbers of the state are in the key column, followed by the start of the wallet's oldest key.
const READ: &str = "
SELECT state, int8send(version) || int8send(epoch) || int8send(count) || int8send(removals)
           || boolsend(disordered) || coalesce(substring(
               (SELECT key FROM blotter.trade WHERE wallet = $1 ORDER BY key DESC LIMIT 1)
               FROM 1 FOR 8), ''),
       NULL::bytea
FROM blotter.wallet_state WHERE wallet = $1
UNION ALL
(SELECT NULL, key, value FROM blotter.trade
 WHERE wallet = $1 AND key > $2 AND key < $3 ORDER BY key LIMIT $4)";

pub(in crate::store) struct PgView {
    pub(super) inner: Arc<PgInner>,
    /// Position and limit of the rows that are read together with the record.
    ahead: Option<(Position, usize)>,
    seen: Mutex<Option<Seen>>,
}

/// What the view has read of a wallet.
struct Seen {
    id: WalletId,
    family: Family,
    removals: i64,
    oldest: Option<UnixSeconds>,
    ahead: Option<Ahead>,
}

/// Rows that were read together with the record.
struct Ahead {
    after: Position,
    limit: usize,
    rows: StoredSlice,
}

/// A wallet's state, how often rows were removed from it, and the time of its oldest row.
struct Head {
    state: WalletState,
    removals: i64,
    oldest: Option<UnixSeconds>,
}

impl Head {
    /// Parses the first two columns of [`READ`].
    fn parse(state: &[u8], numbers: &[u8]) -> Result<Self> {
        let short = || corrupt(STATES, "a short row");
        let number = |at: usize| {
            let bytes = numbers.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(i64::from_be_bytes).ok_or_else(short)
        };
        let mut state = codec::decode_state(STATES, state)?;
        state.epoch = unsigned(number(8)?);
        state.count = unsigned(number(16)?);
        state.disordered = *numbers.get(32).ok_or_else(short)? != 0;
        let oldest = numbers.get(33..).and_then(time_of);
        Ok(Self { state, removals: number(24)?, oldest })
    }
}

opaque!(PgView);

/// Rows for which a read allocates memory in advance.
const SLICE_ROOM_MAX: usize = 1_024;

fn limited(rows: usize) -> i64 {
    i64::try_from(rows.min(LIMITS.rows_per_statement)).unwrap_or(i64::MAX)
}

impl PgStore {
    /// With `ahead`, the view reads rows together with the record.
    pub(in crate::store) fn view(&self, ahead: Option<(Position, usize)>) -> PgView {
        PgView { inner: Arc::clone(&self.inner), ahead, seen: Mutex::default() }
    }
}

impl PgView {
    pub(in crate::store) async fn wallet(
        &self,
        wallet: &Wallet,
    ) -> Result<Option<Arc<WalletRecord>>> {
        retried!(self.inner.failures, self.try_wallet(wallet))
    }

    async fn try_wallet(&self, wallet: &Wallet) -> Called<Option<Arc<WalletRecord>>> {
        let Some(id) = self.inner.id_of(wallet).await? else { return Ok(None) };
        if let Some(record) = self.try_record(id, *wallet).await? {
            return Ok(Some(Arc::new(record)));
        }
        // The wallet was forgotten since its number was cached, and perhaps loaded again.
        self.inner.ids.take(wallet);
        let Some(id) = self.inner.id_of(wallet).await? else { return Ok(None) };
        Ok(self.try_record(id, *wallet).await?.map(Arc::new))
    }

    async fn try_record(&self, id: WalletId, wallet: Wallet) -> Called<Option<WalletRecord>> {
        let family = wallet.address.family();
        let (after, limit) = self.ahead.unwrap_or((Position::Start, 0));
        // One row more shows whether others follow.
        let most = self.ahead.map_or(0, |_| limit.saturating_add(1));
        let Some(read) = self.read(id, family, after, most).await? else { return Ok(None) };
        let (Head { state, removals, oldest }, rows) = read;
        let ahead = self.ahead.map(|_| Ahead { after, limit, rows });
        *lock(&self.seen) = Some(Seen { id, family, removals, oldest, ahead });
        Ok(Some(state.into_record(id, wallet)))
    }

    async fn read(
        &self,
        id: WalletId,
        family: Family,
        after: Position,
        most: usize,
    ) -> Called<Option<(Head, StoredSlice)>> {
        let connection = self.inner.connection().await?;
        let (start, end) = (RowKey::behind(id, after), RowKey::end(id));
        let args: &Arguments<'_> = &[&number(id), &start.bytes(), &end.bytes(), &limited(most)];
        let mut head = None;
        let mut rows = StoredSlice::with_room(most.min(SLICE_ROOM_MAX));
        let take = |row: &Row| {
            match row.try_get(0)? {
                Some(state) => head = Some(Head::parse(state, row.try_get(1)?)?),
                None => rows.push(row, (1, 2), family)?,
            }
            Ok(())
        };
        connection.each(READ, args, take).await?;
        connection.give_back();
        rows.sort();
        Ok(head.map(|head| (head, rows)))
    }

    pub(in crate::store) async fn wallet_by_id(
        &self,
        id: WalletId,
    ) -> Result<Option<WalletRecord>> {
        retried!(self.inner.failures, async {
            match self.inner.wallet_of(id).await? {
                Some(wallet) => self.try_record(id, wallet).await,
                None => Ok(None),
            }
        })
    }

    pub(in crate::store) async fn rows_into(
        &self,
        id: WalletId,
        (after, floor): (Position, Height),
        limit: usize,
        buffer: Rows,
    ) -> Result<(Rows, bool)> {
        drop(buffer);
        let mut rows = match self.take_ahead(id, after, limit) {
            Some(rows) => rows,
            None => self.read_behind(id, after, limit.saturating_add(1)).await?,
        };
        let more = rows.cut(floor, limit);
        Ok((self.named(rows).await?, more))
    }

    fn take_ahead(&self, id: WalletId, after: Position, limit: usize) -> Option<StoredSlice> {
        let mut seen = lock(&self.seen);
        let seen = seen.as_mut().filter(|seen| seen.id == id)?;
        let fits = |ahead: &Ahead| ahead.after == after && limit <= ahead.limit;
        seen.ahead.take_if(|ahead| fits(ahead)).map(|ahead| ahead.rows)
    }

    async fn read_behind(&self, id: WalletId, after: Position, most: usize) -> Result<StoredSlice> {
        let family = self.family(id).await?;
        let read = retried!(self.inner.failures, self.read(id, family, after, most))?;
        let (head, rows) = read.ok_or(StoreError::UnknownWallet(id))?;
        let is_overtaken = lock(&self.seen)
            .as_ref()
            .is_some_and(|seen| seen.id == id && seen.removals != head.removals);
        if is_overtaken { Err(StoreError::Overtaken) } else { Ok(rows) }
    }

    pub(super) async fn family(&self, id: WalletId) -> Result<Family> {
        let seen = lock(&self.seen).as_ref().filter(|seen| seen.id == id).map(|seen| seen.family);
        if let Some(family) = seen {
            return Ok(family);
        }
        let wallet = retried!(self.inner.failures, self.inner.wallet_of(id))?;
        Ok(wallet.ok_or(StoreError::UnknownWallet(id))?.address.family())
    }

    async fn named(&self, rows: StoredSlice) -> Result<Rows> {
        if rows.is_empty() {
            return Ok(Rows::default());
        }
        let names = retried!(self.inner.failures, self.inner.names_of(&rows))?;
        rows.named(names)
    }

    pub(in crate::store) async fn rows_in(
        &self,
        id: WalletId,
        (start, end): RowBounds,
        limit: usize,
        newest_first: bool,
    ) -> Result<Rows> {
        let family = self.family(id).await?;
        let direction = if newest_first { "ASC" } else { "DESC" };
        let sql = format!(
            "SELECT key, value FROM blotter.trade WHERE wallet = $1 AND key >= $2 AND key < $3
             ORDER BY key {direction} LIMIT $4"
        );
        let rows = retried!(self.inner.failures, async {
            let connection = self.inner.connection().await?;
            let args: &Arguments<'_> =
                &[&number(id), &start.bytes(), &end.bytes(), &limited(limit)];
            let mut rows = StoredSlice::default();
            connection.each(&sql, args, |row| rows.push(row, (0, 1), family)).await?;
            connection.give_back();
            Ok(rows)
        })?;
        self.named(rows).await
    }

    pub(in crate::store) async fn first_time(&self, id: WalletId) -> Result<Option<UnixSeconds>> {
        let seen = lock(&self.seen).as_ref().filter(|seen| seen.id == id).map(|seen| seen.oldest);
        if let Some(oldest) = seen {
            return Ok(oldest);
        }
        let rows = self.rows_in(id, (RowKey::start(id), RowKey::end(id)), 1, false).await?;
        Ok(rows.last_key().map(|key| key.time))
    }

    pub(in crate::store) async fn wanted_values(
        &self,
        chain: ChainId,
        behind: &WantedPlace,
        limit: usize,
    ) -> Result<Vec<WantedValue>> {
        let places = retried!(self.inner.failures, self.inner.wanted_places(chain, behind, limit))?;
        let mut all = Vec::new();
        for (mut wanted, bounds) in places {
            let rows = self.rows_in(wanted.id, bounds, usize::MAX, true).await?;
            wanted.trades = rows.into_iter().map(|row| row.trade).collect();
            all.push(wanted);
        }
        Ok(all)
    }

    pub(in crate::store) async fn usage(
        &self,
        key: KeyId,
        id: WalletId,
    ) -> Result<Vec<DeliveredRange>> {
        let family = self.family(id).await?;
        retried!(self.inner.failures, self.inner.usage_ranges(key, id, family))
    }

    pub(in crate::store) async fn credit(
        &self,
        key: KeyId,
        id: WalletId,
    ) -> Result<Option<Credit>> {
        let wallet = retried!(self.inner.failures, self.inner.wallet_of(id))?;
        let wallet = wallet.ok_or(StoreError::UnknownWallet(id))?;
        retried!(self.inner.failures, self.inner.credit(key, &wallet))
    }
}

calls! {
    PgView:
    count_above(id: WalletId, height: Height, limit: u64) -> u64;
    anchors(id: WalletId) -> Vec<Anchor>;
    pending_of(id: WalletId) -> Option<Pending>;
    pending() -> Vec<(WalletId, Wallet, Pending)>;
    accounts(id: WalletId) -> Vec<SourceAccount>;
    token(chain: ChainId, mint: &Address) -> Option<TokenRecord>;
    tokens_wanting_symbols(
        chain: ChainId, before: UnixMillis, limit: usize
    ) -> Vec<TokenRecord>;
    learned_prices(chain: ChainId, from: UnixSeconds, to: UnixSeconds) -> Vec<LearnedPrice>;
    candle(chain: ChainId, minute: Minute) -> KeptCandle;
    usage_total(key: KeyId) -> u64;
}

impl PgInner {
    async fn count_above(&self, id: WalletId, height: Height, limit: u64) -> Called<u64> {
        let sql = "SELECT count(*) FROM (
                SELECT 1 FROM blotter.trade WHERE wallet = $1 AND key < coalesce(
                    (SELECT key FROM blotter.trade
                     WHERE wallet = $1 AND substring(key FROM 9 FOR 8) >= $2
                     ORDER BY key LIMIT 1), $3)
                LIMIT $4) above";
        let (below, end) = (height_bytes(height), RowKey::end(id));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let row = self.row(sql, &[&number(id), &below.as_slice(), &end.bytes(), &limit]).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?.map_or(0, unsigned))
    }

    async fn column(&self, id: WalletId, name: &str) -> Called<Option<Vec<u8>>> {
        let sql = format!("SELECT {name} FROM blotter.wallet_state WHERE wallet = $1");
        let row = self.row(&sql, &[&number(id)]).await?;
        let bytes: Option<Option<Vec<u8>>> = row.map(|row| row.try_get(0)).transpose()?;
        Ok(bytes.flatten())
    }

    async fn anchors(&self, id: WalletId) -> Called<Vec<Anchor>> {
        let Some(bytes) = self.column(id, "anchors").await? else { return Ok(Vec::new()) };
        Ok(codec::decode_anchors(ANCHORS, &bytes)?)
    }

    async fn pending_of(&self, id: WalletId) -> Called<Option<Pending>> {
        let bytes = self.column(id, "pending").await?;
        Ok(bytes.map(|bytes| codec::decode_pending(PENDING, &bytes)).transpose()?)
    }

    async fn pending(&self) -> Called<Vec<(WalletId, Wallet, Pending)>> {
        let sql = "SELECT id, record, pending FROM blotter.wallet_state
                   JOIN blotter.wallet ON id = wallet WHERE pending IS NOT NULL ORDER BY id";
        let one = |row: &Row| {
            let wallet = codec::decode_wallet(WALLETS, row.try_get(1)?)?;
            let pending = codec::decode_pending(PENDING, row.try_get(2)?)?;
            Ok((wallet_id(row.try_get(0)?)?, wallet, pending))
        };
        self.rows(sql, &[]).await?.iter().map(one).collect()
    }

    async fn accounts(&self, id: WalletId) -> Called<Vec<SourceAccount>> {
        let sql = "SELECT account, value FROM blotter.account WHERE wallet = $1 ORDER BY account";
        let one = |row: &Row| {
            let account: &[u8] = row.try_get(0)?;
            let account = account.try_into();
            let account = account.map_err(|_| corrupt(ACCOUNTS, "an account of a wrong length"));
            Ok(codec::decode_account(ACCOUNTS, account?, row.try_get(1)?)?)
        };
        self.rows(sql, &[&number(id)]).await?.iter().map(one).collect()
    }
}

/// A height as in keys: higher ones sort first.
pub(super) fn height_bytes(height: Height) -> [u8; 8] {
    (!height).to_be_bytes()
}
