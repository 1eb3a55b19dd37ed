//! Reads of the file: one read transaction, blocking and short.

use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use redb::{Cursor, ReadableTable as _, ReadableTableMetadata as _};

use crate::domain::{
    Address, BareRow, ChainId, Family, Height, KeyId, LearnedPrice, Minute, Position, Rows,
    SourceAccount, Token, TradeKey, Units, UnixMillis, UnixSeconds, Wallet, opaque,
};

use super::codec::{self, corrupt};
use super::credit::{self, Credit};
use super::file::Shared;
use super::key::{
    RowBounds, RowKey, accounts_of, address_key, height_of, id_of, read_row_key, rows_of_wanted,
    time_of, token_of_wanted, usage_key, wanted_key,
};
use super::reader_cache::Slots;
use super::schema::names::{
    ACCOUNTS, ANCHORS, CANDLES, LEARNED, PENDING, RANGES, STATES, TOKENS, TRADES, VENUES, WALLETS,
    WANTED, WANTED_VALUES,
};
use super::schema::{
    ACCOUNT_TO_STATE, KEY_TO_TOTAL, MINUTE_TO_CANDLE, MINUTE_TO_LEARNED, ROW_KEY_TO_TRADE,
    TOKEN_ID_TO_TOKEN, USAGE_TO_RANGES, VENUE_ID_TO_NAME, WALLET_ID_TO_ANCHORS,
    WALLET_ID_TO_PENDING, WALLET_ID_TO_WALLET, WANTED_TOKEN, WANTED_VALUE,
    WANTED_VALUE_TO_SIDE_PAYMENT,
};
use super::snapshot::Snapshot;
use super::trade_codec::{self, StoredTrade};
use super::{
    Anchor, DeliveredRange, KeptCandle, LIMITS, Pending, Result, StoreError, StoreStats,
    TokenRecord, WalletId, WalletRecord, WantedPlace, WantedValue,
};

type RowCursor<'a> = Cursor<'a, &'static [u8], &'static [u8]>;

/// A consistent view of the store at one moment. [`View`](super::View) documents the reads.
pub(super) struct FileView {
    pub(super) snapshot: Arc<Snapshot>,
    shared: Arc<Shared>,
    /// The wallet that was looked up first: mostly its rows are read next.
    found: OnceLock<(WalletId, Wallet)>,
}

opaque!(FileView);

impl FileView {
    pub(super) fn new(snapshot: Arc<Snapshot>, shared: Arc<Shared>) -> Self {
        Self { snapshot, shared, found: OnceLock::new() }
    }

    /// Runs a read; an I/O error marks the file as failed.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        self.shared.record_failure(self.snapshot.opened, read(self))
    }

    pub(super) fn stats(&self, file_bytes: u64) -> Result<StoreStats> {
        Ok(StoreStats {
            file_bytes,
            rows: self.snapshot.txn.open_table(ROW_KEY_TO_TRADE)?.len()?,
            wallets: self.snapshot.txn.open_table(WALLET_ID_TO_WALLET)?.len()?,
            tokens: self.snapshot.txn.open_table(TOKEN_ID_TO_TOKEN)?.len()?,
        })
    }

    pub(super) fn wallet(&self, wallet: &Wallet) -> Result<Option<Arc<WalletRecord>>> {
        let record = if let Some(record) = self.snapshot.records.get(wallet) {
            record
        } else {
            let key = address_key(wallet.chain, &wallet.address);
            let Some(id) = self.snapshot.wallet_ids()?.get(key.as_slice())? else {
                return Ok(None);
            };
            let record = Arc::new(self.read_state(WalletId(id.value()), *wallet)?);
            self.snapshot.records.put(*wallet, Arc::clone(&record));
            record
        };
        let _ = self.found.set((record.id, *wallet));
        Ok(Some(record))
    }

    pub(super) fn wallet_by_id(&self, id: WalletId) -> Result<Option<WalletRecord>> {
        let Some(wallet) = self.plain_wallet(id)? else { return Ok(None) };
        let _ = self.found.set((id, wallet));
        self.read_state(id, wallet).map(Some)
    }

    pub(super) fn read_state(&self, id: WalletId, wallet: Wallet) -> Result<WalletRecord> {
        let none = || corrupt(STATES, format_args!("no state of wallet {}", id.0));
        let bytes = self.snapshot.states()?.get(id.0)?.ok_or_else(none)?;
        Ok(codec::decode_state(STATES, bytes.value())?.into_record(id, wallet))
    }

    pub(super) fn pending_of(&self, id: WalletId) -> Result<Option<Pending>> {
        let found = self.snapshot.txn.open_table(WALLET_ID_TO_PENDING)?.get(id.0)?;
        found.map(|bytes| codec::decode_pending(PENDING, bytes.value())).transpose()
    }

    pub(super) fn anchors(&self, id: WalletId) -> Result<Vec<Anchor>> {
        let found = self.snapshot.txn.open_table(WALLET_ID_TO_ANCHORS)?.get(id.0)?;
        found.map_or(Ok(Vec::new()), |bytes| codec::decode_anchors(ANCHORS, bytes.value()))
    }

    pub(super) fn plain_wallet(&self, id: WalletId) -> Result<Option<Wallet>> {
        let found = self.snapshot.txn.open_table(WALLET_ID_TO_WALLET)?.get(id.0)?;
        found.map(|bytes| codec::decode_wallet(WALLETS, bytes.value())).transpose()
    }

    pub(super) fn known_wallet(&self, id: WalletId) -> Result<Wallet> {
        match self.found.get() {
            Some((found, wallet)) if *found == id => Ok(*wallet),
            _ => self.plain_wallet(id)?.ok_or(StoreError::UnknownWallet(id)),
        }
    }

    pub(super) fn rows_into(
        &self,
        id: WalletId,
        (after, floor): (Position, Height),
        limit: usize,
        buffer: Rows,
    ) -> Result<(Rows, bool)> {
        let family = self.known_wallet(id)?.address.family();
        let mut behind = self.behind(id, after)?;
        let mut slice = Slice::new(self, limit, buffer);
        while let Some((key, value)) = behind.next()? {
            let is_below = height_of(key.value()).is_some_and(|height| height < floor);
            if is_below || id_of(key.value()) != Some(id) {
                break;
            }
            if slice.rows.len() >= limit {
                return Ok((slice.rows, true));
            }
            slice.push(row_key(key.value(), family)?, value.value())?;
        }
        Ok((slice.rows, false))
    }

    /// The rows behind a position, newest first; those of other wallets follow. A range would end
    /// by itself, but takes a fifth more steps a row: it compares each key with its end.
    pub(super) fn behind(&self, id: WalletId, after: Position) -> Result<RowCursor<'_>> {
        let start = RowKey::behind(id, after);
        Ok(self.snapshot.trades()?.lower_bound(Bound::Excluded(start.bytes()))?)
    }

    pub(super) fn count_above(&self, id: WalletId, height: Height, limit: u64) -> Result<u64> {
        let table = self.snapshot.trades()?;
        let mut count = 0;
        for entry in table.range(RowKey::start(id).bytes()..RowKey::end(id).bytes())? {
            let above = height_of(entry?.0.value()).is_some_and(|row| row > height);
            if !above || count >= limit {
                break;
            }
            count += 1;
        }
        Ok(count)
    }

    pub(super) fn first_time(&self, id: WalletId) -> Result<Option<UnixSeconds>> {
        if let Some(kept) = self.snapshot.first_times.get(&id) {
            return Ok(Some(kept));
        }
        let table = self.snapshot.trades()?;
        let mut rows = table.range(RowKey::start(id).bytes()..RowKey::end(id).bytes())?;
        let Some(entry) = rows.next_back() else { return Ok(None) };
        let time = time_of(entry?.0.value());
        if let Some(time) = time {
            self.snapshot.first_times.put(id, time);
        }
        Ok(time)
    }

    pub(super) fn token(&self, chain: ChainId, mint: &Address) -> Result<Option<TokenRecord>> {
        self.token_number(chain, mint)?.map(|id| self.read_token(id)).transpose()
    }

    pub(super) fn token_number(&self, chain: ChainId, mint: &Address) -> Result<Option<u32>> {
        let key = address_key(chain, mint);
        let id = self.snapshot.token_ids()?.get(key.as_slice())?;
        Ok(id.map(|id| id.value()))
    }

    fn read_token(&self, id: u32) -> Result<TokenRecord> {
        let found = self.snapshot.txn.open_table(TOKEN_ID_TO_TOKEN)?.get(id)?;
        let bytes = found.ok_or_else(|| corrupt(TOKENS, format_args!("no token {id}")))?;
        codec::decode_token(TOKENS, bytes.value())
    }

    fn shared_token(&self, id: u32) -> Result<Arc<Token>> {
        if let Some(token) = self.shared.cache.token(id) {
            return Ok(token);
        }
        let TokenRecord { mint, symbol, decimals, .. } = self.read_token(id)?;
        let token = Arc::new(Token::new(mint, symbol, decimals));
        self.shared.cache.keep_token(self.snapshot.edition, id, &token);
        Ok(token)
    }

    pub(super) fn shared_venue(&self, id: u32) -> Result<Arc<str>> {
        if let Some(venue) = self.shared.cache.venue(id) {
            return Ok(venue);
        }
        let found = self.snapshot.txn.open_table(VENUE_ID_TO_NAME)?.get(id)?;
        let name = found.ok_or_else(|| corrupt(VENUES, format_args!("no venue {id}")))?;
        let venue = Arc::from(name.value());
        self.shared.cache.keep_venue(id, &venue);
        Ok(venue)
    }

    pub(super) fn tokens_wanting_symbols(
        &self,
        chain: ChainId,
        asked_before: UnixMillis,
        limit: usize,
    ) -> Result<Vec<TokenRecord>> {
        let (start, end) = (wanted_key(chain, 0, 0), wanted_key(chain, asked_before.0, 0));
        let table = self.snapshot.txn.open_table(WANTED_TOKEN)?;
        let mut tokens = Vec::new();
        for entry in table.range(start..end)?.take(limit) {
            let id = token_of_wanted(&entry?.0.value());
            tokens.push(self.read_token(id.ok_or_else(|| corrupt(WANTED, "a short key"))?)?);
        }
        Ok(tokens)
    }

    pub(super) fn rows_in(
        &self,
        id: WalletId,
        (start, end): RowBounds,
        limit: usize,
        newest_first: bool,
    ) -> Result<Rows> {
        let family = self.known_wallet(id)?.address.family();
        let mut range = self.snapshot.trades()?.range(start.bytes()..end.bytes())?;
        let mut next = || if newest_first { range.next() } else { range.next_back() };
        let mut slice = Slice::new(self, limit, Rows::default());
        while slice.rows.len() < limit
            && let Some(entry) = next()
        {
            let (key, value) = entry?;
            slice.push(row_key(key.value(), family)?, value.value())?;
        }
        Ok(slice.rows)
    }

    pub(super) fn wanted_values(
        &self,
        chain: ChainId,
        behind: &WantedPlace,
        limit: usize,
    ) -> Result<Vec<WantedValue>> {
        let first = chain.0.to_be_bytes();
        let from = behind.0.as_slice().max(first.as_slice());
        let table = self.snapshot.txn.open_table(WANTED_VALUE)?;
        let side_payments = self.snapshot.txn.open_table(WANTED_VALUE_TO_SIDE_PAYMENT)?;
        let mut wanted = Vec::new();
        for entry in table.range(from..)? {
            let key = entry?.0;
            let key = key.value();
            if wanted.len() >= limit || !key.starts_with(&first) {
                break;
            }
            if key == behind.0 {
                continue;
            }
            let Some((id, bounds)) = rows_of_wanted(key) else {
                return Err(corrupt(WANTED_VALUES, "a short key"));
            };
            // An earlier program left the entries of forgotten wallets.
            let Some(state) = self.snapshot.states()?.get(id.0)? else { continue };
            let epoch = codec::decode_state(STATES, state.value())?.epoch;
            let rows = self.rows_in(id, bounds, usize::MAX, true)?;
            let trades = rows.into_iter().map(|row| row.trade).collect();
            let found = side_payments.get(key)?.map(|units| Units::from_be_bytes(units.value()));
            let (side_payment, place) = (found.unwrap_or_default(), WantedPlace(key.to_vec()));
            wanted.push(WantedValue { id, epoch, trades, side_payment, place });
        }
        Ok(wanted)
    }

    pub(super) fn learned_prices(
        &self,
        chain: ChainId,
        from: UnixSeconds,
        to: UnixSeconds,
    ) -> Result<Vec<LearnedPrice>> {
        let (first, last) = (Minute::of(from).0, Minute::of(to).0);
        let table = self.snapshot.txn.open_table(MINUTE_TO_LEARNED)?;
        let mut prices = Vec::new();
        for entry in table.range((chain.0, first)..=(chain.0, last))? {
            let minute = codec::decode_learned(LEARNED, entry?.1.value())?;
            prices.extend(minute.into_iter().filter(|p| from <= p.time && p.time <= to));
        }
        Ok(prices)
    }

    pub(super) fn candle(&self, chain: ChainId, minute: Minute) -> Result<KeptCandle> {
        match self.snapshot.txn.open_table(MINUTE_TO_CANDLE)?.get((chain.0, minute.0))? {
            Some(bytes) => Ok(codec::decode_candle(CANDLES, bytes.value())?
                .map_or(KeptCandle::Nothing, KeptCandle::Price)),
            None => Ok(KeptCandle::Unasked),
        }
    }

    pub(super) fn accounts(&self, id: WalletId) -> Result<Vec<SourceAccount>> {
        let table = self.snapshot.txn.open_table(ACCOUNT_TO_STATE)?;
        let mut accounts = Vec::new();
        for entry in table.range(accounts_of(id))? {
            let (key, value) = entry?;
            if let Some(account) = key.value().last_chunk::<32>() {
                accounts.push(codec::decode_account(ACCOUNTS, *account, value.value())?);
            }
        }
        Ok(accounts)
    }

    pub(super) fn pending(&self) -> Result<Vec<(WalletId, Wallet, Pending)>> {
        let table = self.snapshot.txn.open_table(WALLET_ID_TO_PENDING)?;
        let mut pending = Vec::new();
        for entry in table.iter()? {
            let (id, value) = entry?;
            let id = WalletId(id.value());
            let wallet = self.plain_wallet(id)?.ok_or(StoreError::UnknownWallet(id))?;
            pending.push((id, wallet, codec::decode_pending(PENDING, value.value())?));
        }
        Ok(pending)
    }

    pub(super) fn credit(&self, key: KeyId, id: WalletId) -> Result<Option<Credit>> {
        credit::read(&self.snapshot.txn, key, &self.known_wallet(id)?)
    }

    pub(super) fn usage_total(&self, key: KeyId) -> Result<u64> {
        let total = self.snapshot.txn.open_table(KEY_TO_TOTAL)?.get(key.0)?;
        Ok(total.map_or(0, |total| total.value()))
    }

    pub(super) fn usage(&self, key: KeyId, id: WalletId) -> Result<Vec<DeliveredRange>> {
        let family = self.known_wallet(id)?.address.family();
        let found = self.snapshot.txn.open_table(USAGE_TO_RANGES)?.get(usage_key(key, id))?;
        found.map_or(Ok(Vec::new()), |bytes| codec::decode_ranges(RANGES, family, bytes.value()))
    }
}

pub(super) fn row_key(bytes: &[u8], family: Family) -> Result<TradeKey> {
    read_row_key(bytes, family).ok_or_else(|| corrupt(TRADES, "a key that is none"))
}

/// Rows that are read at once. Their names are looked up first in the slice itself, then in the
/// cache, then in the table.
struct Slice<'a> {
    view: &'a FileView,
    rows: Rows,
    /// Indices into `rows`, by the stored number.
    tokens: Slots<usize>,
    venues: Slots<usize>,
}

impl<'a> Slice<'a> {
    /// A slice of up to `limit` rows that reuses the memory of earlier ones.
    fn new(view: &'a FileView, limit: usize, mut rows: Rows) -> Self {
        let names = limit.min(LIMITS.slice_names);
        rows.make_room(limit.min(LIMITS.slice_rows));
        Self { view, rows, tokens: Slots::new(names), venues: Slots::new(names) }
    }

    #[inline]
    fn push(&mut self, key: TradeKey, value: &[u8]) -> Result<()> {
        let StoredTrade { side, token, venue, units, native, valued } =
            trade_codec::decode_trade(TRADES, value)?;
        let Self { view, rows, tokens, venues } = self;
        let token =
            tokens.get_or(token, || view.shared_token(token).map(|token| rows.add_token(token)))?;
        let venue =
            venues.get_or(venue, || view.shared_venue(venue).map(|venue| rows.add_venue(venue)))?;
        rows.push(BareRow { key, side, units, native, valued, token, venue });
        Ok(())
    }
}
