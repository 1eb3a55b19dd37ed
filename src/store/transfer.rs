//! Copies one store into another, wallet by wallet, between the arms. Wallets that are equal
//! already are skipped, so that an interrupted copy can be resumed.
//!
//! Stored prices and the credits of forgotten wallets are not copied.

use std::collections::{BTreeMap, HashMap};

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::{
    Chunk, Result, Store, TokenRecord, UsageUpdate, WalletId, WalletPatch, WalletRecord,
    WantedPlace, Written,
};
use crate::domain::{
    ChainId, Height, KeyId, Position, Row, SourceAccount, Span, TxId, Units, ValueSource, Wallet,
};

/// Rows that are read and written at a time.
const SLICE_ROWS: usize = 1_000;
/// Wallets that are listed at a time, and transactions with pending rows.
const LISTED_MAX: usize = 500;
/// Rows of an earlier copy that a write deletes at a time.
const EMPTIED_ROWS: usize = 5_000;
/// Limits of a write of usage: pairs of key and wallet, and ranges.
const USAGE_PAIRS: usize = 500;
const USAGE_RANGES: usize = 50_000;

/// Count and hash of a wallet's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    pub rows: u64,
    pub hash: [u8; 32],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    Same(Digest),
    Written(Digest),
    /// The wallet is not equal after the copy, because another process writes it.
    Differs,
}

#[derive(Debug)]
pub struct Transfer<'a> {
    from: &'a Store,
    to: &'a Store,
    /// Side payments of transactions with pending rows.
    side_payments: HashMap<(WalletId, TxId), Units>,
    /// Numbers of the wallets in both stores.
    ids: BTreeMap<WalletId, WalletId>,
}

impl<'a> Transfer<'a> {
    /// `chains` are those whose rows may be pending.
    pub async fn new(from: &'a Store, to: &'a Store, chains: &[ChainId]) -> Result<Self> {
        let mut side_payments = HashMap::new();
        for chain in chains {
            let mut behind = WantedPlace::default();
            loop {
                let view = from.view()?;
                let wanted = view.wanted_values(*chain, &behind, LISTED_MAX).await?;
                let Some(last) = wanted.last() else { break };
                behind = last.place.clone();
                for one in &wanted {
                    let tx = one.trades.first().map(|trade| trade.key.tx);
                    side_payments.extend(tx.map(|tx| ((one.id, tx), one.side_payment)));
                }
            }
        }
        Ok(Self { from, to, side_payments, ids: BTreeMap::new() })
    }

    /// Wallets of the source with numbers above `behind`, by number.
    pub async fn wallets(&self, behind: Option<WalletId>) -> Result<Vec<(WalletId, Wallet)>> {
        self.from.view()?.wallets(behind, LISTED_MAX).await
    }

    /// Copies a wallet, and compares the copy with it.
    pub async fn wallet(&mut self, wallet: &Wallet) -> Result<Copied> {
        let source = self.from.view()?.wallet(wallet).await?;
        let Some(source) = source else { return Ok(Copied::Differs) };
        let target = self.to.intern(wallet).await?;
        self.ids.insert(source.id, target.id);
        let wanted = digest(self.from, &source).await?;
        if is_like(&source, &target) && digest(self.to, &target).await? == wanted {
            return Ok(Copied::Same(wanted));
        }
        if !self.write(&source, &target).await? {
            return Ok(Copied::Differs);
        }
        let written = self.to.view()?.wallet(wallet).await?;
        let Some(written) = written else { return Ok(Copied::Differs) };
        let is_same = is_like(&source, &written) && digest(self.to, &written).await? == wanted;
        Ok(if is_same { Copied::Written(wanted) } else { Copied::Differs })
    }

    /// False where another process writes the wallet.
    async fn write(&self, source: &WalletRecord, target: &WalletRecord) -> Result<bool> {
        let epoch = target.epoch;
        if !self.empty(target).await? {
            return Ok(false);
        }
        let mut accounts = self.from.view()?.accounts(source.id).await?;
        for span in source.coverage.spans() {
            // The accounts are written with the first chunk.
            let with = std::mem::take(&mut accounts);
            if !self.write_span(source, (target.id, epoch), span, with).await? {
                return Ok(false);
            }
        }
        let view = self.from.view()?;
        let patch = WalletPatch {
            pending: Some(view.pending_of(source.id).await?),
            anchors: Some(view.anchors(source.id).await?),
            cut: Some(source.cut),
            checked_at: source.checked_at,
            reopen: Vec::new(),
        };
        drop(view);
        Ok(self.to.update_wallet(target.id, epoch, patch).await? != Written::Stale)
    }

    /// Deletes the rows of the target, the oldest first. False where another process writes it.
    async fn empty(&self, target: &WalletRecord) -> Result<bool> {
        loop {
            let newest = self.to.view()?.oldest_part(target.id, EMPTIED_ROWS).await?;
            let reopen = vec![(0, newest.unwrap_or(Height::MAX))];
            let patch = WalletPatch { reopen, ..WalletPatch::default() };
            if self.to.update_wallet(target.id, target.epoch, patch).await? == Written::Stale {
                return Ok(false);
            }
            if newest.is_none() {
                return Ok(true);
            }
        }
    }

    /// Writes the rows of a span from its top down, in parts of whole heights.
    async fn write_span(
        &self,
        source: &WalletRecord,
        target: (WalletId, u64),
        span: &Span,
        mut accounts: Vec<SourceAccount>,
    ) -> Result<bool> {
        let mut rows = span_rows(self.from, source, span).await?;
        rows.sort_by_key(|row| std::cmp::Reverse(row.trade.key.height));
        let mut high = span.high;
        let mut rest = rows.into_iter().peekable();
        loop {
            let mut part: Vec<Row> = Vec::new();
            while let Some(row) = rest.next_if(|row| {
                let last = part.last().map(|last: &Row| last.trade.key.height);
                part.len() < SLICE_ROWS || last == Some(row.trade.key.height)
            }) {
                part.push(row);
            }
            let low = match rest.peek() {
                Some(next) => next.trade.key.height.saturating_add(1),
                None => span.low,
            };
            let mut chunk = chunk_of(span, (low, high), target);
            self.fill(&mut chunk, source, part);
            chunk.accounts = std::mem::take(&mut accounts);
            let (rows, began) = (chunk.trades.len(), Instant::now());
            if self.to.write_chunk(chunk).await? == Written::Stale {
                return Ok(false);
            }
            let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            tracing::debug!(rows, micros, "a chunk was copied");
            if low == span.low {
                return Ok(true);
            }
            high = low - 1;
        }
    }

    /// Adds rows to a chunk, with their tokens' metadata and the pending ones' side payments.
    fn fill(&self, chunk: &mut Chunk, source: &WalletRecord, rows: Vec<Row>) {
        let chain = source.wallet.chain;
        let mut tokens = BTreeMap::new();
        for row in rows {
            if row.trade.valued == ValueSource::Pending
                && let Some(units) = self.side_payments.get(&(source.id, row.trade.key.tx))
            {
                chunk.side_payment.insert(row.trade.key.tx, *units);
            }
            let record = TokenRecord {
                chain,
                mint: row.token.mint,
                symbol: row.token.symbol.clone(),
                decimals: row.token.decimals,
                asked_at: None,
            };
            tokens.insert(row.token.mint, record);
            chunk.trades.push(row.trade);
        }
        chunk.tokens = tokens.into_values().collect();
    }

    /// Copies the usage of the copied wallets, and returns the number of pairs of key and wallet.
    pub async fn usage(&self) -> Result<usize> {
        let all = self.from.view()?.all_usage().await?;
        let mut totals: HashMap<KeyId, u64> = HashMap::new();
        let (mut updates, mut weight, mut count) = (Vec::new(), 0, 0);
        for (key, wallet, ranges) in all {
            let Some(id) = self.ids.get(&wallet) else { continue };
            let total = match totals.get(&key) {
                Some(total) => *total,
                None => self.from.view()?.usage_total(key).await?,
            };
            totals.insert(key, total);
            count += 1;
            weight += ranges.len();
            updates.push(UsageUpdate { key, wallet: *id, ranges, total, credit: None });
            // Totals replace the stored ones, so every part may carry them.
            if updates.len() >= USAGE_PAIRS || weight >= USAGE_RANGES {
                self.to.write_usage(std::mem::take(&mut updates)).await?;
                weight = 0;
            }
        }
        if !updates.is_empty() {
            self.to.write_usage(updates).await?;
        }
        Ok(count)
    }
}

fn chunk_of(span: &Span, (low, high): (Height, Height), (id, epoch): (WalletId, u64)) -> Chunk {
    let is_lowest = low == span.low;
    Chunk {
        id,
        epoch,
        low,
        high,
        decoder: span.decoder,
        resume: span.resume.clone().filter(|_| is_lowest),
        proof: span.proof,
        missing: span.missing.iter().map(|tx| (span.low, *tx)).filter(|_| is_lowest).collect(),
        ..Chunk::default()
    }
}

/// Whether two records are equal apart from their numbers and epochs.
fn is_like(one: &WalletRecord, other: &WalletRecord) -> bool {
    let compared = |record: &WalletRecord| {
        (record.coverage.clone(), record.count, record.checked_at, record.cut)
    };
    compared(one) == compared(other)
}

async fn span_rows(store: &Store, record: &WalletRecord, span: &Span) -> Result<Vec<Row>> {
    let mut inside = Vec::new();
    each_slice(store, record, |rows| {
        let fits = |row: &Row| (span.low..=span.high).contains(&row.trade.key.height);
        inside.extend(rows.into_iter().filter(fits));
    })
    .await?;
    Ok(inside)
}

async fn each_slice(
    store: &Store,
    record: &WalletRecord,
    mut take: impl FnMut(Vec<Row>),
) -> Result<()> {
    let mut after = Position::Start;
    loop {
        let rows = store.view()?.rows(record.id, after, 0, SLICE_ROWS).await?;
        let Some(last) = rows.last_key() else { return Ok(()) };
        after = Position::After(last);
        take(rows.to_vec());
    }
}

/// The digest of a wallet's rows in their order, with their values and names.
pub async fn digest(store: &Store, record: &WalletRecord) -> Result<Digest> {
    let (mut hash, mut count) = (Sha256::new(), 0_u64);
    each_slice(store, record, |rows| {
        for Row { trade, token } in rows {
            count += 1;
            hash.update(format!("{trade:?}{:?}{:?}", token.symbol, token.decimals));
        }
    })
    .await?;
    Ok(Digest { rows: count, hash: hash.finalize().into() })
}
