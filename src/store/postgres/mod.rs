//! The shared arm: a `PostgreSQL` database that several processes use as one store.
//!
//! What holds across processes:
//! - A wallet's rows, coverage and count change in one transaction, under the row of its state. A
//!   write is refused as stale where the epoch is another one or another process holds the wallet.
//! - A record and its rows are read by one statement; rows that were removed between two statements
//!   of one view are `Overtaken`.
//! - Each call has a deadline on this side. What failed for a passing reason is repeated; each write
//!   may be repeated after an answer that was lost.
//! - What is remembered is of one timeline of the database: on a connection of another one, after a
//!   failover, it is forgotten, and numbers that may have been lost are never given again.
//! - Every statement but those on names, prices and keys concerns one wallet.

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
        /// Until a connection is made.
        connect_wait: Duration = Duration::from_secs(3),
        /// Between two attempts at a host that refuses, while another one is silent.
        host_pause: Duration = Duration::from_millis(250),
        /// Until a call is answered; a stopped server keeps its connections.
        call_wait: Duration = Duration::from_secs(5),
        /// How long calls are repeated that fail for a passing reason, a failover among them.
        patience: Duration = Duration::from_secs(20),
        /// First and longest pause between two of them.
        pause_min: Duration = Duration::from_millis(20),
        pause_max: Duration = Duration::from_millis(500),
        /// Numbers of wallets kept in memory.
        wallets_known: usize = 65_536,
        /// States of wallets that this process writes, kept for its next write.
        states_known: usize = 4_096,
        /// Tokens and venues each, kept by number and by name.
        names_known: usize = 65_536,
        /// How long a token that lacks a symbol or decimals is believed to lack it.
        names_refresh: Duration = Duration::from_secs(2),
        /// Rows that one statement returns.
        rows_per_statement: usize = 1_000_000,
        /// Rows that one transaction takes from a wallet that is forgotten.
        forgotten_rows: i64 = 5_000,
        /// How long a process holds its wallets after it was last heard of.
        lease: Duration = Duration::from_secs(10),
        /// How often it says that it lives.
        heartbeat: Duration = Duration::from_secs(2),
        /// The same after a heartbeat that failed.
        heartbeat_pause: Duration = Duration::from_millis(200),
    }
}
