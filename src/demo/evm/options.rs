//! Options of a node.

use crate::domain::{Height, defaults};

/// The texts with which a node rejects log queries that are too large: a row of the demo's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitTexts {
    Alchemy,
    Infura,
    PublicNode,
    Reth,
    Curt,
    Tron,
}

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct NodeOptions {
        /// Blocks by which this node's head lags behind the model's.
        pub lag: u64 = 0,
        /// Blocks by which its logs lag behind the newest block that it names.
        pub logs_lag: u64 = 0,
        /// First block that the node keeps; 0 keeps all.
        pub first_available: Height = 0,
        /// Below that block it returns no events, and no error.
        pub prunes_silently: bool = false,
        /// Transactions below this block are found by their position only, not by their hash.
        pub hashes_from: Height = 0,
        /// Maximum size of a batch; a larger one gets one error object.
        pub batch_max: usize = 100,
        /// Maximum of blocks and results of one log query; `None`: no limit.
        pub log_blocks_max: Option<u64> = None,
        pub logs_max: Option<usize> = Some(10_000),
        /// Logs, and transfers, that an answer holds at most: the newest, without a sign of others.
        pub silent_max: Option<usize> = None,
        pub texts: LimitTexts = LimitTexts::Infura,
        /// Whether logs are available.
        pub logs: bool = true,
        /// Blocks below the newest one whose state is kept; `None`: all.
        pub state_blocks: Option<u64> = None,
        /// `debug_traceTransaction`, and `trace_transaction`.
        pub traces: bool = true,
        pub flat_traces: bool = false,
        /// `alchemy_getAssetTransfers`.
        pub transfers: bool = false,
        /// Whether the tags `finalized` and `safe` are supported.
        pub tags: bool = true,
        /// Whether logs contain the time of their block.
        pub log_times: bool = true,
        /// Added to `eth_getTransactionCount`, by a node that counts wrongly.
        pub sent_more: u64 = 0,
        /// The reported chain id; `None`: the true one.
        pub chain_id: Option<u64> = None,
    }
}
