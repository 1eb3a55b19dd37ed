//! Every limit of the Tron source, by name.

use std::time::Duration;

use crate::domain::Height;

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TronLimits {
    pub discovery: TronDiscovery,
    /// Transactions of one reader that are asked for or wait to be delivered.
    pub run_ahead_max: usize,
    /// The same for all readers together.
    pub run_ahead_total_max: usize,
    /// Transactions asked for at once by a reader that has delivered none yet.
    pub run_ahead_min: usize,
    /// Entries listed ahead of the transactions.
    pub list_ahead_max: usize,
    /// Transactions of one chunk, but for a block that holds more.
    pub chunk_max: usize,
    /// Entries passed over after which one is looked at only to learn how far down they are.
    pub passed_max: usize,
    /// Tries for a listed transaction that no node gives.
    pub missing_tries_max: u32,
    /// Pause before such a try, times its number.
    pub missing_pause: Duration,
    /// Tries for answers of JSON-RPC that do not fit what was asked.
    pub unfit_tries_max: u32,
    /// Missing transactions of one read that are set aside; more are an error.
    pub missing_max: usize,
    /// Answers in a row of a list that lack what it held before.
    pub misses_max: u32,
    /// Pause after a refusal of lists, doubled with each, up to a longest one.
    pub lists_pause_min: Duration,
    pub lists_pause_max: Duration,
    /// An endpoint has no lists after so many answers, each so long after the one before, over so
    /// long in all.
    pub lists_refusals_min: u32,
    pub lists_refusal_spacing: Duration,
    pub lists_absent_after: Duration,
    /// Pauses between the questions that decide about that, while a wallet is read by events.
    pub lists_probe_pause: Duration,
    /// Entries of the first page of a read that goes on above known heights.
    pub refresh_page: usize,
    /// How far lists have indexed is taken for known so long.
    pub indexed_age_max: Duration,
    /// The page of an account that is used to learn it must not span more, or its newest entry not
    /// be older.
    pub indexed_span_max: Duration,
    pub indexed_entry_age_max: Duration,
    /// It is not waited for longer.
    pub indexed_wait: Duration,
    /// The same of a list that has shown nothing yet: longer than a provider suspends a client.
    pub indexed_first_wait: Duration,
    /// Blocks of one search for events; java-tron allows 5,000 where nothing else is set.
    pub logs_range_max: u64,
    /// Searches for events in one request.
    pub logs_batch_max: usize,
    /// Requests for events under way: at most, and where few transactions are wanted.
    pub logs_ahead_max: usize,
    pub logs_ahead_min: usize,
    /// Transactions wanted for which a further one is.
    pub logs_ahead_for: usize,
    /// Blocks with few rows or none that are delivered before more is known.
    pub sparse_blocks: u64,
    /// Answers to one search for events, until two endpoints agree.
    pub logs_votes_max: u32,
    /// Pages below a full first one that an estimate asks for, and the longest wait for those.
    pub activity_pages: u64,
    pub activity_wait: Duration,
    /// Wallets of one search of a scan; java-tron takes 1,000 topics in one position.
    pub scan_topics_max: usize,
    /// Blocks below the head that a scan looks at; a wallet that was not seen for longer reads for
    /// itself.
    pub scan_blocks_max: u64,
    /// Endpoints that one scan tries.
    pub scan_endpoints_max: usize,
    /// Blocks in which a reference pool is expected to have events.
    pub sentinel_blocks: u64,
    /// Blocks that are looked into for events where no reference pool has any.
    pub sample_blocks: u64,
    /// No contract ran below this block, where the chain is longer than twice that.
    pub events_from: Height,
    /// How deep an endpoint keeps events is searched for again after so long, where it is not all.
    pub depth_age_max: Duration,
    /// Tokens asked about in one request: two calls each; java-tron takes 100 in one.
    pub tokens_batch: usize,
    /// Tokens asked about at once where each takes requests of its own.
    pub tokens_parallel: usize,
    /// Rounds of questions about tokens that got no answer.
    pub token_rounds: u32,
    /// After this, the known metadata of tokens is delivered.
    pub tokens_wait: Duration,
    /// The same while an endpoint allows few calls a second.
    pub tokens_wait_paced: Duration,
    /// Pairs of the protocol's exchanges that are remembered.
    pub exchanges_max: usize,
    /// Cooldown of an endpoint that contradicts another one.
    pub bench: Duration,
}

impl Default for TronLimits {
    fn default() -> Self {
        Self {
            discovery: TronDiscovery::Auto,
            run_ahead_max: 400,
            run_ahead_total_max: 4000,
            run_ahead_min: 10,
            list_ahead_max: 1000,
            chunk_max: 200,
            passed_max: 2000,
            missing_tries_max: 6,
            missing_pause: Duration::from_millis(500),
            unfit_tries_max: 4,
            missing_max: 64,
            misses_max: 3,
            lists_pause_min: Duration::from_secs(1),
            lists_pause_max: Duration::from_secs(10),
            lists_refusals_min: 3,
            lists_refusal_spacing: Duration::from_secs(5),
            lists_absent_after: Duration::from_secs(12),
            lists_probe_pause: Duration::from_secs(6),
            refresh_page: 20,
            indexed_age_max: Duration::from_secs(10),
            indexed_span_max: Duration::from_secs(600),
            indexed_entry_age_max: Duration::from_secs(3600),
            indexed_wait: Duration::from_secs(3),
            indexed_first_wait: Duration::from_secs(8),
            logs_range_max: 5000,
            logs_batch_max: 10,
            logs_ahead_max: 16,
            logs_ahead_min: 4,
            logs_ahead_for: 6,
            sparse_blocks: 100_000,
            logs_votes_max: 12,
            activity_pages: 3,
            activity_wait: Duration::from_secs(3),
            scan_topics_max: 1_000,
            scan_blocks_max: 1_000,
            scan_endpoints_max: 4,
            sentinel_blocks: 200,
            sample_blocks: 8,
            // 69 days after the first one, of three seconds each; contracts came after 106 days.
            events_from: 2_000_000,
            depth_age_max: Duration::from_secs(600),
            tokens_batch: 40,
            tokens_parallel: 8,
            token_rounds: 4,
            tokens_wait: Duration::from_millis(2_500),
            tokens_wait_paced: Duration::from_secs(20),
            exchanges_max: 1000,
            bench: Duration::from_secs(600),
        }
    }
}
