//! Writes of one wallet, under a lock of its state.
//!
//! Filling a gap, the usual write, is one statement; other writes are transactions.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use tokio_postgres::Row;

use super::call::{Arguments, Called, Connection, calls, retried};
use super::names;
use super::store::{PgInner, PgStore, STATE_COLUMNS, Stored, number, signed, stored};
use super::view::height_bytes;
use crate::domain::{ChainId, Height, Trade, ValueSource, Wallet};
use crate::store::apply::{cover, in_order, is_current};
use crate::store::codec::{self, WalletState};
use crate::store::key::{RowKey, height_of, read_row_key, wanted_value_key};
use crate::store::rows::heights_descend;
use crate::store::schema::names::{ANCHORS, TOKENS, TRADES};
use crate::store::trade_codec::{StoredTrade, decode_trade, encode_trade, is_derived_or_pending};
use crate::store::values::{self, DeletedRow, SecondRead};
use crate::store::{Chunk, Result, StoreError, TokenRecord, WalletId, WalletPatch, Written};

type Keyed = Vec<(RowKey, StoredTrade)>;

/// Rows as arguments of statements.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) values: Vec<Vec<u8>>,
}

impl Columns {
    pub(super) fn of(rows: &[(RowKey, StoredTrade)]) -> Self {
        let mut columns = Self::default();
        for (key, trade) in rows {
            let mut value = Vec::new();
            encode_trade(trade, &mut value);
            columns.keys.push(key.bytes().to_vec());
            columns.values.push(value);
        }
        columns
    }
}

/// Writes a state that was read at version $2.
const PUT_STATE: &str = "
UPDATE blotter.wallet_state SET version = version + 1, epoch = $3, count = $4, state = $5,
    disordered = $6, removals = removals + $7, anchors = coalesce($8, anchors)
WHERE wallet = $1 AND version = $2";

/// Fills a gap: adds rows and changes the state if it still has the expected version. The
/// neighbours of the rows show whether heights still descend along the keys.
const FILL: &str = "
WITH changed AS (
    UPDATE blotter.wallet_state SET version = version + 1, count = $5, state = $6,
        anchors = coalesce($7, anchors),
        disordered = disordered OR $8 OR EXISTS (
            SELECT 1 FROM (SELECT key FROM blotter.trade WHERE wallet = $1 AND key < $9
                           ORDER BY key DESC LIMIT 1) newer
            WHERE substring(key FROM 9 FOR 8) >= substring($9 FROM 9 FOR 8)
        ) OR EXISTS (
            SELECT 1 FROM (SELECT key FROM blotter.trade WHERE wallet = $1 AND key >= $9
                           ORDER BY key LIMIT 1) older
            WHERE key <= $10 OR substring(key FROM 9 FOR 8) <= substring($10 FROM 9 FOR 8)
        )
    WHERE wallet = $1 AND version = $2 AND epoch = $3 AND (holder IS NULL OR holder = $4)
    RETURNING disordered
), added AS (
    INSERT INTO blotter.trade (wallet, key, value)
    SELECT $1, k, v FROM unnest($11::bytea[], $12::bytea[]) AS new(k, v)
    WHERE EXISTS (SELECT 1 FROM changed)
)
SELECT disordered FROM changed";

impl PgStore {
    pub(in crate::store) async fn write_tokens(&self, tokens: Vec<TokenRecord>) -> Result<()> {
        retried!(self.inner.failures, async {
            let connection = self.inner.connection().await?;
            self.inner.learn(&connection, &tokens).await?;
            connection.give_back();
            Ok(())
        })
    }
}

calls! {
    PgStore:
    write_chunk(chunk: Chunk) -> Written = chunk(&chunk);
    update_wallet(id: WalletId, epoch: u64, patch: WalletPatch) -> Written =
        patch(id, epoch, &patch);
    cut_back(id: WalletId, above: Height) -> u64 = cut_back(id, above);
}

/// A chunk with encoded rows.
struct Prepared<'a> {
    chunk: &'a Chunk,
    wallet: Wallet,
    trades: Vec<&'a Trade>,
    rows: Keyed,
    anchors: Option<Vec<u8>>,
}

impl PgInner {
    async fn chunk(&self, chunk: &Chunk) -> Called<Written> {
        let wallet = self.wallet_of(chunk.id).await?.ok_or(StoreError::UnknownWallet(chunk.id))?;
        let trades = in_order(chunk, &wallet)?;
        let connection = self.connection().await?;
        if self.is_stale(&connection, chunk).await? {
            connection.give_back();
            return Ok(Written::Stale);
        }
        let rows = self.numbered(&connection, chunk, &wallet, &trades).await?;
        let anchors = chunk.anchors.as_deref().map(codec::encode_anchors).transpose()?;
        let prepared = Prepared { chunk, wallet, trades, rows, anchors };
        if let Some(known) = self.states.take(&chunk.id)
            && prepared.is_fill(&known.state)
            && let Some(written) = self.fill(&connection, &prepared, known).await?
        {
            connection.give_back();
            return Ok(written);
        }
        self.replace(connection, &prepared).await
    }

    /// Whether a chunk is of another epoch: checked before any of it is stored, and by the write.
    async fn is_stale(&self, connection: &Connection, chunk: &Chunk) -> Called<bool> {
        if self.states.get(&chunk.id).is_some_and(|known| known.state.epoch == chunk.epoch) {
            return Ok(false);
        }
        let sql = "SELECT epoch FROM blotter.wallet_state WHERE wallet = $1";
        let row = connection.query_opt(sql, &[&number(chunk.id)]).await?;
        let epoch: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
        Ok(epoch.is_some_and(|epoch| epoch != signed(chunk.epoch)))
    }

    /// The rows of a chunk, with numbers in place of names.
    async fn numbered(
        &self,
        connection: &Connection,
        chunk: &Chunk,
        wallet: &Wallet,
        trades: &[&Trade],
    ) -> Called<Keyed> {
        let venues: BTreeSet<&Arc<str>> = trades.iter().map(|trade| &trade.venue).collect();
        self.intern_venues(connection, &venues).await?;
        let named: BTreeSet<_> = trades.iter().map(|trade| trade.mint).collect();
        let bare = named.into_iter().map(|mint| TokenRecord::bare(wallet.chain, mint));
        let tokens: Vec<TokenRecord> = chunk.tokens.iter().cloned().chain(bare).collect();
        self.learn(connection, &tokens).await?;
        let row = |trade: &&Trade| {
            let numbers = self.names.numbers(wallet.chain, trade.mint, &trade.venue);
            let none = || codec::corrupt(TOKENS, "a token or a venue has no number");
            let (token, venue) = numbers.ok_or_else(none)?;
            Ok((RowKey::new(chunk.id, &trade.key), StoredTrade::of(trade, token, venue)))
        };
        trades.iter().map(row).collect::<Called<_>>()
    }

    /// Fills a gap by one statement; `None` if the state is no longer the cached one.
    async fn fill(
        &self,
        connection: &Connection,
        prepared: &Prepared<'_>,
        Stored { version, mut state }: Stored,
    ) -> Called<Option<Written>> {
        let Prepared { chunk, rows, anchors, .. } = prepared;
        state.count += u64::try_from(rows.len()).unwrap_or(u64::MAX);
        cover(prepared.chunk, &mut state);
        let Columns { keys, values } = Columns::of(rows);
        let args: &Arguments<'_> = &[
            &number(chunk.id),
            &version,
            &signed(chunk.epoch),
            &self.lease.node(),
            &signed(state.count),
            &codec::encode_state(&state)?,
            anchors,
            &!heights_descend(rows),
            // NULL without rows: then no stored row is newer or older.
            &keys.first(),
            &keys.last(),
            &keys,
            &values,
        ];
        let changed = connection.query_opt(FILL, args).await?;
        let Some(row) = changed else { return Ok(None) };
        state.disordered = row.try_get(0)?;
        let written = Written::Stored { count: state.count, coverage: state.coverage.clone() };
        self.states.put(chunk.id, Stored { version: version + 1, state });
        Ok(Some(written))
    }

    /// Locks and reads the state of a wallet. `None` for another epoch, or where another process
    /// holds the wallet, unless the write is allowed `by_any` process.
    pub(super) async fn lock(
        &self,
        connection: &Connection,
        id: WalletId,
        epoch: Option<u64>,
        by_any: bool,
    ) -> Called<Option<Stored>> {
        let sql = format!(
            "SELECT {STATE_COLUMNS}, holder FROM blotter.wallet_state WHERE wallet = $1 FOR UPDATE"
        );
        let row = connection.query_opt(&sql, &[&number(id)]).await?;
        let row: Row = row.ok_or(StoreError::UnknownWallet(id))?;
        let found = stored(&row)?;
        let holder: Option<i64> = row.try_get(5)?;
        let is_others = !by_any && holder.is_some_and(|holder| Some(holder) != self.lease.node());
        let is_stale = is_others || epoch.is_some_and(|epoch| epoch != found.state.epoch);
        Ok((!is_stale).then_some(found))
    }

    pub(super) async fn put_state(
        &self,
        connection: &Connection,
        id: WalletId,
        Stored { version, state }: &Stored,
        (removed, anchors): (bool, &Option<Vec<u8>>),
    ) -> Called<()> {
        let bytes = codec::encode_state(state)?;
        let args: &Arguments<'_> = &[
            &number(id),
            version,
            &signed(state.epoch),
            &signed(state.count),
            &bytes,
            &state.disordered,
            &i64::from(removed),
            anchors,
        ];
        connection.execute(PUT_STATE, args).await?;
        Ok(())
    }

    /// Replaces what is stored between the heights of a chunk.
    async fn replace(&self, connection: Connection, prepared: &Prepared<'_>) -> Called<Written> {
        let Prepared { chunk, wallet, .. } = prepared;
        let (id, chain) = (chunk.id, wallet.chain);
        connection.begin().await?;
        let found = self.lock(&connection, id, Some(chunk.epoch), false).await?;
        let Some(mut found) = found.filter(|found| is_current(chunk, &found.state)) else {
            connection.roll_back().await?;
            return Ok(Written::Stale);
        };
        let (gone, mut unseen) =
            self.clear(&connection, (id, wallet), &mut found.state, prepared).await?;
        let mut rows = prepared.rows.clone();
        values::keep(&gone, &mut rows)?;
        self.put_wanted(&connection, prepared, &rows, &unseen).await?;
        rows.append(&mut unseen);
        rows.sort_by(|(one, _), (other, _)| one.bytes().cmp(other.bytes()));
        found.state.disordered |= !self.keeps_order(&connection, id, &rows).await?;
        self.put_prices(&connection, chain, &chunk.prices).await?;
        found.state.count += u64::try_from(rows.len()).unwrap_or(u64::MAX);
        insert(&connection, id, &rows).await?;
        cover(prepared.chunk, &mut found.state);
        self.put_accounts(&connection, id, &chunk.accounts).await?;
        // Not a removal: between two statements a reader may miss only what a second read dropped.
        self.put_state(&connection, id, &found, (false, &prepared.anchors)).await?;
        self.finish(connection, id, found).await
    }

    /// Commits, and caches the state for the next write.
    pub(super) async fn finish(
        &self,
        connection: Connection,
        id: WalletId,
        Stored { version, state }: Stored,
    ) -> Called<Written> {
        connection.commit().await?;
        let written = Written::Stored { count: state.count, coverage: state.coverage.clone() };
        self.states.put(id, Stored { version: version + 1, state });
        Ok(written)
    }

    /// Deletes the rows between the heights of a chunk. Returns those that have a derived value,
    /// are pending or have an exact value that a second read may lack, and those that a second read
    /// leaves as they are.
    async fn clear(
        &self,
        connection: &Connection,
        (id, wallet): (WalletId, &Wallet),
        state: &mut WalletState,
        Prepared { chunk, .. }: &Prepared<'_>,
    ) -> Called<(Vec<DeletedRow>, Keyed)> {
        let (mut gone, mut unseen) = (Vec::new(), Vec::new());
        let all = self.delete_rows(connection, id, state, (chunk.low, chunk.high)).await?;
        let second = SecondRead::of(chunk, wallet.address.family());
        let stays: HashSet<_> =
            all.iter().filter_map(|(key, value)| second.kept_transaction(key, value)).collect();
        for (key, value) in all {
            if let Some(seen) = &chunk.reread
                && let Some(key) = read_row_key(&key, wallet.address.family())
                && (!seen.contains(&key.tx) || stays.contains(&key.tx))
            {
                // A pending one keeps its entry.
                unseen.push((RowKey::new(id, &key), decode_trade(TRADES, &value)?));
            } else if is_derived_or_pending(&value) || second.may_lack(&key, &value) {
                gone.push((key, value));
            }
        }
        self.forget_wanted(connection, (id, wallet.chain), &gone).await?;
        Ok((gone, unseen))
    }

    /// Deletes a wallet's rows between two inclusive heights, as far as they are covered.
    async fn delete_rows(
        &self,
        connection: &Connection,
        id: WalletId,
        state: &mut WalletState,
        (low, high): (Height, Height),
    ) -> Called<Vec<DeletedRow>> {
        let is_covered =
            state.coverage.spans().iter().any(|span| low <= span.high && span.low <= high);
        if state.count == 0 || !is_covered {
            return Ok(Vec::new());
        }
        // Where heights descend along the keys the rows are contiguous, from the first one at or
        // below `high` to the last one at or above `low`.
        let sql = if state.disordered {
            "DELETE FROM blotter.trade
             WHERE wallet = $1 AND substring(key FROM 9 FOR 8) BETWEEN $2 AND $3
             RETURNING key, value"
        } else {
            "DELETE FROM blotter.trade WHERE wallet = $1
                AND key >= (SELECT key FROM blotter.trade
                            WHERE wallet = $1 AND substring(key FROM 9 FOR 8) >= $2
                            ORDER BY key LIMIT 1)
                AND substring(key FROM 9 FOR 8) BETWEEN $2 AND $3
             RETURNING key, value"
        };
        let (first, last) = (height_bytes(high), height_bytes(low));
        let args: &Arguments<'_> = &[&number(id), &first.as_slice(), &last.as_slice()];
        let mut deleted = Vec::new();
        for row in connection.query(sql, args).await? {
            deleted.push((row.try_get(0)?, row.try_get(1)?));
        }
        state.count = state.count.saturating_sub(u64::try_from(deleted.len()).unwrap_or(u64::MAX));
        state.disordered &= state.count > 0;
        Ok(deleted)
    }

    /// Deletes a wallet's rows between two inclusive heights, which are no longer covered.
    pub(super) async fn reopen(
        &self,
        connection: &Connection,
        (id, chain): (WalletId, ChainId),
        state: &mut WalletState,
        (low, high): (Height, Height),
    ) -> Called<()> {
        let gone = self.delete_rows(connection, id, state, (low, high)).await?;
        self.forget_wanted(connection, (id, chain), &gone).await?;
        state.coverage.remove(low, high);
        Ok(())
    }

    /// Whether heights descend along the keys with these rows among the stored ones.
    async fn keeps_order(
        &self,
        connection: &Connection,
        id: WalletId,
        rows: &[(RowKey, StoredTrade)],
    ) -> Called<bool> {
        let (Some((first, _)), Some((last, _))) = (rows.first(), rows.last()) else {
            return Ok(true);
        };
        if !heights_descend(rows) {
            return Ok(false);
        }
        let sql = "SELECT (SELECT key FROM blotter.trade WHERE wallet = $1 AND key < $2
                           ORDER BY key DESC LIMIT 1),
                          (SELECT key FROM blotter.trade WHERE wallet = $1 AND key >= $2
                           ORDER BY key LIMIT 1)";
        let row = connection.query_opt(sql, &[&number(id), &first.bytes()]).await?;
        let Some(row) = row else { return Ok(true) };
        let (newer, older): (Option<&[u8]>, Option<&[u8]>) = (row.try_get(0)?, row.try_get(1)?);
        let height = |key: &[u8]| height_of(key).unwrap_or_default();
        let is_newer = newer.is_none_or(|key| height(key) > height(first.bytes()));
        let is_older = |key: &[u8]| key > last.bytes() && height(key) < height(last.bytes());
        Ok(is_newer && older.is_none_or(is_older))
    }

    async fn patch(&self, id: WalletId, epoch: u64, patch: &WalletPatch) -> Called<Written> {
        if patch.reopen.iter().any(|(low, high)| low > high) {
            let reason = "a range of heights that ends before it begins";
            return Err(StoreError::Invalid(reason).into());
        }
        let wallet = self.wallet_of(id).await?.ok_or(StoreError::UnknownWallet(id))?;
        let connection = self.connection().await?;
        connection.begin().await?;
        // Any process may set the background demand.
        let by_any = patch.reopen.is_empty()
            && (&patch.anchors, patch.cut, patch.checked_at) == (&None, None, None);
        let Some(mut found) = self.lock(&connection, id, Some(epoch), by_any).await? else {
            connection.roll_back().await?;
            return Ok(Written::Stale);
        };
        for part in &patch.reopen {
            let of = (id, wallet.chain);
            self.reopen(&connection, of, &mut found.state, *part).await?;
        }
        if !patch.reopen.is_empty() && found.state.coverage.spans().is_empty() {
            // No covered height relies on them any more.
            let sql = "DELETE FROM blotter.account WHERE wallet = $1";
            connection.execute(sql, &[&number(id)]).await?;
        }
        found.state.cut = patch.cut.unwrap_or(found.state.cut);
        found.state.checked_at = patch.checked_at.or(found.state.checked_at);
        if let Some(pending) = patch.pending {
            let pending = pending.as_ref().map(codec::encode_pending).transpose()?;
            let sql = "UPDATE blotter.wallet_state SET pending = $2 WHERE wallet = $1";
            connection.execute(sql, &[&number(id), &pending]).await?;
        }
        let anchors = patch.anchors.as_deref().map(codec::encode_anchors).transpose()?;
        let removed = !patch.reopen.is_empty();
        self.put_state(&connection, id, &found, (removed, &anchors)).await?;
        self.finish(connection, id, found).await
    }

    async fn cut_back(&self, id: WalletId, above: Height) -> Called<u64> {
        let wallet = self.wallet_of(id).await?.ok_or(StoreError::UnknownWallet(id))?;
        let connection = self.connection().await?;
        connection.begin().await?;
        let found = self.lock(&connection, id, None, false).await?;
        // Otherwise another process holds the wallet, and detects the reorg itself.
        let mut found = found.ok_or(StoreError::Overtaken)?;
        let is_cut = found.state.coverage.top().is_some_and(|top| top > above);
        if let Some(low) = above.checked_add(1) {
            let (of, part) = ((id, wallet.chain), (low, Height::MAX));
            self.reopen(&connection, of, &mut found.state, part).await?;
        }
        found.state.epoch += 1;
        found.state.checked_at = None;
        let sql = "SELECT anchors FROM blotter.wallet_state WHERE wallet = $1";
        let row = connection.query_opt(sql, &[&number(id)]).await?;
        let bytes: Option<Option<&[u8]>> = row.as_ref().map(|row| row.try_get(0)).transpose()?;
        let anchors = bytes.flatten().map(|bytes| codec::decode_anchors(ANCHORS, bytes));
        let kept = anchors.transpose()?.map(|mut anchors| {
            anchors.retain(|anchor| anchor.height <= above);
            codec::encode_anchors(&anchors)
        });
        let kept = kept.transpose()?;
        if is_cut {
            self.forget_balances(&connection, id).await?;
        }
        self.put_state(&connection, id, &found, (true, &kept)).await?;
        let epoch = found.state.epoch;
        self.finish(connection, id, found).await?;
        Ok(epoch)
    }

    /// Adds the transactions with pending rows, after rows were replaced.
    async fn put_wanted(
        &self,
        connection: &Connection,
        Prepared { chunk, wallet, trades, .. }: &Prepared<'_>,
        rows: &[(RowKey, StoredTrade)],
        unseen: &[(RowKey, StoredTrade)],
    ) -> Called<()> {
        let waits = |row: &StoredTrade| row.valued == ValueSource::Pending;
        let mut wanted: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
        for ((key, _), trade) in rows.iter().zip(trades).filter(|((_, row), _)| waits(row)) {
            let side_payment =
                chunk.side_payment.get(&trade.key.tx).filter(|units| !units.is_zero());
            let side_payment = side_payment.map(|units| units.to_be_bytes::<32>().to_vec());
            wanted.push((wanted_value_key(wallet.chain, key.bytes()), side_payment));
        }
        for (key, _) in unseen.iter().filter(|(_, row)| waits(row)) {
            wanted.push((wanted_value_key(wallet.chain, key.bytes()), None));
        }
        wanted.dedup_by(|later, kept| later.0 == kept.0);
        if wanted.is_empty() {
            return Ok(());
        }
        let (keys, side_payments): (Vec<_>, Vec<_>) = wanted.into_iter().unzip();
        let sql = "INSERT INTO blotter.wanted_value (chain, wallet, key, side_payment)
                   SELECT DISTINCT ON (k) $1::integer, $2::bigint, k, b
                   FROM unnest($3::bytea[], $4::bytea[]) AS new(k, b) ORDER BY k, b
                   ON CONFLICT (chain, wallet, key)
                   DO UPDATE SET side_payment = coalesce(EXCLUDED.side_payment, wanted_value.side_payment)";
        let args: &Arguments<'_> =
            &[&names::chain(wallet.chain), &number(chunk.id), &keys, &side_payments];
        connection.execute(sql, args).await?;
        Ok(())
    }
}

async fn insert(connection: &Connection, id: WalletId, rows: &Keyed) -> Called<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let Columns { keys, values } = Columns::of(rows);
    let sql = "INSERT INTO blotter.trade (wallet, key, value)
               SELECT $1, k, v FROM unnest($2::bytea[], $3::bytea[]) AS new(k, v)";
    connection.execute(sql, &[&number(id), &keys, &values]).await?;
    Ok(())
}

impl Prepared<'_> {
    /// Whether only the state and rows change, at heights that are not covered yet.
    fn is_fill(&self, state: &WalletState) -> bool {
        let Chunk { low, high, .. } = *self.chunk;
        let mut spans = state.coverage.spans().iter();
        let is_new = !spans.any(|span| low <= span.high && span.low <= high);
        let is_plain = self.chunk.reread.is_none()
            && self.chunk.accounts.is_empty()
            && self.chunk.prices.is_empty();
        let waits = |(_, row): &(RowKey, StoredTrade)| row.valued == ValueSource::Pending;
        is_new && is_plain && self.chunk.epoch == state.epoch && !self.rows.iter().any(waits)
    }
}
