//! Native coin that moved inside a transaction: from a trace, else by how much the wallet's balance
//! changed, else unknown.

use serde_json::json;
use serde_json::value::RawValue;

use super::{EvmSource, Resting, wire};
use crate::decode::evm::{
    self, Account, NativeFlows, NativeMove, Transaction, parse_flat_trace, parse_trace,
};
use crate::domain::Units;
use crate::upstream::error::UpstreamError;
use crate::upstream::pool::{Call, CallOptions};

/// A transaction whose inner movements are to be found, with what its sender paid for it.
#[derive(Debug)]
pub(super) struct Traced<'a> {
    pub(super) tx: &'a mut Transaction,
    /// `None` where the receipt does not tell.
    pub(super) fee: Option<Units>,
    /// No other transaction of the wallet is known in this block.
    pub(super) alone: bool,
}

/// What becomes of a method's answer.
type Read = fn(&[u8]) -> Result<Vec<NativeMove>, evm::RawError>;

impl EvmSource {
    /// Whether anything could hang on what moved inside a transaction.
    pub(super) fn may_trade(&self, tx: &Transaction) -> bool {
        let (tables, chain) = (self.inner.registry.evm(), &self.inner.chain);
        let known_event = |log: &evm::Log| {
            log.topics.first().is_some_and(|topic| !tables.events(topic).is_empty())
        };
        tx.logs.iter().any(known_event) || tx.to.is_some_and(|to| tables.is_known(chain, &to))
    }

    /// Fills in what is known. Never fails: what nobody tells stays unknown.
    pub(super) async fn fill_native(
        &self,
        wallet: &Account,
        mut open: Vec<Traced<'_>>,
        options: &CallOptions,
    ) {
        if !self.rests(Resting::Traces) {
            let methods: [(&'static str, Read); 2] =
                [("debug_traceTransaction", parse_trace), ("trace_transaction", parse_flat_trace)];
            for (method, read) in methods {
                if !open.is_empty() {
                    open = self.by_trace(method, read, open, options).await;
                }
            }
        }
        if !self.rests(Resting::States) {
            self.by_balance(wallet, open, options).await;
        }
    }

    /// Returns those that the method did not tell of.
    async fn by_trace<'a>(
        &self,
        method: &'static str,
        read: Read,
        open: Vec<Traced<'a>>,
        options: &CallOptions,
    ) -> Vec<Traced<'a>> {
        let calls: Vec<Call> = open.iter().map(|one| trace_call(method, one.tx)).collect();
        let answers = self.inner.pool.batch(&calls, options).await;
        let mut left = Vec::new();
        let mut offered = false;
        for (one, answer) in open.into_iter().zip(answers) {
            let moves = match answer {
                Ok(answer) => {
                    offered = true;
                    read(answer.result.get().as_bytes()).ok()
                }
                Err(error) => {
                    offered |= !matches!(error, UpstreamError::NotSupported { .. });
                    None
                }
            };
            match moves {
                Some(moves) => one.tx.native = NativeFlows::Calls(moves),
                None => left.push(one),
            }
        }
        if !offered && method == "trace_transaction" {
            self.rest(Resting::Traces, self.inner.limits.state_rest);
        }
        left
    }

    /// The wallet's balance after the block less that before, where the wallet sent one transaction
    /// in it and nothing else of it is known there.
    async fn by_balance(&self, wallet: &Account, open: Vec<Traced<'_>>, options: &CallOptions) {
        let open: Vec<_> = open
            .into_iter()
            .filter(|one| one.alone && one.tx.from == *wallet && one.fee.is_some())
            .collect();
        let calls: Vec<Call> =
            open.iter().flat_map(|one| state_calls(wallet, one.tx.block)).collect();
        if calls.is_empty() {
            return;
        }
        let mut answers = self.inner.pool.batch(&calls, options).await.into_iter();
        let mut any = false;
        for one in open {
            let mut next = || -> Option<Box<RawValue>> { Some(answers.next()?.ok()?.result) };
            let told = [next(), next(), next(), next()];
            any |= told.iter().any(Option::is_some);
            let [before, after, count_before, count_after] = told;
            let flows = || {
                let sent = wire::number(&count_after?)?.checked_sub(wire::number(&count_before?)?);
                let (before, after) = (wire::units(&before?)?, wire::units(&after?)?);
                let with_fee = after.checked_add(one.fee?)?;
                (sent == Some(1)).then(|| NativeFlows::Net {
                    gained: with_fee.saturating_sub(before),
                    lost: before.saturating_sub(with_fee),
                })
            };
            if let Some(flows) = flows() {
                one.tx.native = flows;
            }
        }
        if !any {
            self.rest(Resting::States, self.inner.limits.state_rest);
        }
    }
}

fn trace_call(method: &'static str, tx: &Transaction) -> Call {
    let hash = wire::hex(&tx.hash);
    let params = match method {
        "debug_traceTransaction" => json!([hash, {"tracer": "callTracer"}]),
        _ => json!([hash]),
    };
    Call { method, params }
}

fn state_calls(wallet: &Account, block: u64) -> [Call; 4] {
    let wallet = wire::hex(wallet);
    let at = |height: u64| format!("{height:#x}");
    let (before, after) = (at(block.saturating_sub(1)), at(block));
    let balance = |at: &str| Call { method: "eth_getBalance", params: json!([wallet, at]) };
    let count = |at: &str| Call { method: "eth_getTransactionCount", params: json!([wallet, at]) };
    [balance(&before), balance(&after), count(&before), count(&after)]
}
