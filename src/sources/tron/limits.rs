//! Every limit of the Tron source, by name.

use std::time::Duration;

use crate::domain::{Height, defaults};

/// By which ways a wallet's transactions are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TronDiscovery {
    /// By account lists, and by events where no endpoint is found to have lists.
    #[default]
    Auto,
    /// By account lists alone.
    Lists,
    /// By events alone.
    Events,
}

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TronLimits {
        pub discovery: TronDiscovery = TronDiscovery::Auto,
        /// Transactions of one reader that are asked for or wait to be delivered.
        pub run_ahead_max: usize = 400,
        /// The same for all readers together.
        pub run_ahead_total_max: usize = 4000,
        /// Transactions asked for at once by a reader that has delivered none yet.
        pub run_ahead_min: usize = 10,
        /// Entries listed ahead of the transactions.
        pub list_ahead_max: usize = 1000,
        /// Transactions of one chunk, but for a block that holds more.
        pub chunk_max: usize = 200,
        /// Entries passed over after which one is looked at only to learn how far down they are.
        pub passed_max: usize = 2000,
        /// Tries for a listed transaction that no node gives.
        pub missing_tries_max: u32 = 6,
        /// Pause before such a try, times its number.
        pub missing_pause: Duration = Duration::from_millis(500),
        /// Tries for answers of JSON-RPC that do not fit what was asked.
        pub unfit_tries_max: u32 = 4,
        /// Missing transactions of one read that are set aside; more are an error.
        pub missing_max: usize = 64,
        /// Answers in a row of a list that lack what it held before.
        pub misses_max: u32 = 3,
        /// Pause after a refusal of lists, doubled with each, up to a longest one.
        pub lists_pause_min: Duration = Duration::from_secs(1),
        pub lists_pause_max: Duration = Duration::from_secs(10),
        /// An endpoint has no lists after so many answers, each so long after the one before, over so
        /// long in all.
        pub lists_refusals_min: u32 = 3,
        pub lists_refusal_spacing: Duration = Duration::from_secs(5),
        pub lists_absent_after: Duration = Duration::from_secs(12),
        /// Pauses between the questions that decide about that, while a wallet is read by events.
        pub lists_probe_pause: Duration = Duration::from_secs(6),
        /// Entries of the first page of a read that goes on above known heights.
        pub refresh_page: usize = 20,
        /// How far lists have indexed is taken for known so long.
        pub indexed_age_max: Duration = Duration::from_secs(10),
        /// The page of an account that is used to learn it must not span more, or its newest entry not
        /// be older.
        pub indexed_span_max: Duration = Duration::from_secs(600),
        pub indexed_entry_age_max: Duration = Duration::from_secs(3600),
        /// It is not waited for longer.
        pub indexed_wait: Duration = Duration::from_secs(3),
        /// The same of a list that has shown nothing yet: longer than a provider suspends a client.
        pub indexed_first_wait: Duration = Duration::from_secs(8),
        /// Blocks of one search for events; java-tron allows 5,000 where nothing else is set.
        pub logs_range_max: u64 = 5000,
        /// Searches for events in one request.
        pub logs_batch_max: usize = 10,
        /// Requests for events under way: at most, and where few transactions are wanted.
        pub logs_ahead_max: usize = 16,
        pub logs_ahead_min: usize = 4,
        /// Transactions wanted for which a further one is.
        pub logs_ahead_for: usize = 6,
        /// Blocks with few rows or none that are delivered before more is known.
        pub sparse_blocks: u64 = 100_000,
        /// Answers to one search for events, until two endpoints agree.
        pub logs_votes_max: u32 = 12,
        /// Pages below a full first one that an estimate asks for, and the longest wait for those.
        pub activity_pages: u64 = 3,
        pub activity_wait: Duration = Duration::from_secs(3),
        /// Wallets of one search of a scan; java-tron takes 1,000 topics in one position.
        pub scan_topics_max: usize = 1_000,
        /// Blocks below the head that a scan looks at; a wallet that was not seen for longer reads for
        /// itself.
        pub scan_blocks_max: u64 = 1_000,
        /// Endpoints that one scan tries.
        pub scan_endpoints_max: usize = 4,
        /// Blocks in which a reference pool is expected to have events.
        pub sentinel_blocks: u64 = 200,
        /// Blocks that are looked into for events where no reference pool has any.
        pub sample_blocks: u64 = 8,
        /// No contract ran below this block, where the chain is longer than twice that.
        // 69 days after the first one, of three seconds each; contracts came after 106 days.
        pub events_from: Height = 2_000_000,
        /// How deep an endpoint keeps events is searched for again after so long, where it is not all.
        pub depth_age_max: Duration = Duration::from_secs(600),
        /// Tokens asked about in one request: two calls each; java-tron takes 100 in one.
        pub tokens_batch: usize = 40,
        /// Tokens asked about at once where each takes requests of its own.
        pub tokens_parallel: usize = 8,
        /// Rounds of questions about tokens that got no answer.
        pub token_rounds: u32 = 4,
        /// After this, the known metadata of tokens is delivered.
        pub tokens_wait: Duration = Duration::from_millis(2_500),
        /// The same while an endpoint allows few calls a second.
        pub tokens_wait_paced: Duration = Duration::from_secs(20),
        /// Pairs of the protocol's exchanges that are remembered.
        pub exchanges_max: usize = 1000,
        /// Cooldown of an endpoint that contradicts another one.
        pub bench: Duration = Duration::from_secs(600),
    }
}
