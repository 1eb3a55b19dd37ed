//! Native coin that moved inside a transaction: from a trace, else from the change of the wallet's
//! balance (`native_balance.rs`), else unknown.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;

use super::{EvmSource, Past, receipts, wire};
use crate::decode::evm::{
    self, Account, NativeFlows, NativeMove, Transaction, hides_payment, parse_flat_trace,
    parse_trace,
};
use crate::domain::{Height, Units, lock};
use crate::rpc::classify;
use crate::rpc::{Call, CallAnswer, CallOptions, UpstreamError};

/// A transaction whose inner movements are needed, with its sender's fee.
#[derive(Debug)]
pub(super) struct Traced<'a> {
    pub(super) tx: &'a mut Transaction,
    /// `None` if the receipt does not contain it.
    pub(super) fee: Option<Units>,
    /// No other transaction of the wallet is known in the block.
    pub(super) alone: bool,
}

/// How long to wait for an endpoint whose chain is not checked yet; one that is down must not delay
/// histories for minutes.
const CHAIN_PATIENCE: Duration = Duration::from_secs(2);
/// Attempts for a trace that cannot be decoded or lacks calls.
const TRACE_TRIES: u32 = 2;
/// Answers that a transaction is too old to be traced, after which those in its block and below are
/// not traced for a while.
const PRUNED_ANSWERS: u32 = 2;

/// What a trace showed that lacked calls.
type Shown = Option<Vec<NativeMove>>;
type Read = fn(&[u8]) -> Result<Vec<NativeMove>, evm::RawError>;

impl EvmSource {
    pub(super) fn may_trade(&self, tx: &Transaction) -> bool {
        evm::may_trade(self.inner.registry.evm(), &self.inner.chain, tx)
    }

    /// Whether a trace contains calls of every contract that must have run (the recipient and the
    /// pools that report a trade), and as many calls as it states; where it repeats another answer,
    /// except those of precompiled contracts. A trace without some calls would hide their payments.
    fn shows_calls(&self, trace: &RawValue, tx: &Transaction, is_again: bool) -> bool {
        let tables = self.inner.registry.evm();
        let pools = tx.logs.iter().filter(|log| evm::is_known_event(tables, log));
        let ran: BTreeSet<Account> = pools.map(|log| log.address).chain(tx.to).collect();
        let text = trace.get().as_bytes();
        receipts::names_all(trace, &ran)
            && (evm::is_flat_trace_whole(text) || is_again && evm::may_lack_precompiles_alone(text))
    }

    /// Sets the native flows that are available. Never fails: flows that an endpoint may return
    /// later are marked as refused, others stay unknown.
    pub(super) async fn fill_native(
        &self,
        wallet: &Account,
        open: Vec<Traced<'_>>,
        options: &CallOptions,
    ) {
        let left = self.by_traces(open, options).await;
        for one in self.by_balance(wallet, left, options).await {
            one.tx.native = NativeFlows::Refused;
        }
    }

    /// Sets flows by traces; returns the transactions without a trace.
    async fn by_traces<'a>(&self, open: Vec<Traced<'a>>, options: &CallOptions) -> Vec<Traced<'a>> {
        let (mut left, mut traceable): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|one| self.is_pruned(Past::Traces, one.tx.block));
        let (mut lowest_offered, are_all_asked) = (Height::MAX, !self.awaits_endpoint());
        let methods: [(&'static str, Read); 2] =
            [("debug_traceTransaction", parse_trace), ("trace_transaction", parse_flat_trace)];
        for _ in 0..PRUNED_ANSWERS {
            for (method, read) in methods {
                if !traceable.is_empty() {
                    let offered;
                    (traceable, offered) = self.by_trace(method, read, traceable, options).await;
                    lowest_offered = lowest_offered.min(offered);
                }
            }
            // Near the head the newest transactions can be traced when older ones no longer can.
            let (below, others): (Vec<_>, Vec<_>) =
                traceable.into_iter().partition(|one| one.tx.block < lowest_offered);
            left.extend(others);
            traceable = below;
        }
        let top = traceable.iter().map(|one| one.tx.block).max();
        if let Some(top) = top.filter(|_| are_all_asked && !self.awaits_endpoint()) {
            self.note_pruned(Past::Traces, top);
        }
        left.extend(traceable);
        left
    }

    /// Whether an endpoint is excluded because its chain is not checked yet.
    pub(super) fn awaits_endpoint(&self) -> bool {
        self.inner.pool.awaits_any(CHAIN_PATIENCE)
    }

    /// Sets flows by one trace method. Returns the transactions without an answer, and the lowest
    /// block that was answered or may be later.
    async fn by_trace<'a>(
        &self,
        method: &'static str,
        read: Read,
        open: Vec<Traced<'a>>,
        options: &CallOptions,
    ) -> (Vec<Traced<'a>>, Height) {
        let (mut left, mut offered, mut avoid) = (Vec::new(), Height::MAX, None);
        let wrapped = self.inner.chain.wrapped_native.bytes();
        let mut open: Vec<(Traced<'_>, Shown)> = open.into_iter().map(|one| (one, None)).collect();
        for _ in 0..TRACE_TRIES {
            let calls: Vec<Call> = open.iter().map(|(one, _)| trace_call(method, one.tx)).collect();
            let options = CallOptions { avoid, ..options.clone() };
            let answers = self.inner.pool.batch(&calls, &options).await;
            for ((one, shown), answer) in std::mem::take(&mut open).into_iter().zip(answers) {
                if self.is_gone(&answer, one.tx.block) {
                    self.record_pruned(Past::Traces, &answer, one.tx.block);
                } else {
                    offered = offered.min(one.tx.block);
                }
                let Ok(answer) = answer else {
                    left.push(one);
                    continue;
                };
                let text = answer.result.get();
                let is_whole = |moves| {
                    let is_again = shown.as_ref() == Some(moves);
                    // Some services only return calls that move value: two such answers suffice.
                    is_again && holds_payments_alone(text)
                        || self.shows_calls(&answer.result, one.tx, is_again)
                };
                let is_its_own = !evm::is_trace_of_another(text.as_bytes(), one.tx);
                match read(text.as_bytes()).ok().filter(|_| is_its_own) {
                    Some(moves) if !hides_payment(one.tx, &moves, wrapped) && is_whole(&moves) => {
                        one.tx.native = NativeFlows::Calls(moves);
                    }
                    moves => {
                        avoid = Some(answer.endpoint);
                        open.push((one, moves.or(shown)));
                    }
                }
            }
            if open.is_empty() {
                break;
            }
        }
        left.extend(open.into_iter().map(|(one, _)| one));
        (left, offered)
    }

    /// Whether no endpoint has the data and a retry soon would not help. Near the head a missing
    /// transaction may be one that a lagging node does not know yet.
    pub(super) fn is_gone(&self, answer: &CallAnswer, height: Height) -> bool {
        match answer {
            Err(UpstreamError::NotSupported { .. }) => true,
            Err(UpstreamError::Rpc { code, message, .. }) => {
                classify::is_pruned(*code, message)
                    && (self.is_far_down(height) || !classify::may_be_behind(*code, message))
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Records such an answer; a method that no endpoint supports has pruned nothing.
    pub(super) fn record_pruned(&self, what: Past, answer: &CallAnswer, height: Height) {
        if matches!(answer, Err(UpstreamError::Rpc { .. })) {
            let mut dropped = lock(&self.inner.dropped);
            let top = dropped.entry(what).or_default();
            *top = height.max(*top);
        }
    }

    /// Whether a node may have had the data for this height in an earlier read.
    pub(super) fn was_pruned(&self, what: Past, height: Height) -> bool {
        lock(&self.inner.dropped).get(&what).is_some_and(|top| height <= *top)
    }

    /// Whether the height is so far below the heads that the lists last showed that every working
    /// node has it.
    pub(super) fn is_far_down(&self, height: Height) -> bool {
        let head = lock(&self.inner.list_heads).values().map(|head| head.last).max();
        head.is_some_and(|head| height.saturating_add(self.inner.limits.log_head_margin) <= head)
    }
}

/// Whether each call below the outermost one gives native coin, creates a contract or was reverted:
/// a trace with others, of which some are missing, is cut.
fn holds_payments_alone(trace: &str) -> bool {
    let count = |text: &str| trace.matches(text).count();
    let reverted = count("\"error\"") - count("\"error\":null");
    count("\"type\"") <= 1 + evm::count_payments(trace.as_bytes()) + reverted
}

fn trace_call(method: &'static str, tx: &Transaction) -> Call {
    let hash = wire::hex(&tx.hash);
    let params = match method {
        "debug_traceTransaction" => json!([hash, {"tracer": "callTracer"}]),
        _ => json!([hash]),
    };
    Call { method, params }
}
