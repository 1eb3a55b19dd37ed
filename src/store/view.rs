//! Reads of both arms.

use std::sync::Arc;

use futures_util::future::{BoxFuture, Either, Ready, ready};

use super::file_view::FileView;
use super::key::{RowBounds, RowKey};
#[cfg(feature = "postgres")]
use super::postgres::PgView;
use super::{
    Anchor, Credit, DeliveredRange, KeptCandle, Pending, Result, TokenRecord, WalletId,
    WalletRecord, WantedPlace, WantedValue,
};
use crate::domain::{
    Address, ChainId, Filter, Height, KeyId, LearnedPrice, Minute, Position, Rows, SourceAccount,
    TradeKey, UnixMillis, UnixSeconds, Wallet,
};

/// The outcome of a read: ready at once for the embedded arm, and boxed for the shared one, so that
/// callers' futures do not contain it.
pub type Reading<'a, T> = Either<Ready<Result<T>>, BoxFuture<'a, Result<T>>>;

/// The stored data at one moment. Take a new view for each slice: while one of the file lives, the
/// file cannot reuse pages that later commits free.
///
/// A view of the shared arm reads a wallet's record and rows in one statement if it is of
/// [`Store::view_at`](super::Store::view_at); otherwise a removal of rows between two statements is
/// an [`Overtaken`](super::StoreError::Overtaken).
#[derive(Debug)]
pub struct View(Arm);

#[derive(Debug)]
enum Arm {
    File(FileView),
    #[cfg(feature = "postgres")]
    Shared(Box<PgView>),
}

impl View {
    pub(super) fn of_file(view: FileView) -> Self {
        Self(Arm::File(view))
    }

    #[cfg(feature = "postgres")]
    pub(super) fn of_shared(view: PgView) -> Self {
        Self(Arm::Shared(Box::new(view)))
    }

    /// Up to `limit` rows behind `after`, newest first. Ends before the first row whose height is
    /// below `floor`, so that a reader stays above a gap.
    pub async fn rows(
        &self,
        id: WalletId,
        after: Position,
        floor: Height,
        limit: usize,
    ) -> Result<Rows> {
        Ok(self.rows_into(id, (after, floor), limit, Rows::default()).await?.0)
    }

    /// Up to `limit` rows that stand before `than`, oldest first; from the oldest row on for
    /// [`Position::Start`].
    pub fn newer_rows(&self, id: WalletId, than: Position, limit: usize) -> Reading<'_, Rows> {
        self.rows_in(id, (RowKey::start(id), RowKey::above(id, than)), limit, false)
    }

    /// Up to `limit` rows of a wallet between two times, both inclusive, newest first.
    pub fn rows_between(
        &self,
        id: WalletId,
        newest: UnixSeconds,
        oldest: UnixSeconds,
        limit: usize,
    ) -> Reading<'_, Rows> {
        self.rows_in(id, RowKey::between(id, newest, oldest), limit, true)
    }

    /// The height of the newest of a wallet's `rows` oldest rows; `None` where it has fewer. A
    /// wallet is deleted in parts by reopening its heights up to there.
    pub async fn oldest_part(&self, id: WalletId, rows: usize) -> Result<Option<Height>> {
        let oldest = self.newer_rows(id, Position::Start, rows).await?;
        let newest = oldest.bare().last().filter(|_| oldest.len() >= rows);
        Ok(newest.map(|row| row.key.height))
    }

    /// Skips up to `limit` rows behind a position and down to a floor that certainly do not match,
    /// and returns the last of them and their number. A shared store skips none.
    pub fn pass_over(
        &self,
        id: WalletId,
        part: (Position, Height),
        filter: &Filter,
        limit: usize,
    ) -> Result<Option<(TradeKey, usize)>> {
        match &self.0 {
            Arm::File(view) => view.read(|view| view.pass_over(id, part, filter, limit)),
            #[cfg(feature = "postgres")]
            Arm::Shared(_) => Ok(None),
        }
    }
}

/// Declares reads that both arms have.
macro_rules! reads {
    ($($(#[$doc:meta])* $visible:vis $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl View {
            $($(#[$doc])*
            $visible fn $name<'a>(&'a self, $($argument: $type),*) -> Reading<'a, $result> {
                match &self.0 {
                    Arm::File(view) => {
                        Either::Left(ready(view.read(|view| view.$name($($argument),*))))
                    }
                    #[cfg(feature = "postgres")]
                    Arm::Shared(view) => Either::Right(Box::pin(view.$name($($argument),*))),
                }
            })*
        }
    };
}

reads! {
    /// `None` where the wallet was never interned.
    pub wallet(wallet: &'a Wallet) -> Option<Arc<WalletRecord>>;

    /// The anchors of a wallet, in the order of their write.
    pub anchors(id: WalletId) -> Vec<Anchor>;

    /// A wallet's background demand that has not been met.
    pub pending_of(id: WalletId) -> Option<Pending>;

    pub wallet_by_id(id: WalletId) -> Option<WalletRecord>;

    /// As [`View::rows`], into the memory of `room`; also returns whether more rows follow.
    pub rows_into(id: WalletId, part: (Position, Height), limit: usize, buffer: Rows) -> (Rows, bool);

    /// Up to `limit` rows between two bounds, newest first or oldest first.
    rows_in(id: WalletId, bounds: RowBounds, limit: usize, newest_first: bool) -> Rows;

    /// How many rows precede the first one at or below `height`, newest first, at most `limit`.
    pub count_above(id: WalletId, height: Height, limit: u64) -> u64;

    /// Block time of the oldest stored row.
    pub first_time(id: WalletId) -> Option<UnixSeconds>;

    /// `None` for a mint without a stored trade or look-up.
    pub token(chain: ChainId, mint: &'a Address) -> Option<TokenRecord>;

    /// Up to `limit` tokens of a chain that lack a symbol or decimals and were not looked up since
    /// `asked_before`; those that never were come first.
    pub tokens_wanting_symbols(
        chain: ChainId, asked_before: UnixMillis, limit: usize
    ) -> Vec<TokenRecord>;

    /// Up to `limit` transactions of a chain with pending rows, behind a place.
    pub wanted_values(chain: ChainId, behind: &'a WantedPlace, limit: usize) -> Vec<WantedValue>;

    /// Prices learned from trades between two times, both inclusive, by minute and then by tag.
    pub learned_prices(chain: ChainId, from: UnixSeconds, to: UnixSeconds) -> Vec<LearnedPrice>;

    pub candle(chain: ChainId, minute: Minute) -> KeptCandle;

    pub accounts(id: WalletId) -> Vec<SourceAccount>;

    /// Wallets with a background demand, by number.
    pub pending() -> Vec<(WalletId, Wallet, Pending)>;

    /// Up to `limit` wallets with numbers above `behind`, by number.
    pub wallets(behind: Option<WalletId>, limit: usize) -> Vec<(WalletId, Wallet)>;

    pub all_usage() -> Vec<(KeyId, WalletId, Vec<DeliveredRange>)>;

    /// Trades that a key has read, each once.
    pub usage_total(key: KeyId) -> u64;

    /// The ranges last written for a key and a wallet.
    pub usage(key: KeyId, id: WalletId) -> Vec<DeliveredRange>;

    /// The credit of a key for the wallet, if it was forgotten.
    pub credit(key: KeyId, id: WalletId) -> Option<Credit>;
}
