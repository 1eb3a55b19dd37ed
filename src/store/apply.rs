//! The changes of each request, inside the writer's transaction.

use redb::{ReadableTable as _, Table, WriteTransaction};

use crate::domain::{ChainId, Family, Height, Span, Trade, TxId, Wallet};

use super::codec::{self, WalletState, corrupt};
use super::intern::{Known, Names, TOO_MANY, next_id};
use super::key::{RowKey, account_key, accounts_of, address_key, usage_key};
use super::prices::Prices;
use super::rows::RowTables;
use super::schema::names::{ACCOUNTS, ANCHORS, STATES, WALLETS};
use super::schema::{
    ACCOUNT_TO_STATE, CREDIT, KEY_TO_TOTAL, NAME_TO_NUMBER, UNFORGOTTEN, USAGE_TO_RANGES,
    WALLET_ID_TO_ANCHORS, WALLET_ID_TO_PENDING, WALLET_ID_TO_STATE, WALLET_ID_TO_WALLET,
    WALLET_TO_ID,
};
use super::trade_codec::StoredTrade;
use super::values::{self, DeletedRow, PendingValues, SecondRead};
use super::{
    Anchor, Chunk, Credit, NewValue, PriceRecord, Result, StoreError, TokenRecord, UsageUpdate,
    WalletId, WalletPatch, Written,
};

/// Spans of one wallet that differ from their neighbours by their proof alone.
const SPANS_KEPT_MAX: usize = 512;

/// All tables of one write transaction.
pub(super) struct Tables<'txn> {
    rows: RowTables<'txn>,
    names: Names<'txn>,
    numbers: Table<'txn, &'static str, u64>,
    wallet_to_id: Table<'txn, &'static [u8], u32>,
    wallets: Table<'txn, u32, &'static [u8]>,
    states: Table<'txn, u32, &'static [u8]>,
    anchors: Table<'txn, u32, &'static [u8]>,
    pending: Table<'txn, u32, &'static [u8]>,
    accounts: Table<'txn, [u8; 36], &'static [u8]>,
    ranges: Table<'txn, (u64, u32), &'static [u8]>,
    totals: Table<'txn, u64, u64>,
    credits: Table<'txn, (u64, u128), u64>,
    wanted: PendingValues<'txn>,
    prices: Prices<'txn>,
}

impl<'txn> Tables<'txn> {
    pub(super) fn open(txn: &'txn WriteTransaction) -> Result<Self> {
        Ok(Self {
            rows: RowTables::open(txn)?,
            names: Names::open(txn)?,
            numbers: txn.open_table(NAME_TO_NUMBER)?,
            wallet_to_id: txn.open_table(WALLET_TO_ID)?,
            wallets: txn.open_table(WALLET_ID_TO_WALLET)?,
            states: txn.open_table(WALLET_ID_TO_STATE)?,
            anchors: txn.open_table(WALLET_ID_TO_ANCHORS)?,
            pending: txn.open_table(WALLET_ID_TO_PENDING)?,
            accounts: txn.open_table(ACCOUNT_TO_STATE)?,
            ranges: txn.open_table(USAGE_TO_RANGES)?,
            totals: txn.open_table(KEY_TO_TOTAL)?,
            credits: txn.open_table(CREDIT)?,
            wanted: PendingValues::open(txn)?,
            prices: Prices::open(txn)?,
        })
    }

    pub(super) fn intern(&mut self, wallet: &Wallet) -> Result<WalletId> {
        let key = address_key(wallet.chain, &wallet.address);
        let found = self.wallet_to_id.get(key.as_slice())?.map(|id| WalletId(id.value()));
        if let Some(id) = found {
            return Ok(id);
        }
        // Above forgotten ones too: a request under way for one must not reach another wallet.
        let unforgotten = self.numbers.get(UNFORGOTTEN)?.map_or(0, |number| number.value());
        let unforgotten = u32::try_from(unforgotten).map_err(|_| TOO_MANY)?;
        let id = WalletId(next_id(&self.wallets)?.max(unforgotten));
        self.wallet_to_id.insert(key.as_slice(), id.0)?;
        self.wallets.insert(id.0, codec::encode_wallet(wallet)?.as_slice())?;
        self.put_state(id, &WalletState::default())?;
        Ok(id)
    }

    pub(super) fn chunk(&mut self, known: &mut Known, chunk: &Chunk) -> Result<Written> {
        let wallet = self.wallet(chunk.id)?;
        let mut state = self.state(chunk.id)?;
        if state.epoch != chunk.epoch || !is_current(chunk, &state) {
            return Ok(Written::Stale);
        }
        let trades = in_order(chunk, &wallet)?;
        let (id, chain) = (chunk.id, wallet.chain);
        let second = SecondRead::of(chunk, wallet.address.family());
        let unseen = self.unseen(&second, &state, chunk)?;
        let waiting = self.wanted.waiting(chain, &unseen)?;
        let gone = self.clear((id, chain), &mut state, (chunk.low, chunk.high), Some(&second))?;
        let row = |trade: &&Trade| {
            Ok((RowKey::new(id, &trade.key), self.names.stored(known, chain, trade)?))
        };
        let mut rows = trades.iter().map(row).collect::<Result<Vec<_>>>()?;
        values::keep(&gone, &mut rows)?;
        self.wanted.add(chain, &rows, &trades, &chunk.side_payment)?;
        self.wanted.put_back(waiting)?;
        rows.extend(unseen);
        rows.sort_by(|(one, _), (other, _)| one.bytes().cmp(other.bytes()));
        let ordered = self.rows.keep_order(id, &rows)?;
        state.disordered |= !ordered;
        self.prices.put(chain, &chunk.prices)?;
        state.count += self.rows.add(&rows, ordered, state.count, chunk.low == 0)?;
        cover(chunk, &mut state);
        if let Some(anchors) = &chunk.anchors {
            self.put_anchors(chunk.id, anchors)?;
        }
        self.tokens(known, &chunk.tokens)?;
        for account in &chunk.accounts {
            let key = account_key(chunk.id, &account.account);
            self.accounts.insert(key, codec::encode_account(account)?.as_slice())?;
        }
        self.put_state(chunk.id, &state)?;
        Ok(Written::Stored { count: state.count, coverage: state.coverage })
    }

    /// Rows that stay because a second read did not bring their transactions, or not the payments
    /// that make them trades.
    fn unseen(
        &self,
        second: &SecondRead<'_>,
        state: &WalletState,
        chunk: &Chunk,
    ) -> Result<Vec<(RowKey, StoredTrade)>> {
        let Some(seen) = chunk.reread.as_ref().filter(|_| state.count > 0) else {
            return Ok(Vec::new());
        };
        let part = (chunk.low, chunk.high, state.disordered);
        self.rows.unseen(chunk.id, part, second, seen)
    }

    pub(super) fn patch(
        &mut self,
        id: WalletId,
        epoch: u64,
        patch: &WalletPatch,
    ) -> Result<Written> {
        let mut state = self.state(id)?;
        if state.epoch != epoch {
            return Ok(Written::Stale);
        }
        for &(low, high) in &patch.reopen {
            if low > high {
                return Err(StoreError::Invalid("a range of heights that ends before it begins"));
            }
            self.reopen(id, &mut state, (low, high))?;
        }
        if !patch.reopen.is_empty() && state.coverage.spans().is_empty() {
            // No covered height relies on them any more.
            self.accounts.retain_in(accounts_of(id), |_, _| false)?;
        }
        state.cut = patch.cut.unwrap_or(state.cut);
        state.checked_at = patch.checked_at.or(state.checked_at);
        match patch.pending {
            Some(Some(pending)) => {
                self.pending.insert(id.0, codec::encode_pending(&pending)?.as_slice())?;
            }
            Some(None) => drop(self.pending.remove(id.0)?),
            None => {}
        }
        if let Some(anchors) = &patch.anchors {
            self.put_anchors(id, anchors)?;
        }
        self.put_state(id, &state)?;
        Ok(Written::Stored { count: state.count, coverage: state.coverage })
    }

    /// Rolls a wallet back: deletes rows, coverage and anchors above a height. Where covered
    /// heights go, the balances of accounts go too: they were seen at a head that is no longer the
    /// chain's. The accounts stay, because the coverage below relies on them: the next read would
    /// miss one that another authority has closed before it.
    pub(super) fn cut_back(&mut self, id: WalletId, above: Height) -> Result<u64> {
        let mut state = self.state(id)?;
        let is_cut = state.coverage.top().is_some_and(|top| top > above);
        if let Some(low) = above.checked_add(1) {
            self.reopen(id, &mut state, (low, Height::MAX))?;
        }
        state.epoch += 1;
        state.checked_at = None;
        let anchors: Vec<Anchor> =
            self.anchors(id)?.into_iter().filter(|anchor| anchor.height <= above).collect();
        self.put_anchors(id, &anchors)?;
        if is_cut {
            self.forget_balances(id)?;
        }
        self.put_state(id, &state)?;
        Ok(state.epoch)
    }

    /// Deletes the rows between two inclusive heights, which are no longer covered.
    fn reopen(
        &mut self,
        id: WalletId,
        state: &mut WalletState,
        (low, high): (Height, Height),
    ) -> Result<()> {
        let chain = self.wallet(id)?.chain;
        self.clear((id, chain), state, (low, high), None)?;
        state.coverage.remove(low, high);
        Ok(())
    }

    fn forget_balances(&mut self, id: WalletId) -> Result<()> {
        let mut changed = Vec::new();
        for entry in self.accounts.range(accounts_of(id))? {
            let (key, value) = entry?;
            changed.push((key.value(), codec::account_without_balance(ACCOUNTS, value.value())?));
        }
        for (key, value) in changed {
            self.accounts.insert(key, value.as_slice())?;
        }
        Ok(())
    }

    pub(super) fn tokens(&mut self, known: &mut Known, tokens: &[TokenRecord]) -> Result<()> {
        for token in tokens {
            self.names.learn(known, token)?;
        }
        Ok(())
    }

    pub(super) fn usage(&mut self, updates: &[UsageUpdate]) -> Result<()> {
        for update in updates {
            // A wallet that was forgotten meanwhile has no rows that could be counted again.
            if self.wallets.get(update.wallet.0)?.is_some() {
                let ranges = codec::encode_ranges(update.wallet, &update.ranges)?;
                self.ranges.insert(usage_key(update.key, update.wallet), ranges.as_slice())?;
            }
            self.totals.insert(update.key.0, update.total)?;
            if let Some(Credit { mark, left }) = update.credit {
                self.credits.insert((update.key.0, mark), left)?;
            }
        }
        Ok(())
    }

    /// Sets the values of pending rows. The prices are stored even if the rows are gone.
    pub(super) fn values(
        &mut self,
        id: WalletId,
        epoch: u64,
        new: &[NewValue],
        prices: &[PriceRecord],
    ) -> Result<Written> {
        let (wallet, state) = (self.wallet(id)?, self.state(id)?);
        self.prices.put(wallet.chain, prices)?;
        if state.epoch != epoch {
            return Ok(Written::Stale);
        }
        let keys: Vec<RowKey> = new.iter().map(|new| RowKey::new(id, &new.key)).collect();
        for (key, new) in keys.iter().zip(new) {
            self.rows.fill(key, new)?;
        }
        for key in &keys {
            if !self.rows.waits(key)? {
                self.wanted.remove(wallet.chain, key.bytes())?;
            }
        }
        Ok(Written::Stored { count: state.count, coverage: state.coverage })
    }

    /// Deletes the rows between two inclusive heights. Returns those that are pending, that have a
    /// derived value, or whose exact value a second read may lack. Rows exist only at covered
    /// heights, so a backfill below everything reads nothing here.
    fn clear(
        &mut self,
        (id, chain): (WalletId, ChainId),
        state: &mut WalletState,
        (low, high): (Height, Height),
        second: Option<&SecondRead<'_>>,
    ) -> Result<Vec<DeletedRow>> {
        let mut gone = Vec::new();
        for span in state.coverage.spans() {
            let (low, high) = (low.max(span.low), high.min(span.high));
            if low <= high && state.count > 0 {
                let deleted =
                    self.rows.delete(id, (low, high, state.disordered), second, &mut gone)?;
                state.count = state
                    .count
                    .checked_sub(deleted)
                    .ok_or_else(|| corrupt(STATES, "the count of rows is too low"))?;
            }
        }
        state.disordered &= state.count > 0;
        self.wanted.forget(chain, &gone)?;
        Ok(gone)
    }

    fn wallet(&self, id: WalletId) -> Result<Wallet> {
        let bytes = self.wallets.get(id.0)?.ok_or(StoreError::UnknownWallet(id))?;
        codec::decode_wallet(WALLETS, bytes.value())
    }

    fn state(&self, id: WalletId) -> Result<WalletState> {
        let bytes = self.states.get(id.0)?.ok_or(StoreError::UnknownWallet(id))?;
        codec::decode_state(STATES, bytes.value())
    }

    fn put_state(&mut self, id: WalletId, state: &WalletState) -> Result<()> {
        self.states.insert(id.0, codec::encode_state(state)?.as_slice())?;
        Ok(())
    }

    fn anchors(&self, id: WalletId) -> Result<Vec<Anchor>> {
        let found = self.anchors.get(id.0)?;
        found.map_or(Ok(Vec::new()), |bytes| codec::decode_anchors(ANCHORS, bytes.value()))
    }

    fn put_anchors(&mut self, id: WalletId, anchors: &[Anchor]) -> Result<()> {
        self.anchors.insert(id.0, codec::encode_anchors(anchors)?.as_slice())?;
        Ok(())
    }
}

/// Whether the heights of a second read are still covered. Their rows may have been evicted
/// meanwhile, and a second read does not bring all of them.
pub(super) fn is_current(chunk: &Chunk, state: &WalletState) -> bool {
    chunk.reread.is_none() || state.coverage.covers_all(chunk.low, chunk.high)
}

/// Adds the spans of a chunk.
pub(super) fn cover(chunk: &Chunk, state: &mut WalletState) {
    let span = Span {
        low: chunk.low,
        high: chunk.high,
        decoder: chunk.decoder,
        resume: chunk.resume.clone(),
        proof: chunk.proof,
        missing: Vec::new(),
    };
    for span in span.around_missing(&chunk.missing) {
        state.coverage.insert(span);
    }
    state.coverage.coarsen(SPANS_KEPT_MAX);
    state.checked_at = chunk.checked_at.or(state.checked_at);
}

/// The trades of a chunk in the order of their keys, the last one of each key, checked against the
/// chunk's heights and family.
pub(super) fn in_order<'a>(chunk: &'a Chunk, wallet: &Wallet) -> Result<Vec<&'a Trade>> {
    if chunk.low > chunk.high {
        return Err(StoreError::Invalid("a chunk that ends before it begins"));
    }
    let family = wallet.address.family();
    let mut trades: Vec<&Trade> = chunk.trades.iter().collect();
    trades.sort_by_key(|trade| trade.key);
    trades.dedup_by(|later, kept| {
        let same = later.key == kept.key;
        if same {
            *kept = *later;
        }
        same
    });
    for trade in &trades {
        if trade.key.height < chunk.low || chunk.high < trade.key.height {
            return Err(StoreError::Invalid("a trade outside of its chunk's heights"));
        }
        if family_of(&trade.key.tx) != family || trade.mint.family() != family {
            return Err(StoreError::Invalid("a trade of another family than its wallet"));
        }
    }
    Ok(trades)
}

fn family_of(tx: &TxId) -> Family {
    match tx {
        TxId::Solana(_) => Family::Solana,
        TxId::Evm(_) => Family::Evm,
        TxId::Tron(_) => Family::Tron,
    }
}
