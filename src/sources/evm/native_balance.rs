//! Native coin by the change of the wallet's balance across a block, if no endpoint traces the
//! transaction and nothing else of the wallet is known in the block or shown by it.

use std::collections::BTreeSet;

use serde_json::json;

use super::block_payments::is_lone;
use super::blocks::block_call;
use super::log_search::{Query, TransferSide};
use super::native::Traced;
use super::{EvmSource, Past, wire};
use crate::decode::evm::{Account, NativeFlows, TRANSFER, Transaction, Word};
use crate::domain::{Height, Units};
use crate::rpc::{Call, CallAnswer, CallOptions, UpstreamError};

enum Balances {
    Given(NativeFlows),
    /// No endpoint has the state of one of the blocks.
    Gone,
    /// One of the balances may be available later.
    Open,
    /// The change cannot be that of the transaction alone.
    Odd,
}

#[derive(Default)]
struct ByBalances<'a> {
    given: Vec<(Traced<'a>, NativeFlows)>,
    gone: Vec<Traced<'a>>,
    open: Vec<Traced<'a>>,
    odd: Vec<Traced<'a>>,
}

impl<'a> ByBalances<'a> {
    fn take(&mut self, answers: Vec<(Traced<'a>, Balances)>) {
        for (one, balances) in answers {
            match balances {
                Balances::Given(flows) => self.given.push((one, flows)),
                Balances::Gone => self.gone.push(one),
                Balances::Open => self.open.push(one),
                Balances::Odd => self.odd.push(one),
            }
        }
    }
}

impl EvmSource {
    /// Sets flows by balances. Returns the transactions for which an endpoint may return more
    /// later.
    pub(super) async fn by_balance<'a>(
        &self,
        wallet: &Account,
        left: Vec<Traced<'a>>,
        options: &CallOptions,
    ) -> Vec<Traced<'a>> {
        let (wanted, mut left): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|one| is_alone(wallet, one) && !self.is_pruned(Past::States, one.tx.block));
        let are_all_asked = !self.awaits_endpoint();
        let asked = self.ask_balances(wallet, wanted, options).await;
        let ByBalances { given, gone, mut open, odd } = asked;
        // Two answers contradict the transaction: something else changed the balance.
        left.extend(odd);
        if are_all_asked && !self.awaits_endpoint() {
            let others = given.iter().map(|(one, _)| one).chain(&open);
            if let Some(top) = highest_below(&gone, others) {
                self.note_pruned(Past::States, top);
            }
            left.extend(gone);
        } else {
            open.extend(gone);
        }
        let (crowded, unseen) = self.verify_by_blocks(wallet, given, options).await;
        left.extend(crowded);
        open.extend(unseen);
        for one in left {
            if !self.is_pruned(Past::Traces, one.tx.block) {
                open.push(one);
            } else if self.may_have_been_known(wallet, &one) {
                one.tx.native = NativeFlows::Gone;
            }
        }
        open
    }

    /// Whether a trace or balances may have shown an earlier read what is missing now.
    fn may_have_been_known(&self, wallet: &Account, one: &Traced<'_>) -> bool {
        let block = one.tx.block;
        let by_states = is_alone(wallet, one) && self.is_pruned(Past::States, block);
        // Without the fee, as gateways return it, balances were not queried.
        let is_unasked = one.alone && one.tx.from == *wallet && one.fee.is_none();
        self.was_pruned(Past::Traces, block)
            || by_states && self.was_pruned(Past::States, block)
            || is_unasked && self.may_show_balances()
    }

    fn may_show_balances(&self) -> bool {
        let all = self.inner.pool.endpoints();
        all.iter().any(|one| !one.not_offered.iter().any(|method| method == "eth_getBalance"))
    }

    /// That no endpoint has a state requires two answers. Once confirmed for the highest block it
    /// holds for those below: nodes prune the oldest states first.
    async fn ask_balances<'a>(
        &self,
        wallet: &Account,
        wanted: Vec<Traced<'a>>,
        options: &CallOptions,
    ) -> ByBalances<'a> {
        let mut asked = ByBalances::default();
        asked.take(self.balances_once(wallet, wanted, options).await);
        let odd = std::mem::take(&mut asked.odd);
        asked.take(self.balances_once(wallet, odd, options).await);
        let mut lower = std::mem::take(&mut asked.gone);
        lower.sort_by_key(|one| one.tx.block);
        let highest = lower.pop().into_iter().collect();
        asked.take(self.balances_once(wallet, highest, options).await);
        if asked.gone.is_empty() {
            asked.take(self.balances_once(wallet, lower, options).await);
        } else {
            asked.gone.extend(lower);
        }
        asked
    }

    async fn balances_once<'a>(
        &self,
        wallet: &Account,
        wanted: Vec<Traced<'a>>,
        options: &CallOptions,
    ) -> Vec<(Traced<'a>, Balances)> {
        let calls = wanted.iter().flat_map(|one| balance_calls(wallet, one.tx.block));
        let calls: Vec<Call> = calls.collect();
        if calls.is_empty() {
            return Vec::new();
        }
        let mut answers = self.inner.pool.batch(&calls, options).await.into_iter();
        let mut next = || answers.next().unwrap_or(Err(UpstreamError::NoEndpoint));
        let read = |one: Traced<'a>| {
            let balances = self.read_balances(wallet, &one, [next(), next()]);
            (one, balances)
        };
        wanted.into_iter().map(read).collect()
    }

    fn read_balances(
        &self,
        wallet: &Account,
        one: &Traced<'_>,
        [before, after]: [CallAnswer; 2],
    ) -> Balances {
        let is_lost = |answer: &CallAnswer| self.is_lost(answer, one.tx.block);
        if [&before, &after].into_iter().any(is_lost) {
            for answer in [&before, &after].into_iter().filter(|answer| is_lost(answer)) {
                self.record_pruned(Past::States, answer, one.tx.block);
            }
            return Balances::Gone;
        }
        let (Ok(before), Ok(after)) = (before, after) else { return Balances::Open };
        let balances = [&before.result, &after.result].map(|one| wire::units(one));
        let ([Some(before), Some(after)], Some(fee)) = (balances, one.fee) else {
            return Balances::Open;
        };
        net([before, after], (one.tx, fee), wallet).map_or(Balances::Odd, Balances::Given)
    }

    /// Whether no endpoint has the state; or each refuses it with an unknown error, in several
    /// rounds, and none of them can lag.
    fn is_lost(&self, answer: &CallAnswer, height: Height) -> bool {
        let is_refused = matches!(answer, Err(UpstreamError::Rpc { .. }));
        self.is_gone(answer, height) || is_refused && self.is_far_down(height)
    }

    /// Removes flows found by balances if logs of the block show, or may show, another transaction
    /// that concerns the wallet: a contract may have paid it there, which the block does not show.
    pub(super) async fn verify_by_logs(
        &self,
        wallet: &Account,
        tx: &mut Transaction,
        options: &CallOptions,
    ) {
        if !matches!(tx.native, NativeFlows::Net { .. }) {
            return;
        }
        match self.logs_another(wallet, tx, options).await {
            Some(false) => {}
            // No trace is available that would assign the balance change.
            Some(true) if self.is_pruned(Past::Traces, tx.block) => {
                let was_traced = self.was_pruned(Past::Traces, tx.block);
                tx.native = if was_traced { NativeFlows::Gone } else { NativeFlows::Unknown };
            }
            Some(true) | None => tx.native = NativeFlows::Refused,
        }
    }

    /// Whether another transaction of the block moves tokens of the wallet, as far as nodes have
    /// the logs; `None` if they may be available later.
    async fn logs_another(
        &self,
        wallet: &Account,
        tx: &Transaction,
        options: &CallOptions,
    ) -> Option<bool> {
        let range = (tx.block, tx.block);
        let calls = TransferSide::BOTH.map(|side| Query::new(side, range, None).call(wallet));
        let mut found = BTreeSet::new();
        for answer in self.inner.pool.batch(&calls, options).await {
            if self.is_lost(&answer, tx.block) {
                return Some(true);
            }
            let logs = answer.and_then(|answer| self.logs_in(&answer, range)).ok()?;
            found.extend(logs.into_iter().map(|log| log.hash));
        }
        // The transaction's own logs show that the answer is about this block.
        let is_shown = found.remove(&tx.hash) || !has_transfer(tx, wallet);
        (is_shown || !found.is_empty()).then_some(!found.is_empty())
    }

    /// Sets the flows of transactions whose block contains nothing else of the wallet. Returns the
    /// others, and those whose block was not available.
    async fn verify_by_blocks<'a>(
        &self,
        wallet: &Account,
        given: Vec<(Traced<'a>, NativeFlows)>,
        options: &CallOptions,
    ) -> (Vec<Traced<'a>>, Vec<Traced<'a>>) {
        let (mut crowded, mut unseen) = (Vec::new(), Vec::new());
        let calls: Vec<Call> =
            given.iter().map(|(one, _)| block_call(one.tx.block, true)).collect();
        if calls.is_empty() {
            return (crowded, unseen);
        }
        let blocks = self.inner.pool.batch(&calls, options).await;
        for ((one, flows), block) in given.into_iter().zip(blocks) {
            match &block {
                Ok(block) if is_lone(&block.result, &one.tx.hash, wallet) => one.tx.native = flows,
                Ok(block) if block.result.get().trim() != "null" => crowded.push(one),
                answer if self.is_lost(answer, one.tx.block) => crowded.push(one),
                Ok(_) | Err(_) => unseen.push(one),
            }
        }
        (crowded, unseen)
    }
}

/// Whether the balance change of the block may be the transaction's alone.
fn is_alone(wallet: &Account, one: &Traced<'_>) -> bool {
    one.alone && one.tx.from == *wallet && one.fee.is_some()
}

/// Whether a search for the wallet's transfers finds the transaction.
fn has_transfer(tx: &Transaction, wallet: &Account) -> bool {
    let is_wallet = |topic: &Word| wire::account_of(topic) == Some(*wallet);
    tx.logs
        .iter()
        .map(|log| &log.topics)
        .any(|topics| topics.first() == Some(&TRANSFER) && topics.iter().skip(1).any(is_wallet))
}

/// The highest block among some transactions that lies below all blocks of the others.
fn highest_below<'a>(
    some: &[Traced<'_>],
    others: impl Iterator<Item = &'a Traced<'a>>,
) -> Option<Height> {
    let lowest = others.map(|one| one.tx.block).min();
    let blocks = some.iter().map(|one| one.tx.block);
    blocks.filter(|block| lowest.is_none_or(|lowest| *block < lowest)).max()
}

/// The net flow from the balances around a transaction that the wallet sent. The wallet had at
/// least the value and the fee, and lost no more than these unless its own code ran: without these
/// checks one false zero balance would become an amount.
fn net(
    [before, after]: [Units; 2],
    (tx, fee): (&Transaction, Units),
    wallet: &Account,
) -> Option<NativeFlows> {
    let with_fee = after.checked_add(fee)?;
    let (gained, lost) = (with_fee.saturating_sub(before), before.saturating_sub(with_fee));
    let had_it = tx.value.checked_add(fee).is_some_and(|sent| sent <= before);
    let is_called = tx.to.as_ref() == Some(wallet);
    (had_it && (is_called || lost <= tx.value)).then_some(NativeFlows::Net { gained, lost })
}

fn balance_calls(wallet: &Account, block: u64) -> [Call; 2] {
    let wallet = wire::hex(wallet);
    [block.saturating_sub(1), block].map(|height| Call {
        method: "eth_getBalance",
        params: json!([wallet, format!("{height:#x}")]),
    })
}
