//! EVM chains generated from one seed each: the chain, its wire formats, and the answers of nodes,
//! account lists and gateways. Public contracts have their real addresses. Tron's contracts run the
//! same way, so Tron is such a chain too, in another wire format ([`tron`]).

mod coins;
mod cycle;
mod deal;
mod explorer;
mod logs;
mod model;
mod node_context;
mod noise;
mod options;
mod places;
mod pools;
mod portal;
mod references;
mod script;
mod transfers;
pub mod tron;
mod tron_trades;
mod tx;
mod wire;

use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::Value;

use super::faults::RpcCall;
use super::rpc::{CallReply, DemoError};
pub use super::timeline::Crowd;
use crate::domain::{Account, Word, keccak256, lock};
pub use explorer::ExplorerOptions;
pub(super) use explorer::{answer as explorer, refused};
use model::PlacedTx;
pub use model::{EvmModel, TrueTrade};
use node_context::{CallResult, NodeContext};
pub use options::{LimitTexts, NodeOptions};
pub use portal::PortalOptions;
pub(super) use portal::{answer as portal, asked, by_block, reply};
pub use script::WalletPlan;

listed! {
    /// Kinds of trades. Where a chain lacks a protocol, the nearest one is used.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize)]
    pub enum TradeKind {
        /// A pair of the coin and the wrapped native coin, through its router.
        V2,
        /// Two pairs, to or from the dollar: two rows, valued by the hop.
        V2Hop,
        /// A pool, with more value sent than needed and the rest refunded.
        V3,
        /// A pool of the coin and the dollar: two rows without a value.
        V3Dollar,
        /// A pool of the coin and unwrapped native coin.
        V4,
        /// A route over two pools with a fee taken inside.
        Aggregator,
        /// A pair whose coin keeps a part of each transfer.
        Taxed,
        Launchpad,
        /// A solver fills the wallet's order; on Tron a relayer sends the wallet's swap.
        Cow,
        /// A bundler sends an operation of the wallet, which is a smart account.
        UserOp,
        /// An exchange of one coin that holds unwrapped native coin (`SunSwap` V1).
        V1,
        /// A pool of the protocol itself, for a token without a contract (TRC-10).
        Exchange,
    }
}

/// Hashes of the signatures of functions and events, each computed once.
#[derive(Debug, Default)]
struct Signatures {
    known: Mutex<HashMap<&'static str, Word>>,
}

impl Signatures {
    /// The first topic of an event.
    fn topic(&self, text: &'static str) -> Word {
        *lock(&self.known).entry(text).or_insert_with(|| keccak256(&[text.as_bytes()]))
    }

    /// A function's first four bytes.
    fn selector(&self, text: &'static str) -> [u8; 4] {
        self.topic(text).first_chunk().copied().unwrap_or_default()
    }
}

fn tail(word: &Word) -> Account {
    word.last_chunk().copied().unwrap_or_default()
}

/// Answers a call of a node.
pub(super) fn answer(
    model: &EvmModel,
    node: &NodeOptions,
    RpcCall { method, params, answer_faults }: RpcCall<'_>,
) -> CallReply {
    let behind = node.lag.saturating_add(answer_faults.head_back);
    let newest = model.newest().saturating_sub(behind);
    let finalized = model.head().saturating_sub(behind);
    let context = NodeContext { model, node, params, newest, finalized, answer_faults };
    result(&context, method).map(|value| value.to_string().into_bytes())
}

fn result(context: &NodeContext<'_>, method: &str) -> CallResult {
    let shown = |show: &dyn Fn(&PlacedTx) -> Value| {
        Ok(context.find_transaction()?.map_or(Value::Null, |found| show(&found)))
    };
    match method {
        "eth_chainId" => Ok(wire::number(context.chain_id()).into()),
        // What wallets and libraries ask a node first.
        "net_version" => Ok(context.chain_id().to_string().into()),
        "web3_clientVersion" => Ok("Geth/v1.16.7-stable/linux-amd64/go1.25.1".into()),
        "eth_syncing" => Ok(false.into()),
        "eth_blockNumber" => Ok(wire::number(context.newest).into()),
        "eth_getBlockByNumber" => context.block(),
        "eth_getLogs" if context.node.logs => logs::get(context),
        // Public nodes of one chain answer so to any range.
        "eth_getLogs" => Err(DemoError::new(-32005, "limit exceeded")),
        "eth_getTransactionByHash" => shown(&|found| wire::transaction(context.model, found)),
        "eth_getTransactionReceipt" => {
            shown(&|found| wire::receipt(context.model, found, context.node.log_times))
        }
        "eth_getTransactionByBlockNumberAndIndex" => context.transaction_by_index(),
        "eth_getBlockReceipts" => context.block_receipts(),
        "eth_getBalance" | "eth_getTransactionCount" => context.state(method),
        "eth_getCode" => Ok(context.code()),
        "eth_call" => node_context::call(context),
        "debug_traceTransaction" if context.node.traces => context.trace(),
        "trace_transaction" if context.node.flat_traces => {
            shown(&|found| wire::flat_trace(context.model, found).into())
        }
        "alchemy_getAssetTransfers" if context.node.transfers => transfers::get(context),
        _ => {
            let text = format!("the method {method} does not exist/is not available");
            Err(DemoError::new(-32601, text))
        }
    }
}
