//! The records that the store takes and returns.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::credit::Credit;
use super::key::wanted_of_wallet;
use crate::domain::{
    Address, ChainId, Coverage, Height, KeyId, LearnedPrice, Minute, Price, Proof, Resume,
    SourceAccount, Trade, TradeKey, TxId, Units, UnixMillis, ValueSource, Wallet,
};

/// Number of a wallet in this file: ascending from 0, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct WalletId(pub u32);

/// A wallet with the state of its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletRecord {
    pub id: WalletId,
    pub wallet: Wallet,
    /// Raised by every rollback; a write with another epoch changes nothing.
    pub epoch: u64,
    /// Rows exist only at covered heights.
    pub coverage: Coverage,
    /// Stored trades, including those below gaps.
    pub count: u64,
    /// When the source was last queried for new heights.
    pub checked_at: Option<UnixMillis>,
    /// The first height that the nodes keep, where they have pruned the history below it.
    pub cut: Option<Height>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    pub height: Height,
    pub hash: [u8; 32],
}

/// A background load for a key, with its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    pub key: KeyId,
    pub until: UnixMillis,
}

/// All trades of a wallet between two inclusive heights: they replace what is stored there.
#[derive(Debug, Clone, Default)]
pub struct Chunk {
    pub id: WalletId,
    pub epoch: u64,
    pub low: Height,
    pub high: Height,
    /// Version of the decoder of the trades.
    pub decoder: u16,
    /// Where the source continues below `low`.
    pub resume: Option<Resume>,
    pub proof: Proof,
    /// Listed transactions that no endpoint returned, with their heights, which become spans of
    /// their own with [`Doubts::MISSING`](crate::domain::Doubts).
    pub missing: Vec<(Height, TxId)>,
    /// The transactions that a second read of stored heights brought. Rows of others stay, because
    /// one answer without them proves nothing. `None`: the chunk replaces all of its heights.
    pub reread: Option<HashSet<TxId>>,
    /// Transactions of a second read whose inner calls the nodes no longer return. Their stored
    /// exact values stay.
    pub unshown: HashSet<TxId>,
    /// In any order; all between `low` and `high`, with ids of the wallet's family.
    pub trades: Vec<Trade>,
    /// Metadata updates; fields that a record lacks stay.
    pub tokens: Vec<TokenRecord>,
    /// Each replaces the stored state of its account.
    pub accounts: Vec<SourceAccount>,
    /// Replace the anchors of the wallet.
    pub anchors: Option<Vec<Anchor>>,
    /// Prices of the wallet's chain to be stored.
    pub prices: Vec<PriceRecord>,
    /// Native coin that moved in addition to the tokens of transactions; stored for pending rows.
    pub side_payment: HashMap<TxId, Units>,
    pub checked_at: Option<UnixMillis>,
}

/// A price of a chain's native coin to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceRecord {
    Learned(LearnedPrice),
    /// The candle source's answer for a minute; the first answer stays.
    Candle(Minute, Option<Price>),
}

/// The stored answer of the candle source for a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptCandle {
    /// The source was not queried, or its answer was removed.
    Unasked,
    /// It has no price.
    Nothing,
    Price(Price),
}

/// The value of a pending row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewValue {
    pub key: TradeKey,
    /// Units of the row when its value was computed: a row with others has changed since.
    pub units: Option<Units>,
    pub native: Option<Units>,
    pub valued: ValueSource,
}

/// A stored transaction with a pending row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedValue {
    pub id: WalletId,
    /// The epoch of the wallet when this was read.
    pub epoch: u64,
    /// All its rows.
    pub trades: Vec<Trade>,
    /// Native coin that moved in addition to its tokens.
    pub side_payment: Units,
    pub place: WantedPlace,
}

/// A place among the transactions with pending rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WantedPlace(pub(super) Vec<u8>);

impl WantedPlace {
    /// The place before all transactions of a wallet, after those of wallets with lower numbers.
    pub fn of_wallet(chain: ChainId, id: WalletId) -> Self {
        Self(wanted_of_wallet(chain, id))
    }
}

/// Changes to a wallet's record; `None` leaves a field as it is.
#[derive(Debug, Clone, Default)]
pub struct WalletPatch {
    pub pending: Option<Option<Pending>>,
    pub anchors: Option<Vec<Anchor>>,
    pub cut: Option<Option<Height>>,
    pub checked_at: Option<UnixMillis>,
    /// Inclusive heights that are no longer covered; their rows are deleted.
    pub reopen: Vec<(Height, Height)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// The write is durable: the wallet's rows and coverage after it.
    Stored { count: u64, coverage: Coverage },
    /// Nothing changed: the epoch is another one, another process holds the wallet, or the heights
    /// of a second read are no longer stored.
    Stale,
}

/// The metadata of a token, and when it was last looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    pub chain: ChainId,
    pub mint: Address,
    pub symbol: Option<Arc<str>>,
    pub decimals: Option<u8>,
    pub asked_at: Option<UnixMillis>,
}

impl TokenRecord {
    pub fn bare(chain: ChainId, mint: Address) -> Self {
        Self { chain, mint, symbol: None, decimals: None, asked_at: None }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.symbol.is_some() && self.decimals.is_some()
    }

    /// The record with the fields that `news` sets.
    pub(super) fn joined(&self, news: &Self) -> Self {
        Self {
            symbol: news.symbol.clone().or_else(|| self.symbol.clone()),
            decimals: news.decimals.or(self.decimals),
            asked_at: news.asked_at.max(self.asked_at),
            ..*news
        }
    }
}

/// Adjacent rows that a key has read: from the newest to the oldest, both inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveredRange {
    pub from: TradeKey,
    pub to: TradeKey,
}

/// The usage of one key: all ranges of one wallet, and the total over all wallets.
#[derive(Debug, Clone)]
pub struct UsageUpdate {
    pub key: KeyId,
    pub wallet: WalletId,
    /// Replaces the stored list.
    pub ranges: Vec<DeliveredRange>,
    /// Trades that the key has read, each once; replaces the stored total.
    pub total: u64,
    /// The rest of the credit of a wallet that was forgotten and loaded again.
    pub credit: Option<Credit>,
}

/// Sizes for the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStats {
    /// Length of the file, or size of the database.
    pub file_bytes: u64,
    pub rows: u64,
    pub wallets: u64,
    pub tokens: u64,
}
