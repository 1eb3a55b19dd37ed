//! The reading side of both arms.

use std::sync::Arc;

use super::answer::{Answer, Reading};
use super::file_view::FileView;
#[cfg(feature = "postgres")]
use super::postgres::PgView;
use super::{
    Anchor, Credit, DeliveredRange, KeptCandle, Pending, StoreError, TokenRecord, WalletId,
    WalletRecord, WantedPlace, WantedValue,
};
use crate::domain::{
    Address, ChainId, Filter, Height, KeyId, LearnedPrice, Minute, Position, Rows, SourceAccount,
    TradeKey, UnixMillis, UnixSeconds, Wallet,
};

/// The stored data at one moment. Drop it soon: while a view of the file lives, the file cannot
/// reuse the pages that later commits free, so take a fresh one for each slice.
///
/// A view of the shared arm reads record and rows of a wallet in one statement where it was taken
/// by [`Store::view_at`](super::Store::view_at); where they come from two, rows that were removed
/// in between are an [`Overtaken`](StoreError::Overtaken).
#[derive(Debug)]
pub struct View(Arm);

#[derive(Debug)]
enum Arm {
    File(FileView),
    #[cfg(feature = "postgres")]
    Shared(Box<PgView>),
}

/// One read by the arm that there is.
macro_rules! by_arm {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match &$self.0 {
            Arm::File(view) => Answer::ready(view.$method($($argument),*)),
            #[cfg(feature = "postgres")]
            Arm::Shared(view) => Answer::later(view.$method($($argument),*)),
        }
    };
}

impl View {
    pub(super) fn of_file(view: FileView) -> Self {
        Self(Arm::File(view))
    }

    #[cfg(feature = "postgres")]
    pub(super) fn of_shared(view: PgView) -> Self {
        Self(Arm::Shared(Box::new(view)))
    }

    /// `None` where the wallet was never interned.
    pub fn wallet<'a>(&'a self, wallet: &'a Wallet) -> Reading<'a, Option<Arc<WalletRecord>>> {
        by_arm!(self.wallet(wallet))
    }

    /// Block hashes that a wallet's coverage stands on, in the order they were given.
    pub fn anchors(&self, id: WalletId) -> Reading<'_, Vec<Anchor>> {
        by_arm!(self.anchors(id))
    }

    /// A wallet's background demand that has not been met.
    pub fn pending_of(&self, id: WalletId) -> Reading<'_, Option<Pending>> {
        by_arm!(self.pending_of(id))
    }

    pub fn wallet_by_id(&self, id: WalletId) -> Reading<'_, Option<WalletRecord>> {
        by_arm!(self.wallet_by_id(id))
    }

    /// Up to `limit` rows behind `after`, newest first. Stops at the first row whose height is
    /// below `floor`, which is how a reader stays above a gap; that row is not among them.
    pub async fn rows(
        &self,
        id: WalletId,
        after: Position,
        floor: Height,
        limit: usize,
    ) -> Result<Rows, StoreError> {
        Ok(self.rows_in_room(id, (after, floor), limit, Rows::default()).await?.0)
    }

    /// The same behind a position and down to a floor, in room that other rows had, and whether
    /// more follow there.
    pub fn rows_in_room(
        &self,
        id: WalletId,
        part: (Position, Height),
        limit: usize,
        room: Rows,
    ) -> Reading<'_, (Rows, bool)> {
        by_arm!(self.rows_in_room(id, part, limit, room))
    }

    /// Passes over up to `limit` rows behind a position and down to a floor that certainly do not
    /// match, and returns the last of them and their number. A database returns `None`: it passes over nothing.
    pub fn pass_over(
        &self,
        id: WalletId,
        part: (Position, Height),
        filter: &Filter,
        limit: usize,
    ) -> Result<Option<(TradeKey, usize)>, StoreError> {
        match &self.0 {
            Arm::File(view) => view.pass_over(id, part, filter, limit),
            #[cfg(feature = "postgres")]
            Arm::Shared(_) => Ok(None),
        }
    }

    /// Up to `limit` rows in front of `than`, which is before them in time, oldest first; all rows
    /// from the oldest one on for [`Position::Start`].
    pub fn newer_rows(&self, id: WalletId, than: Position, limit: usize) -> Reading<'_, Rows> {
        by_arm!(self.newer_rows(id, than, limit))
    }

    /// How many rows stand above `height`, counted from the newest until the first one at or below
    /// it, at most `limit`.
    pub fn count_above(&self, id: WalletId, height: Height, limit: u64) -> Reading<'_, u64> {
        by_arm!(self.count_above(id, height, limit))
    }

    /// Block time of the oldest stored row.
    pub fn first_time(&self, id: WalletId) -> Reading<'_, Option<UnixSeconds>> {
        by_arm!(self.first_time(id))
    }

    /// `None` for a mint that no stored trade and no look-up has named.
    pub fn token<'a>(
        &'a self,
        chain: ChainId,
        mint: &'a Address,
    ) -> Reading<'a, Option<TokenRecord>> {
        by_arm!(self.token(chain, mint))
    }

    /// Up to `limit` tokens of a chain that lack a symbol or decimals and were not asked for since
    /// `asked_before`; those never asked for come first.
    pub fn tokens_wanting_symbols(
        &self,
        chain: ChainId,
        asked_before: UnixMillis,
        limit: usize,
    ) -> Reading<'_, Vec<TokenRecord>> {
        by_arm!(self.tokens_wanting_symbols(chain, asked_before, limit))
    }

    /// Up to `limit` rows of a wallet between two times, both inclusive, newest first.
    pub fn rows_between(
        &self,
        id: WalletId,
        newest: UnixSeconds,
        oldest: UnixSeconds,
        limit: usize,
    ) -> Reading<'_, Rows> {
        by_arm!(self.rows_between(id, newest, oldest, limit))
    }

    /// Up to `limit` transactions of a chain behind a place that wait for values.
    pub fn wanted_values<'a>(
        &'a self,
        chain: ChainId,
        behind: &'a WantedPlace,
        limit: usize,
    ) -> Reading<'a, Vec<WantedValue>> {
        by_arm!(self.wanted_values(chain, behind, limit))
    }

    /// Prices learned from trades between two times, both inclusive, by minute and then by tag.
    pub fn learned_prices(
        &self,
        chain: ChainId,
        from: UnixSeconds,
        to: UnixSeconds,
    ) -> Reading<'_, Vec<LearnedPrice>> {
        by_arm!(self.learned_prices(chain, from, to))
    }

    /// What the candle source returned for a minute.
    pub fn candle(&self, chain: ChainId, minute: Minute) -> Reading<'_, KeptCandle> {
        by_arm!(self.candle(chain, minute))
    }

    /// What the source remembers of a wallet, by account.
    pub fn accounts(&self, id: WalletId) -> Reading<'_, Vec<SourceAccount>> {
        by_arm!(self.accounts(id))
    }

    /// Wallets with a background demand, by number.
    pub fn pending(&self) -> Reading<'_, Vec<(WalletId, Wallet, Pending)>> {
        by_arm!(self.pending())
    }

    /// Up to `limit` wallets behind a number, in the order of their numbers.
    pub fn wallets(
        &self,
        behind: Option<WalletId>,
        limit: usize,
    ) -> Reading<'_, Vec<(WalletId, Wallet)>> {
        by_arm!(self.wallets(behind, limit))
    }

    /// The ranges of all keys and wallets.
    pub fn all_usage(&self) -> Reading<'_, Vec<(KeyId, WalletId, Vec<DeliveredRange>)>> {
        by_arm!(self.all_usage())
    }

    /// Trades that a key has read, each once.
    pub fn usage_total(&self, key: KeyId) -> Reading<'_, u64> {
        by_arm!(self.usage_total(key))
    }

    /// The ranges last written for a key and a wallet.
    pub fn usage(&self, key: KeyId, id: WalletId) -> Reading<'_, Vec<DeliveredRange>> {
        by_arm!(self.usage(key, id))
    }

    /// What a key has counted of the wallet before it was forgotten.
    pub fn credit(&self, key: KeyId, id: WalletId) -> Reading<'_, Option<Credit>> {
        by_arm!(self.credit(key, id))
    }
}
