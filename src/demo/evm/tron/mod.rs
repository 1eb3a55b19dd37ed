//! Tron: contracts run there as on EVM chains, so an [`super::EvmModel`] of a Tron chain holds its
//! wallets and trades. This module adds `SunSwap`, `SunPump`, the protocol's own exchanges, and the
//! answers of `TronGrid` and of nodes.

mod lists;
mod node;
mod wire;

pub(in crate::demo) use node::{HttpRequest, answer, call};

use serde_json::{Value, json};

use crate::domain::{Height, defaults};

defaults! {
    /// Options of an endpoint: an index with nodes, or a node.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct NodeOptions {
        /// Blocks by which this endpoint's head lags behind the model's.
        pub lag: u64 = 0,
        /// First block that is kept; 0 keeps all.
        pub first_available: Height = 0,
        /// Below that block there are no events, and no error.
        pub prunes_silently: bool = false,
        /// Blocks by which the lists lag behind the endpoint's head.
        pub list_lag: u64 = 0,
        /// Whether it has lists by account (`/v1`), and the maximum length of their pages.
        pub lists: bool = true,
        pub page_max: usize = 200,
        /// Whether it has `/jsonrpc`, and the maximum of blocks and results of one log query there.
        pub json_rpc: bool = true,
        pub log_blocks_max: u64 = 5_000,
        pub logs_max: usize = 10_000,
        pub batch_max: usize = 100,
        /// `/walletsolidity`.
        pub solid: bool = true,
        /// Whether internal transactions are kept (`vm.saveInternalTx`, off by default in java-tron).
        pub inner_calls: bool = true,
        /// The reported chain id; `None`: the true one.
        pub chain_id: Option<u64> = None,
    }
}

pub(in crate::demo) type TronAnswer = (u16, Value);

fn refused(text: &str) -> TronAnswer {
    (400, json!({"success": false, "error": text, "statusCode": 400}))
}
