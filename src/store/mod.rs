//! The stored trades, in one file with one writer thread (`file_store.rs`) or in a database that
//! several processes share (`postgres`). The only code that names redb, bincode and tokio-postgres.
//!
//! Invariants:
//! - A write is durable before it is answered, and is there whole or not at all.
//! - Rows of a wallet exist only at heights that its coverage holds, in the same transaction.
//! - A write that carries another epoch than the wallet's changes nothing.
//! - A chunk replaces: rows between its heights are deleted, whether or not times and heights agree
//!   (`rows.rs`); one that lies below everything stored reads nothing.
//! - A value that its transaction does not contain is set once: a chunk that replaces its row with
//!   the same one keeps it.
//! - What reopens heights deletes their rows. A reader that keeps to a `floor` never crosses a gap.
//! - Numbers of wallets, tokens and venues are never given twice.
//! - Reading never waits for writing; no lock is held across an await.

mod apply;
mod backup;
mod care;
mod codec;
#[cfg(test)]
mod codec_properties;
mod compaction;
mod credit;
mod disk;
mod error;
mod file;
mod file_store;
mod file_view;
mod forget;
#[cfg(fuzzing)]
pub mod fuzzing;
mod intern;
mod job;
mod journal;
mod key;
mod listing;
mod memo;
mod passing;
#[cfg(feature = "postgres")]
mod postgres;
mod prices;
mod read_only;
mod record;
mod rows;
mod schema;
mod share;
mod sharing;
mod snapshot;
mod trade_codec;
pub mod transfer;
mod upgrade;
pub mod upkeep;
mod values;
mod view;
mod writer;

use std::path::Path;
use std::time::Duration;

use futures_util::future::{Either, ready};
use redb::StorageBackend;

use crate::domain::{Height, Wallet, defaults};

pub use care::StoreSize;
pub use credit::Credit;
pub(crate) use disk::{create_private_folder, make_private, private_file};
pub use error::{StoreError, StoreFailure};
#[cfg(feature = "postgres")]
pub use postgres::SharedOptions;
pub use record::{
    Anchor, Chunk, DeliveredRange, KeptCandle, NewValue, Pending, PriceRecord, StoreStats,
    TokenRecord, UsageUpdate, WalletId, WalletPatch, WalletRecord, WantedPlace, WantedValue,
    Written,
};
pub use share::Share;
pub use sharing::Counted;
pub use view::{Reading, View};

use file_store::FileStore;
#[cfg(feature = "postgres")]
use postgres::PgStore;

/// What the store returns.
type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Name of the file inside the data folder.
pub const FILE_NAME: &str = "trades.redb";

defaults! {
    /// Every limit of the store, by name; none of them is a setting.
    #[derive(Debug)]
    pub const LIMITS: struct StoreLimits {
        /// Requests that wait for the writer; the next caller waits until there is room.
        queued_jobs: usize = 256,
        /// Records after which no further request joins a commit.
        joined_records: usize = 20_000,
        /// Tokens and venues each whose numbers the writer keeps in memory.
        interned: usize = 65_536,
        /// Tokens and venues each that readers keep in memory.
        memo_entries: usize = 16_384,
        /// Tokens and venues each that one slice keeps at hand.
        slice_names: usize = 256,
        /// Wallets that readers keep in memory between two commits.
        snapshot_records: usize = 1_024,
        /// Rows for which a slice makes room before it reads them.
        slice_rows: usize = 1_024,
        /// Minutes, over all chains, whose learned prices are kept, and as many of candles.
        price_minutes: u64 = 100_000,
        /// Learned prices of one minute.
        prices_per_minute: usize = 8,
        /// Records that wait to be written to a compacted copy as well; above it the copy is given up.
        journal_records: usize = 2_000_000,
        /// With fewer of them the copy takes the place of the file, which holds up writes meanwhile.
        journal_records_last: usize = 2_000,
        /// Longest that a file is kept open for snapshots after another took its place.
        retired_wait: Duration = Duration::from_secs(60),
    }
}

#[derive(Debug, Clone, Copy)]
pub struct StoreOptions {
    /// Memory for pages of the file.
    pub cache_bytes: usize,
}

/// The open store; clones share it. Dropping the last one of a file writes what was sent and closes
/// the file, which blocks for the time of a commit.
#[derive(Debug, Clone)]
pub struct Store(Arm);

#[derive(Debug, Clone)]
enum Arm {
    File(FileStore),
    #[cfg(feature = "postgres")]
    Shared(PgStore),
}

/// One write by the arm that there is.
macro_rules! by_arm {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match &$self.0 {
            Arm::File(store) => store.$method($($argument),*).await,
            #[cfg(feature = "postgres")]
            Arm::Shared(store) => Box::pin(store.$method($($argument),*)).await,
        }
    };
}

impl Store {
    /// Opens the store in a data folder, creating folder (mode 0700) and file (0600) where they
    /// are missing. Blocks.
    ///
    /// # Errors
    /// `Locked` while another process has it, `NewerFormat` and `Foreign` for a file that this
    /// program must not touch, `Io` for the rest.
    pub fn open(folder: &Path, options: StoreOptions) -> Result<Self> {
        let file = file::open_file(&folder.join(FILE_NAME), options)?;
        let store = FileStore::start(file, options, false)?;
        // Not before the store is open: it may be another server's copy.
        compaction::remove_leftover(folder);
        Ok(Self(Arm::File(store)))
    }

    /// Opens the store on something else than a file, as tests of crashes and faults do.
    pub fn on_backend(backend: impl StorageBackend, options: StoreOptions) -> Result<Self> {
        FileStore::start(file::open_backend(backend)?, options, false).map(Arm::File).map(Self)
    }

    /// Like [`Store::on_backend`], but a write blocks its caller's thread: on paused time a task
    /// that waited for another thread would let the time run away.
    pub fn in_step(backend: impl StorageBackend, options: StoreOptions) -> Result<Self> {
        FileStore::start(file::open_backend(backend)?, options, true).map(Arm::File).map(Self)
    }

    /// Opens the store in a data folder, with writes that block their caller's thread.
    pub fn open_in_step(folder: &Path, options: StoreOptions) -> Result<Self> {
        let file = file::open_file(&folder.join(FILE_NAME), options)?;
        FileStore::start(file, options, true).map(Arm::File).map(Self)
    }

    /// Connects to a database that several processes may share, and brings its schema up to date.
    #[cfg(feature = "postgres")]
    pub async fn connect(options: &SharedOptions) -> Result<Self> {
        PgStore::connect(options).await.map(Arm::Shared).map(Self)
    }

    /// What is stored now. Blocking and quick for a file; see [`View`].
    pub fn view(&self) -> Result<View> {
        match &self.0 {
            Arm::File(store) => store.view().map(View::of_file),
            #[cfg(feature = "postgres")]
            Arm::Shared(store) => Ok(View::of_shared(store.view())),
        }
    }

    /// Replaces what is stored between the chunk's heights: rows, coverage and count change in one
    /// transaction. Once sent to a file, it is written even where the caller stops waiting.
    ///
    /// # Errors
    /// `Invalid` for a chunk that contradicts itself. After `Io` the chunk may be stored or not;
    /// writing it again is safe.
    pub async fn write_chunk(&self, chunk: Chunk) -> Result<Written> {
        let Chunk { id, low, high, .. } = chunk;
        let is_gap = chunk.reread.is_none() && chunk.checked_at.is_none();
        let written = by_arm!(self.write_chunk(chunk));
        if let Ok(Written::Stored { count, .. }) = &written {
            tracing::debug!(wallet = id.0, low, high, count, is_gap, "a chunk was stored");
        }
        written
    }

    /// Writes what was sent, closes the store and ends its writer; further calls get `Closed`, and
    /// views that are still open get errors.
    pub async fn close(&self) {
        by_arm!(self.close());
    }

    /// Sizes for the metrics.
    pub fn stats(&self) -> Reading<'_, StoreStats> {
        match &self.0 {
            Arm::File(store) => Either::Left(ready(store.stats())),
            #[cfg(feature = "postgres")]
            Arm::Shared(store) => Either::Right(Box::pin(store.stats())),
        }
    }
}

/// Writes that both arms have, each by the arm that there is.
macro_rules! writes {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl Store {
            $($(#[$doc])*
            pub async fn $name(&self, $($argument: $type),*) -> Result<$result> {
                by_arm!(self.$name($($argument),*))
            })*
        }
    };
}

writes! {
    /// The record of a wallet, which is created where it is missing.
    intern(wallet: &Wallet) -> WalletRecord;

    /// Changes the record. Reopened heights lose their rows at once, so that rows never stand at
    /// heights which are not covered; a reader would not have reached them behind the gap. Where
    /// none stays covered, what the source remembers of the wallet goes too.
    update_wallet(id: WalletId, epoch: u64, patch: WalletPatch) -> Written;

    /// Deletes rows, coverage and anchors above a height, and where heights above it were covered the
    /// balances that the source remembers of the wallet's accounts. Raises the epoch, which is returned.
    cut_back(id: WalletId, above: Height) -> u64;

    /// Writes all updates in one transaction.
    write_usage(updates: Vec<UsageUpdate>) -> ();

    /// Adds what is newly known of tokens; what is known already stays.
    write_tokens(tokens: Vec<TokenRecord>) -> ();

    /// Gives values to rows that wait for them, and keeps the prices met on the way. A row that has
    /// a value, or changed meanwhile, stays as it is.
    write_values(
        id: WalletId, epoch: u64, values: Vec<NewValue>, prices: Vec<PriceRecord>
    ) -> Written;
}
