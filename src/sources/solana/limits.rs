//! Every limit of the Solana source, by name.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SolanaLimits {
    /// Transactions of one reader that are asked for or wait to be delivered.
    pub run_ahead_max: usize,
    /// The same for all readers together.
    pub run_ahead_total_max: usize,
    /// Signatures listed ahead of the transactions.
    pub list_ahead_max: usize,
    /// Transactions of one chunk, but for a slot that holds more.
    pub chunk_max: usize,
    /// Entries skipped (failed transactions) after which an empty chunk reports the progress.
    pub skipped_max: usize,
    /// Tries for a listed transaction that no node gives.
    pub missing_tries_max: u32,
    /// Those that one read sets aside; more are an error.
    pub missing_max: usize,
    /// Pause before such a try, times its number.
    pub missing_pause: Duration,
    /// Lower slots that are asked for a block time where a slot has none.
    pub time_slots_max: u64,
    /// Transactions of one reader that pages hold or request ahead, and of all readers together.
    pub page_ahead_max: usize,
    pub page_ahead_total_max: usize,
    /// Segments that pages read at once: at least, and where endpoints take so many requests.
    pub segments_min: usize,
    pub segments_max: usize,
    /// An endpoint without usable pages is asked again after this long.
    pub full_pages_recheck: Duration,
    /// Wallets remembered whose pages left a doubt.
    pub unproved_wallets_max: usize,
    /// Slots below a full first page from which an estimate asks for further pages (about 33 days, 7
    /// months and 28 months), and the longest wait for those.
    pub activity_depths: [u64; 3],
    pub activity_wait: Duration,
    /// Newest signatures that a scan asks for of each wallet.
    pub scan_entries: usize,
    /// Slots of one gap of which a gateway is asked for the transactions that hold a wallet's token
    /// balances, and the answers that it may take: it scans them at about 200 slots a second.
    pub gateway_slots_max: u64,
    pub gateway_answers_max: usize,
    /// How long rows wait for it: a public gateway takes two requests a second.
    pub gateway_wait: Duration,
    /// Wallets of one such query of a scan.
    pub gateway_wallets_max: usize,
    /// Cooldown of an endpoint that contradicts another one.
    pub bench: Duration,
}

impl Default for SolanaLimits {
    fn default() -> Self {
        Self {
            run_ahead_max: 400,
            run_ahead_total_max: 4000,
            list_ahead_max: 3000,
            chunk_max: 200,
            skipped_max: 5000,
            missing_tries_max: 6,
            missing_max: 64,
            missing_pause: Duration::from_millis(300),
            time_slots_max: 8,
            page_ahead_max: 6000,
            page_ahead_total_max: 24_000,
            segments_min: 4,
            segments_max: 16,
            full_pages_recheck: Duration::from_secs(600),
            unproved_wallets_max: 4096,
            activity_depths: [6_500_000, 40_000_000, 160_000_000],
            activity_wait: Duration::from_secs(3),
            scan_entries: 10,
            gateway_slots_max: 9_000,
            gateway_answers_max: 32,
            gateway_wait: Duration::from_secs(10),
            gateway_wallets_max: 1_500,
            bench: Duration::from_secs(600),
        }
    }
}
