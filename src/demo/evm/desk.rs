//! The context in which a node answers one call, and the answers about blocks, transactions and
//! state.

use serde_json::Value;

use crate::demo::faults::Twist;
use crate::demo::rpc::DemoError;
use crate::domain::Height;

use super::hash::Account;
use super::model::{EvmModel, PlacedTx};
use super::options::NodeOptions;
use super::wire;

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
    pub(super) fn chain_id(&self) -> u64 {
        self.node.chain_id.unwrap_or(self.model.chain_id())
    }

    /// The block that a parameter selects.
    pub(super) fn height(&self, value: Option<&Value>) -> Result<Height, DemoError> {
        let text = value.and_then(Value::as_str).unwrap_or("latest");
        match text {
            "latest" | "pending" => Ok(self.newest),
            "earliest" => Ok(self.node.first_available),
            "finalized" | "safe" if !self.node.tags => {
                Err(DemoError::invalid(format!("invalid argument 0: unknown tag \"{text}\"")))
            }
            "finalized" => Ok(self.last),
            "safe" => Ok(self.last.midpoint(self.newest)),
            digits => quantity(digits).ok_or_else(|| {
                DemoError::invalid("invalid argument 0: hex string without 0x prefix")
            }),
        }
    }

    pub(super) fn block(&self) -> CallResult {
        let height = self.height(self.params.first())?;
        let known = self.has_block(height);
        let whole = self.params.get(1).and_then(Value::as_bool).unwrap_or(false);
        Ok(if known { wire::block(self.model, height, whole) } else { Value::Null })
    }

    /// The transaction whose hash is the first parameter.
    pub(super) fn found(&self) -> Result<Option<PlacedTx>, DemoError> {
        let wrong = || DemoError::invalid("invalid argument 0: hex string has a wrong length");
        let hash = self.params.first().and_then(Value::as_str).and_then(wire::bytes);
        let found = self.model.find(&hash.ok_or_else(wrong)?);
        let known = self.node.first_available.max(self.node.hashes_from)..=self.newest;
        Ok(found.filter(|found| known.contains(&found.spot.height)))
    }

    fn has_block(&self, height: Height) -> bool {
        (self.node.first_available..=self.newest).contains(&height)
    }

    pub(super) fn at_place(&self) -> CallResult {
        let height = self.height(self.params.first())?;
        let index = self.params.get(1).and_then(Value::as_str).and_then(quantity);
        let mut all = wire::found_in(self.model, height).into_iter();
        let found = all.find(|found| Some(u64::from(found.spot.index)) == index);
        let found = found.filter(|_| self.has_block(height));
        Ok(found.map_or(Value::Null, |found| wire::transaction(self.model, &found)))
    }

    pub(super) fn block_receipts(&self) -> CallResult {
        let height = self.height(self.params.first())?;
        if !self.has_block(height) {
            return Ok(Value::Null);
        }
        let receipt = |found: &PlacedTx| wire::receipt(self.model, found, self.node.log_times);
        Ok(wire::found_in(self.model, height).iter().map(receipt).collect())
    }

    pub(super) fn trace(&self) -> CallResult {
        let tracer = self.params.get(1).and_then(|options| options.get("tracer"));
        if tracer.and_then(Value::as_str) != Some("callTracer") {
            return Err(DemoError::invalid("only the callTracer is offered"));
        }
        let Some(found) = self.found()? else {
            return Err(DemoError::new(-32000, "transaction not found"));
        };
        self.check_state(found.spot.height)?;
        Ok(wire::call_trace(&found.tx.call))
    }

    fn check_state(&self, height: Height) -> Result<(), DemoError> {
        let kept = self.node.state_blocks.is_none_or(|blocks| height + blocks >= self.newest);
        if kept {
            return Ok(());
        }
        let root = wire::hex(&self.model.block_hash(height));
        let text = format!("missing trie node {root} (path ) state is not available");
        Err(DemoError::new(-32000, text))
    }

    fn account(&self) -> Option<Account> {
        self.params.first().and_then(Value::as_str).and_then(wire::bytes)
    }

    pub(super) fn state(&self, method: &str) -> CallResult {
        let wrong = || DemoError::invalid("invalid argument 0: not an address");
        let account = self.account().ok_or_else(wrong)?;
        let height = self.height(self.params.get(1))?;
        if height > self.newest {
            return Err(DemoError::new(-32000, "header not found"));
        }
        self.check_state(height)?;
        let Some(wallet) = self.model.wallet(&account) else { return Ok("0x0".into()) };
        let holding = self.model.holding(&wallet, height);
        let sent = u128::from(holding.sent + self.node.sent_more);
        Ok(wire::number(if method == "eth_getBalance" { holding.balance } else { sent }).into())
    }

    pub(super) fn code(&self) -> Value {
        let account = self.account();
        let wallet = account.and_then(|account| self.model.wallet(&account));
        if wallet.as_ref().is_some_and(|wallet| wallet.plan.plain) {
            return "0x".into();
        }
        let is_wallet = account.is_none() || wallet.is_some();
        // Wallets send transactions and act as smart accounts too: they delegate (EIP-7702).
        let delegated = "0xef010063c0c19a282a1b52b07dd5a65b58948a07dae32b";
        if is_wallet { delegated } else { "0x6080604052" }.into()
    }
}

pub(super) fn quantity(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
