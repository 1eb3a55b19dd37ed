//! What goes into the store and what comes out of it, besides the domain's own types.

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

/// What is known about a wallet's history as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletRecord {
    pub id: WalletId,
    pub wallet: Wallet,
    /// Raised by every cut-back; a write that carries another one changes nothing.
    pub epoch: u64,
    /// Rows exist only at covered heights.
    pub coverage: Coverage,
    /// Stored trades, gaps or not.
    pub count: u64,
    /// When the source was last asked for new heights.
    pub checked_at: Option<UnixMillis>,
    /// The first height that the nodes keep, where history is cut.
    pub cut: Option<Height>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    pub height: Height,
    pub hash: [u8; 32],
}

/// A load that goes on in the background for a key until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    pub key: KeyId,
    pub until: UnixMillis,
}

/// Everything that is known of the wallet between two inclusive heights: it replaces what was
/// stored there.
#[derive(Debug, Clone, Default)]
pub struct Chunk {
    pub id: WalletId,
    pub epoch: u64,
    pub low: Height,
    pub high: Height,
    /// Version of the decoder that made the trades.
    pub decoder: u16,
    /// How the source goes on below `low`.
    pub resume: Option<Resume>,
    /// What the read rests on.
    pub proof: Proof,
    /// Listed transactions that no endpoint gave, with their heights: these heights become spans of
    /// their own, with [`Doubts::MISSING`](crate::domain::Doubts).
    pub missing: Vec<(Height, TxId)>,
    /// A second read of stored heights: the transactions that it brought. Rows of others stay, as one
    /// answer without them proves nothing. `None`: the chunk replaces all of its heights.
    pub reread: Option<HashSet<TxId>>,
    /// Of a second read: transactions of which the nodes no longer show what moved inside them in native
    /// coin. Exact values that are stored of them stay.
    pub unshown: HashSet<TxId>,
    /// In any order; all between `low` and `high`, with ids of the wallet's family.
    pub trades: Vec<Trade>,
    /// Metadata updates; fields that a record does not set are kept.
    pub tokens: Vec<TokenRecord>,
    /// Replace those of the same account.
    pub accounts: Vec<SourceAccount>,
    /// Replace those of the wallet.
    pub anchors: Option<Vec<Anchor>>,
    /// Prices of the wallet's chain that were met on the way.
    pub prices: Vec<PriceRecord>,
    /// Native coin that moved in addition to the tokens of transactions: stored for rows that wait
    /// for a value.
    pub side_payment: HashMap<TxId, Units>,
    pub checked_at: Option<UnixMillis>,
}

/// A price of a chain's native coin to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceRecord {
    Learned(LearnedPrice),
    /// The candle source's answers for a minute; the first answer stays.
    Candle(Minute, Option<Price>),
}

/// What is kept of the candle source's answers about a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptCandle {
    /// It was not asked, or its answer has gone since.
    Unasked,
    /// It has no price.
    Nothing,
    Price(Price),
}

/// A row that has waited for its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewValue {
    pub key: TradeKey,
    /// As the row had them when its value was worked out: another decoder may have changed it.
    pub units: Option<Units>,
    pub native: Option<Units>,
    pub valued: ValueSource,
}

/// A stored transaction with a row that waits for its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedValue {
    pub id: WalletId,
    /// Of the wallet when this was read.
    pub epoch: u64,
    /// All its rows.
    pub trades: Vec<Trade>,
    /// Native coin that moved in addition to its tokens.
    pub side_payment: Units,
    /// Where it stands among those that wait.
    pub place: WantedPlace,
}

/// A place among the transactions that wait for values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WantedPlace(pub(super) Vec<u8>);

impl WantedPlace {
    /// In front of all of a wallet, behind those of wallets with lower numbers.
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

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It is durable; the wallet's rows and coverage after it.
    Stored { count: u64, coverage: Coverage },
    /// The wallet was cut back since; nothing changed.
    Stale,
}

/// What is known about a token, and when its chain was last asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    pub chain: ChainId,
    pub mint: Address,
    pub symbol: Option<Arc<str>>,
    pub decimals: Option<u8>,
    pub asked_at: Option<UnixMillis>,
}

impl TokenRecord {
    /// Of a token of which nothing is known.
    pub fn bare(chain: ChainId, mint: Address) -> Self {
        Self { chain, mint, symbol: None, decimals: None, asked_at: None }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.symbol.is_some() && self.decimals.is_some()
    }

    /// What is known after news: they add, and take nothing away.
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
    /// What is left of the credit of a wallet that was forgotten and loaded again.
    pub credit: Option<Credit>,
}

/// Sizes for the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStats {
    /// Length of the file.
    pub file_bytes: u64,
    pub rows: u64,
    pub wallets: u64,
    pub tokens: u64,
}
