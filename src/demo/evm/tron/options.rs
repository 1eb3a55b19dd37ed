//! Options of an endpoint of Tron, and its answers.

use serde_json::{Value, json};

use crate::domain::Height;

/// Options of an endpoint: an index with nodes, or a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "what an endpoint offers, each by itself")]
pub struct NodeOptions {
    /// Blocks by which this endpoint's head lags behind the model's.
    pub lag: u64,
    /// First block that is kept; 0 keeps all.
    pub first_available: Height,
    /// Below that block there are no events, and no error.
    pub prunes_silently: bool,
    /// Blocks by which the lists lag behind the endpoint's head.
    pub list_lag: u64,
    /// Whether it has lists by account (`/v1`), and the maximum length of their pages.
    pub lists: bool,
    pub page_max: usize,
    /// Whether it has `/jsonrpc`, and the maximum of blocks and results of one log query there.
    pub json_rpc: bool,
    pub log_blocks_max: u64,
    pub logs_max: usize,
    /// Maximum size of a batch.
    pub batch_max: usize,
    /// `/walletsolidity`.
    pub solid: bool,
    /// Whether internal transactions are kept (`vm.saveInternalTx`, off by default in java-tron).
    pub inner_calls: bool,
    /// The reported chain id; `None`: the true one.
    pub chain_id: Option<u64>,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            lag: 0,
            first_available: 0,
            prunes_silently: false,
            list_lag: 0,
            lists: true,
            page_max: 200,
            json_rpc: true,
            log_blocks_max: 5_000,
            logs_max: 10_000,
            batch_max: 100,
            solid: true,
            inner_calls: true,
            chain_id: None,
        }
    }
}

/// A status and a body.
pub(in crate::demo) type TronAnswer = (u16, Value);

/// An error of the index.
pub(super) fn refused(text: &str) -> TronAnswer {
    (400, json!({"success": false, "error": text, "statusCode": 400}))
}
