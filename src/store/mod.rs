//! The store of trades: one file with one writer thread (`file_store.rs`), or a database that
//! several processes share (`postgres`). The only code that names redb, bincode and tokio-postgres.
//!
//! Invariants:
//! - A write is durable before it is answered, and atomic.
//! - Rows of a wallet exist only at heights that its coverage holds, in the same transaction.
//! - A write with another epoch than the wallet's changes nothing.
//! - A chunk replaces: rows between its heights are deleted, whether or not times and heights agree
//!   (`rows.rs`); one that lies below everything stored reads nothing.
//! - A derived value is set once: a chunk that replaces its row with the same one keeps it.
//! - Reopening heights deletes their rows. A reader that keeps to a `floor` never crosses a gap.
//! - Numbers of wallets, tokens and venues are never given twice.
//! - Reading never waits for writing; no lock is held across an await.

mod apply;
mod backup;
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
mod maintenance;
#[cfg(feature = "postgres")]
mod postgres;
mod prices;
mod read_only;
mod reader_cache;
mod record;
mod rejected_rows;
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

pub use credit::Credit;
pub(crate) use disk::{create_private_folder, make_private, private_file};
pub use error::{StoreError, StoreFailure};
pub use maintenance::StoreSize;
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

type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Name of the file inside the data folder.
pub const FILE_NAME: &str = "trades.redb";

defaults! {
    /// Every limit of the store, by name; none of them is a setting.
    #[derive(Debug)]
    pub const LIMITS: struct StoreLimits {
        /// Requests that wait for the writer; further callers wait before they enqueue theirs.
        queued_jobs: usize = 256,
        /// Records after which no further request joins a commit.
        joined_records: usize = 20_000,
        /// Tokens, and as many venues, whose numbers the writer caches.
        interned: usize = 65_536,
        /// Tokens, and as many venues, that readers cache.
        cached_names: usize = 16_384,
        /// Tokens, and as many venues, that one slice caches.
        slice_names: usize = 256,
        /// Wallets that readers cache between two commits.
        snapshot_records: usize = 1_024,
        /// Rows for which a slice allocates memory in advance.
        slice_rows: usize = 1_024,
        /// Minutes, over all chains, with learned prices, and as many with candles.
        price_minutes: u64 = 100_000,
        /// Learned prices of one minute.
        prices_per_minute: usize = 8,
        /// Records that wait to be written to a compacted copy; more abort the compaction.
        journal_records: usize = 2_000_000,
        /// With at most this many records left, the copy replaces the file while writes wait.
        journal_records_last: usize = 2_000,
        /// Longest time for which a replaced file is kept open for snapshots.
        retired_wait: Duration = Duration::from_secs(60),
    }
}

#[derive(Debug, Clone, Copy)]
pub struct StoreOptions {
    /// Page cache of the file.
    pub cache_bytes: usize,
}

/// An open store; clones share it. Dropping the last clone of a file's store finishes the requests
/// and closes the file, which blocks for the time of a commit.
#[derive(Debug, Clone)]
pub struct Store(Arm);

#[derive(Debug, Clone)]
enum Arm {
    File(FileStore),
    #[cfg(feature = "postgres")]
    Shared(PgStore),
}

/// Calls a method of the arm.
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
    /// Opens the store in a data folder, and creates folder (0700) and file (0600). Blocks.
    ///
    /// # Errors
    /// `Locked` while another process has it, `NewerFormat` and `Foreign` for a file that this
    /// program must not touch, `Io` for the rest.
    pub fn open(folder: &Path, options: StoreOptions) -> Result<Self> {
        let file = file::open_file(&folder.join(FILE_NAME), options)?;
        let store = FileStore::start(file, options, false)?;
        // Only once the store is open: until then it may be another server's copy.
        compaction::remove_leftover(folder);
        Ok(Self(Arm::File(store)))
    }

    /// Opens the store on another backend than a file, for tests of crashes and faults.
    pub fn on_backend(backend: impl StorageBackend, options: StoreOptions) -> Result<Self> {
        FileStore::start(file::open_backend(backend)?, options, false).map(Arm::File).map(Self)
    }

    /// Like [`Store::on_backend`], but a write blocks its caller's thread: paused time would
    /// advance while a task waits for another thread.
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

    /// A view of what is stored now. Blocks for a short time on a file.
    pub fn view(&self) -> Result<View> {
        self.open_view(None)
    }

    /// Replaces what is stored between the chunk's heights: rows, coverage and count change in one
    /// transaction. A file's writer completes it even when the caller stops waiting.
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

    /// Finishes the requests, closes the store and ends its writer; further calls get `Closed`, and
    /// open views get errors.
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

/// Declares writes that both arms have.
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
    /// The record of a wallet; a new one is created.
    intern(wallet: &Wallet) -> WalletRecord;

    /// Changes the record. Reopened heights lose their rows at once, so that rows exist only at
    /// covered heights. Where no height stays covered, the accounts of the source are deleted too.
    update_wallet(id: WalletId, epoch: u64, patch: WalletPatch) -> Written;

    /// Rolls a wallet back: deletes rows, coverage and anchors above a height and, where heights
    /// above it were covered, the balances of the source's accounts. Raises and returns the epoch.
    cut_back(id: WalletId, above: Height) -> u64;

    /// Writes all updates in one transaction.
    write_usage(updates: Vec<UsageUpdate>) -> ();

    /// Adds metadata of tokens; fields that a record lacks stay.
    write_tokens(tokens: Vec<TokenRecord>) -> ();

    /// Sets the values of pending rows, and stores prices. A row that is not pending, or has
    /// changed meanwhile, stays as it is.
    write_values(
        id: WalletId, epoch: u64, values: Vec<NewValue>, prices: Vec<PriceRecord>
    ) -> Written;
}
