//! Options of a node.

use crate::domain::Height;

/// The text with which a node rejects log queries that are too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitTexts {
    /// Suggests a range that works.
    Alchemy,
    /// Suggests a range that works, or the maximum number of blocks.
    Infura,
    /// The maximum number of blocks.
    PublicNode,
    /// Reth's texts.
    Reth,
    /// States only that it is too much.
    Curt,
    /// java-tron's texts.
    Tron,
}

/// Options of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "what a node offers, each by itself")]
pub struct NodeOptions {
    /// Blocks by which this node's head lags behind the model's.
    pub lag: u64,
    /// First block that the node keeps; 0 keeps all.
    pub first_available: Height,
    /// Below that block it returns no events, and no error.
    pub prunes_silently: bool,
    /// Transactions below this block are found by their position only, not by their hash.
    pub hashes_from: Height,
    /// Maximum size of a batch; a larger one gets one error object.
    pub batch_max: usize,
    /// Maximum of blocks and results of one log query; `None`: no limit.
    pub log_blocks_max: Option<u64>,
    pub logs_max: Option<usize>,
    pub texts: LimitTexts,
    /// Whether logs are available.
    pub logs: bool,
    /// Blocks below the newest one whose state is kept; `None`: all.
    pub state_blocks: Option<u64>,
    /// `debug_traceTransaction`, and `trace_transaction`.
    pub traces: bool,
    pub flat_traces: bool,
    /// `alchemy_getAssetTransfers`.
    pub transfers: bool,
    /// Whether the tags `finalized` and `safe` are supported.
    pub tags: bool,
    /// Whether logs contain the time of their block.
    pub log_times: bool,
    /// Added to `eth_getTransactionCount`, by a node that counts wrongly.
    pub sent_more: u64,
    /// The reported chain id; `None`: the true one.
    pub chain_id: Option<u64>,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            lag: 0,
            first_available: 0,
            prunes_silently: false,
            hashes_from: 0,
            batch_max: 100,
            log_blocks_max: None,
            logs_max: Some(10_000),
            texts: LimitTexts::Infura,
            logs: true,
            state_blocks: None,
            traces: true,
            flat_traces: false,
            transfers: false,
            tags: true,
            log_times: true,
            sent_more: 0,
            chain_id: None,
        }
    }
}
