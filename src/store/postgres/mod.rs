//! The shared arm: a `PostgreSQL` database that several processes use as one store.
//!
//! Invariants across processes:
//! - A wallet's rows, coverage and count change in one transaction that locks its state. A write is
//!   stale where the epoch differs or another process holds the wallet.
//! - A record and its rows are read by one statement; a removal of rows between two statements of
//!   one view is `Overtaken`.
//! - Each call has a deadline on the client. Transient failures are retried; each write can be
//!   retried after its answer was lost.
//! - Caches are of one timeline of the database: on a connection of another one, after a failover,
//!   they are cleared, and numbers that may have been lost are never given again.
//! - Every statement except those on names, prices and keys concerns one wallet.

mod accounts;
mod address;
mod call;
mod connect;
mod documents;
mod failures;
mod forget;
mod lease;
mod leasing;
mod listing;
mod name_cache;
mod names;
mod prices;
mod schema;
mod session;
mod slice;
mod store;
mod timeline;
mod usage;
mod values;
mod view;
mod write;

use std::time::Duration;

use crate::domain::defaults;

pub use connect::SharedOptions;
pub(super) use store::PgStore;
pub(super) use view::PgView;

defaults! {
    /// Every limit of this arm, by name; none of them is a setting.
    #[derive(Debug)]
    const LIMITS: struct SharedLimits {
        /// Timeout of a connection attempt.
        connect_wait: Duration = Duration::from_secs(3),
        /// Pause between two attempts at a host that refuses, while another one is silent.
        host_pause: Duration = Duration::from_millis(250),
        /// Timeout of a call; a suspended server keeps its connections open.
        call_wait: Duration = Duration::from_secs(5),
        /// How long transient failures of a call are retried; covers a failover.
        retry_for: Duration = Duration::from_secs(20),
        /// The same once an outage has lasted that long: a request makes several calls, one after
        /// the other.
        retry_in_outage: Duration = Duration::from_secs(5),
        /// Shortest and longest pause between two attempts.
        pause_min: Duration = Duration::from_millis(20),
        pause_max: Duration = Duration::from_millis(500),
        /// Numbers of wallets in the cache.
        wallets_known: usize = 65_536,
        /// Cached states of wallets that this process writes, for its next write.
        states_known: usize = 4_096,
        /// Tokens, and as many venues, cached by number and by name.
        names_known: usize = 65_536,
        /// How long a cached token without symbol or decimals is valid.
        names_refresh: Duration = Duration::from_secs(2),
        /// Most rows that one statement returns.
        rows_per_statement: usize = 1_000_000,
        /// Rows of a forgotten wallet that one transaction deletes.
        forgotten_rows: i64 = 5_000,
        /// Time after its last heartbeat for which a process holds its wallets.
        lease: Duration = Duration::from_secs(10),
        heartbeat: Duration = Duration::from_secs(2),
        /// Interval after a failed heartbeat.
        heartbeat_pause: Duration = Duration::from_millis(200),
    }
}
