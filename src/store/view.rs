//! Reads of both arms.

use std::sync::Arc;

use futures_util::future::{BoxFuture, Either, Ready, ready};

use super::file_view::FileView;
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
        Ok(self.rows_in_room(id, (after, floor), limit, Rows::default()).await?.0)
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
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        #[expect(clippy::elidable_lifetime_names, reason = "arguments of some reads have it")]
        impl View {
            $($(#[$doc])*
            pub fn $name<'a>(&'a self, $($argument: $type),*) -> Reading<'a, $result> {
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
    wallet(wallet: &'a Wallet) -> Option<Arc<WalletRecord>>;

    /// The anchors of a wallet, in the order of their write.
    anchors(id: WalletId) -> Vec<Anchor>;

    /// A wallet's background demand that has not been met.
    pending_of(id: WalletId) -> Option<Pending>;

    wallet_by_id(id: WalletId) -> Option<WalletRecord>;

    /// As [`View::rows`], into the memory of `room`; also returns whether more rows follow.
    rows_in_room(id: WalletId, part: (Position, Height), limit: usize, room: Rows) -> (Rows, bool);

    /// Up to `limit` rows that stand before `than`, oldest first; from the oldest row on for
    /// [`Position::Start`].
    newer_rows(id: WalletId, than: Position, limit: usize) -> Rows;

    /// How many rows precede the first one at or below `height`, newest first, at most `limit`.
    count_above(id: WalletId, height: Height, limit: u64) -> u64;

    /// Block time of the oldest stored row.
    first_time(id: WalletId) -> Option<UnixSeconds>;

    /// `None` for a mint without a stored trade or look-up.
    token(chain: ChainId, mint: &'a Address) -> Option<TokenRecord>;

    /// Up to `limit` tokens of a chain that lack a symbol or decimals and were not looked up since
    /// `asked_before`; those that never were come first.
    tokens_wanting_symbols(
        chain: ChainId, asked_before: UnixMillis, limit: usize
    ) -> Vec<TokenRecord>;

    /// Up to `limit` rows of a wallet between two times, both inclusive, newest first.
    rows_between(id: WalletId, newest: UnixSeconds, oldest: UnixSeconds, limit: usize) -> Rows;

    /// Up to `limit` transactions of a chain with pending rows, behind a place.
    wanted_values(chain: ChainId, behind: &'a WantedPlace, limit: usize) -> Vec<WantedValue>;

    /// Prices learned from trades between two times, both inclusive, by minute and then by tag.
    learned_prices(chain: ChainId, from: UnixSeconds, to: UnixSeconds) -> Vec<LearnedPrice>;

    candle(chain: ChainId, minute: Minute) -> KeptCandle;

    /// The accounts of a wallet.
    accounts(id: WalletId) -> Vec<SourceAccount>;

    /// Wallets with a background demand, by number.
    pending() -> Vec<(WalletId, Wallet, Pending)>;

    /// Up to `limit` wallets with numbers above `behind`, by number.
    wallets(behind: Option<WalletId>, limit: usize) -> Vec<(WalletId, Wallet)>;

    /// The ranges of all keys and wallets.
    all_usage() -> Vec<(KeyId, WalletId, Vec<DeliveredRange>)>;

    /// Trades that a key has read, each once.
    usage_total(key: KeyId) -> u64;

    /// The ranges last written for a key and a wallet.
    usage(key: KeyId, id: WalletId) -> Vec<DeliveredRange>;

    /// The credit of a key for the wallet, if it was forgotten.
    credit(key: KeyId, id: WalletId) -> Option<Credit>;
}
