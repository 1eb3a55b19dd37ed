//! Every limit of the Solana source, by name.

use std::time::Duration;

use crate::domain::defaults;

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SolanaLimits {
        /// Transactions of one reader that are requested or wait to be delivered.
        pub run_ahead_max: usize = 400,
        /// The same for all readers together.
        pub run_ahead_total_max: usize = 4000,
        /// Signatures listed ahead of the transactions.
        pub list_ahead_max: usize = 3000,
        /// Transactions of one chunk, but for a slot that holds more.
        pub chunk_max: usize = 200,
        /// Entries skipped (failed transactions) after which an empty chunk reports the progress.
        pub skipped_max: usize = 5000,
        /// Attempts for a listed transaction, or a block, that no node returns.
        pub missing_tries_max: u32 = 6,
        /// A read ends after it has delivered more than this many missing transactions in a row,
        /// without a fetched one between them, at the next missing one.
        pub missing_max: usize = 64,
        /// Pause before such an attempt, times its number.
        pub missing_pause: Duration = Duration::from_millis(300),
        /// A block this many slots below the head (about ten minutes) that is still not available
        /// counts as missing.
        pub block_late_max: u64 = 1_500,
        /// Lower slots whose block time is requested where a slot has none.
        pub time_slots_max: u64 = 8,
        /// Transactions of one reader that pages hold or request ahead, and of all readers together.
        pub page_ahead_max: usize = 6000,
        pub page_ahead_total_max: usize = 24_000,
        /// Segments that pages read in parallel: at least, and at most, where endpoints allow so
        /// many requests.
        pub segments_min: usize = 4,
        pub segments_max: usize = 16,
        /// An endpoint without usable pages is probed again after this long.
        pub full_pages_recheck: Duration = Duration::from_secs(600),
        /// Wallets to remember whose pages left a doubt.
        pub unproved_wallets_max: usize = 4096,
        /// Distances in slots below a full first page at which an estimate requests further pages
        /// (about 33 days, 7 months and 28 months), and the longest wait for them.
        pub activity_depths: [u64; 3] = [6_500_000, 40_000_000, 160_000_000],
        pub activity_wait: Duration = Duration::from_secs(3),
        /// Newest signatures that a scan requests for each wallet.
        pub scan_entries: usize = 10,
        /// Slots of one gap in which a gateway is queried for transactions that hold a wallet's
        /// token balances, and the answers that it may take: it scans about 200 slots a second.
        pub gateway_slots_max: u64 = 9_000,
        pub gateway_answers_max: usize = 32,
        /// How long rows wait for the gateway: a public one takes two requests a second.
        pub gateway_wait: Duration = Duration::from_secs(10),
        /// Wallets of one such query in a scan.
        pub gateway_wallets_max: usize = 1_500,
        /// Cooldown of an endpoint that contradicts another one.
        pub contradiction_cooldown: Duration = Duration::from_secs(600),
    }
}
