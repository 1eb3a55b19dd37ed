//! The JSON-RPC methods of a node.

use serde_json::Value;

use crate::demo::faults::Twist;
use crate::demo::rpc::{DemoError, Reply};
use crate::domain::Height;

use super::model::{EvmModel, PlacedTx};
use super::places::Word;
use super::{calls, logs, transfers, wire};

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
            chain_id: None,
        }
    }
}

pub(in crate::demo) fn answer(
    model: &EvmModel,
    node: &NodeOptions,
    method: &str,
    params: &[Value],
    twist: Twist,
) -> Reply {
    let behind = node.lag.saturating_add(twist.head_back);
    let newest = model.newest().saturating_sub(behind);
    let last = model.head().saturating_sub(behind);
    let desk = Desk { model, node, params, newest, last, twist };
    desk.answer(method).map(|value| value.to_string().into_bytes())
}

/// The context in which a node answers one call.
pub(super) struct Desk<'a> {
    pub(super) model: &'a EvmModel,
    pub(super) node: &'a NodeOptions,
    pub(super) params: &'a [Value],
    /// The newest block of this answer, and the last final one.
    pub(super) newest: Height,
    pub(super) last: Height,
    pub(super) twist: Twist,
}

pub(super) type CallResult = Result<Value, DemoError>;

impl Desk<'_> {
    fn answer(&self, method: &str) -> CallResult {
        match method {
            "eth_chainId" => Ok(wire::number(self.chain_id()).into()),
            "net_version" => Ok(self.chain_id().to_string().into()),
            "web3_clientVersion" => Ok("Geth/v1.16.7-stable/linux-amd64/go1.25.1".into()),
            "eth_syncing" => Ok(false.into()),
            "eth_blockNumber" => Ok(wire::number(self.newest).into()),
            "eth_getBlockByNumber" => self.block(),
            "eth_getLogs" if self.node.logs => logs::get(self),
            // Public nodes of one chain answer so to any range.
            "eth_getLogs" => Err(DemoError::new(-32005, "limit exceeded")),
            "eth_getTransactionByHash" => Ok(self
                .found(0)?
                .map_or(Value::Null, |found| wire::transaction(self.model, &found))),
            "eth_getTransactionReceipt" => {
                let times = self.node.log_times;
                let receipt = |found: PlacedTx| wire::receipt(self.model, &found, times);
                Ok(self.found(0)?.map_or(Value::Null, receipt))
            }
            "eth_getTransactionByBlockNumberAndIndex" => self.at_place(),
            "eth_getBlockReceipts" => self.block_receipts(),
            "eth_getBalance" | "eth_getTransactionCount" => self.state(method),
            "eth_getCode" => Ok(self.code()),
            "eth_call" => calls::call(self),
            "debug_traceTransaction" if self.node.traces => self.trace(),
            "trace_transaction" if self.node.flat_traces => {
                let trace = |found: PlacedTx| wire::flat_trace(self.model, &found).into();
                Ok(self.found(0)?.map_or(Value::Null, trace))
            }
            "alchemy_getAssetTransfers" if self.node.transfers => transfers::get(self),
            _ => {
                let text = format!("the method {method} does not exist/is not available");
                Err(DemoError::new(-32601, text))
            }
        }
    }

    fn chain_id(&self) -> u64 {
        self.node.chain_id.unwrap_or(self.model.chain_id())
    }

    // Blocks.

    /// The block that a parameter selects.
    pub(super) fn height(&self, value: Option<&Value>) -> Result<Height, DemoError> {
        let text = value.and_then(Value::as_str).unwrap_or("latest");
        match text {
            "latest" | "pending" => Ok(self.newest),
            "earliest" => Ok(self.node.first_available),
            "finalized" | "safe" if !self.node.tags => {
                Err(DemoError::new(-32602, format!("invalid argument 0: unknown tag \"{text}\"")))
            }
            "finalized" => Ok(self.last),
            "safe" => Ok(self.last.midpoint(self.newest)),
            digits => quantity(digits).ok_or_else(|| {
                DemoError::new(-32602, "invalid argument 0: hex string without 0x prefix")
            }),
        }
    }

    fn block(&self) -> CallResult {
        let height = self.height(self.params.first())?;
        let known = self.has_block(height);
        let whole = self.params.get(1).and_then(Value::as_bool).unwrap_or(false);
        Ok(if known { wire::block(self.model, height, whole) } else { Value::Null })
    }

    // Transactions.

    fn hash(&self, at: usize) -> Result<Word, DemoError> {
        let text = self.params.get(at).and_then(Value::as_str);
        text.and_then(wire::word).ok_or_else(|| {
            DemoError::new(-32602, format!("invalid argument {at}: hex string has a wrong length"))
        })
    }

    fn found(&self, at: usize) -> Result<Option<PlacedTx>, DemoError> {
        let found = self.model.find(&self.hash(at)?);
        let known = self.node.first_available.max(self.node.hashes_from)..=self.newest;
        Ok(found.filter(|found| known.contains(&found.spot.height)))
    }

    fn has_block(&self, height: Height) -> bool {
        (self.node.first_available..=self.newest).contains(&height)
    }

    fn at_place(&self) -> CallResult {
        let height = self.height(self.params.first())?;
        let index = self.params.get(1).and_then(Value::as_str).and_then(quantity);
        let mut all = wire::found_in(self.model, height).into_iter();
        let found = all.find(|found| Some(u64::from(found.spot.index)) == index);
        let found = found.filter(|_| self.has_block(height));
        Ok(found.map_or(Value::Null, |found| wire::transaction(self.model, &found)))
    }

    fn block_receipts(&self) -> CallResult {
        let height = self.height(self.params.first())?;
        if !self.has_block(height) {
            return Ok(Value::Null);
        }
        let receipt = |found: &PlacedTx| wire::receipt(self.model, found, self.node.log_times);
        Ok(wire::found_in(self.model, height).iter().map(receipt).collect())
    }

    fn trace(&self) -> CallResult {
        let tracer = self.params.get(1).and_then(|options| options.get("tracer"));
        if tracer.and_then(Value::as_str) != Some("callTracer") {
            return Err(DemoError::new(-32602, "only the callTracer is offered"));
        }
        let Some(found) = self.found(0)? else {
            return Err(DemoError::new(-32000, "transaction not found"));
        };
        self.check_state(found.spot.height)?;
        Ok(wire::call_trace(&found.tx.call))
    }

    // State.

    fn check_state(&self, height: Height) -> Result<(), DemoError> {
        let kept = self.node.state_blocks.is_none_or(|blocks| height + blocks >= self.newest);
        if kept {
            return Ok(());
        }
        let root = wire::hex(&self.model.block_hash(height));
        let text = format!("missing trie node {root} (path ) state is not available");
        Err(DemoError::new(-32000, text))
    }

    fn state(&self, method: &str) -> CallResult {
        let account = self.params.first().and_then(Value::as_str).and_then(wire::account);
        let account =
            account.ok_or_else(|| DemoError::new(-32602, "invalid argument 0: not an address"))?;
        let height = self.height(self.params.get(1))?;
        if height > self.newest {
            return Err(DemoError::new(-32000, "header not found"));
        }
        self.check_state(height)?;
        let Some(wallet) = self.model.wallet(&account) else { return Ok("0x0".into()) };
        let holding = self.model.holding(&wallet, height);
        Ok(match method {
            "eth_getBalance" => wire::number(holding.balance),
            _ => wire::number(holding.sent),
        }
        .into())
    }

    fn code(&self) -> Value {
        let account = self.params.first().and_then(Value::as_str).and_then(wire::account);
        let is_wallet = account.is_none_or(|account| self.model.wallet(&account).is_some());
        // Wallets send transactions and act as smart accounts too: they delegate (EIP-7702).
        let delegated = "0xef010063c0c19a282a1b52b07dd5a65b58948a07dae32b";
        if is_wallet { delegated } else { "0x6080604052" }.into()
    }
}

pub(super) fn quantity(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
