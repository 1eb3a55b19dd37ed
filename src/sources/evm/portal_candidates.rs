//! Pure: a wallet's candidates in a gateway's block.

use std::collections::{BTreeMap, HashSet};

use super::discovery::Candidate;
use super::fees;
use super::portal_wire::{self as wire, Block, PlacedLog, Trace, Tx};
use super::receipts::{TokenTransfer, transfer, transfer_ends};
use super::subject::Subject;
use crate::decode::evm::{Account, NativeFlows, NativeMove, Transaction, Word};
use crate::domain::{Height, Units, UnixSeconds};

/// A transfer to the wallet: transaction, token, sender.
pub(super) type Arrival = (Word, Account, Account);

pub(super) fn arrivals(block: &Block, wallet: &Account) -> Vec<Arrival> {
    let arrival = |placed: &PlacedLog| {
        let (from, _) = transfer(&placed.log).filter(|(_, to)| to == wallet)?;
        let tx = block.txs.iter().find(|tx| tx.index == placed.tx)?;
        Some((tx.hash, placed.log.address, from))
    };
    block.logs.iter().filter_map(arrival).collect()
}

#[derive(Default)]
struct TxParts {
    tx: Option<Tx>,
    logs: Vec<PlacedLog>,
    traces: Vec<Trace>,
    /// Its change of the wallet's balance.
    change: Option<NativeFlows>,
}

/// The wallet's balance change by each transaction of a block, without those whose fee is unknown.
/// Empty if balances of the chain change by other means than transactions and fees, or if the
/// wallet may be the block's producer.
pub(super) fn balance_changes(block: &Block, subject: &Subject) -> Vec<(u32, NativeFlows)> {
    let (wallet, chain_id) = (subject.wallet, subject.chain.chain_id);
    // The block's producer gets a part of each fee.
    let is_known = block.miner.is_some_and(|miner| miner != wallet);
    if !is_known || fees::moves_otherwise(chain_id) {
        return Vec::new();
    }
    let own = || block.diffs.iter().filter(|diff| diff.account == wallet);
    let change = |diff: &wire::BalanceDiff| {
        let tx = block.txs.iter().find(|tx| tx.index == diff.tx)?;
        let is_only = own().filter(|other| other.tx == diff.tx).count() == 1;
        let fee = if tx.from == wallet {
            fees::gateway_fee(chain_id, tx.kind, tx.gas)?
        } else {
            Units::ZERO
        };
        let with_fee = diff.after.checked_add(fee).filter(|_| is_only)?;
        let gained = with_fee.saturating_sub(diff.before);
        let lost = diff.before.saturating_sub(with_fee);
        Some((diff.tx, NativeFlows::Net { gained, lost }))
    };
    own().filter_map(change).collect()
}

/// The candidates of a block in order, and the number of spam transactions; `None` if a transaction
/// is missing. `is_detailed`: each has all its logs.
pub(super) fn candidates(
    block: Block,
    subject: &Subject,
    is_detailed: bool,
) -> Option<(Vec<Candidate>, usize)> {
    let mut sights: BTreeMap<u32, TxParts> = BTreeMap::new();
    for (at, change) in balance_changes(&block, subject) {
        sights.entry(at).or_default().change = Some(change);
    }
    for tx in block.txs {
        let at = tx.index;
        sights.entry(at).or_default().tx = Some(tx);
    }
    for log in block.logs {
        sights.entry(log.tx).or_default().logs.push(log);
    }
    for trace in block.traces {
        // Rewards belong to no transaction.
        if let Some(sight) = sights.get_mut(&trace.tx) {
            sight.traces.push(trace);
        }
    }
    let (mut found, mut skipped) = (Vec::new(), 0);
    for mut sight in sights.into_values() {
        sight.logs.sort_by_key(|log| log.index);
        sight.logs.dedup_by_key(|log| log.index);
        let tx = sight.tx.take()?;
        match candidate(&tx, sight, (block.number, block.time), (subject, is_detailed)) {
            Some(Ok(candidate)) => found.push(candidate),
            Some(Err(Spam)) => skipped += 1,
            None => {}
        }
    }
    Some((found, skipped))
}

/// A transaction that only received something, from an unknown sender.
struct Spam;

fn candidate(
    tx: &Tx,
    sight: TxParts,
    (block, time): (Height, Option<UnixSeconds>),
    (subject, is_detailed): (&Subject, bool),
) -> Option<Result<Candidate, Spam>> {
    let wallet = &subject.wallet;
    let mine = |ends: &(Account, Account)| ends.0 == *wallet || ends.1 == *wallet;
    let moved: Vec<(Account, Account)> =
        sight.logs.iter().filter_map(|log| transfer(&log.log)).filter(mine).collect();
    if tx.failed || moved.is_empty() {
        return None;
    }
    let sent = tx.from == *wallet;
    // Transactions that the wallet sent, or that contain a transfer or call from it, were requested
    // with all logs.
    let from_wallet =
        |log: &PlacedLog| transfer_ends(&log.log).is_some_and(|(from, _)| from == *wallet);
    let paid = |trace: &Trace| trace.moved.is_some_and(|call| call.from == *wallet);
    let paid = sight.traces.iter().any(paid);
    let is_full = is_detailed || sent || paid || sight.logs.iter().any(from_wallet);
    let lost = matches!(sight.change, Some(NativeFlows::Net { lost, .. }) if lost > Units::ZERO);
    let gave = paid || lost || moved.iter().any(|(from, _)| from == wallet);
    if !sent && !gave {
        let others = moved.iter().map(|(from, _)| *from).chain(tx.to);
        let emitters = sight.logs.iter().map(|log| log.log.address);
        if !others.chain(emitters).any(|other| subject.knows(&other)) {
            return Some(Err(Spam));
        }
    }
    let calls = calls(sight.traces);
    let (hash, index) = (tx.hash, tx.index);
    let whole =
        (is_full && is_unbroken(&sight.logs)).then(|| Box::new(whole(tx, sight.logs, block)));
    // Not the wallet's own transaction: it came through a known contract.
    let (index, sent) = (Some(index), Some(true));
    let transfer = Some(TokenTransfer { wallet: *wallet, is_logged: true });
    let listed = (false, false);
    Some(Ok(Candidate { hash, block, index, time, whole, calls, sent, transfer, listed }))
}

fn whole(tx: &Tx, logs: Vec<PlacedLog>, block: Height) -> Transaction {
    Transaction {
        hash: tx.hash,
        block,
        index: tx.index,
        producer: None,
        from: tx.from,
        to: tx.to,
        value: tx.value,
        selector: tx.selector,
        terms: tx.terms.unwrap_or_default(),
        succeeded: !tx.failed,
        logs: logs.into_iter().map(|log| log.log).collect(),
        native: NativeFlows::Unknown,
    }
}

/// Whether log indexes have no gaps; a gap shows that some logs are missing.
fn is_unbroken(logs: &[PlacedLog]) -> bool {
    logs.windows(2).all(|two| match two {
        [one, next] => one.index.checked_add(1) == Some(next.index),
        _ => true,
    })
}

/// Native movements of the calls below the outermost one that were not reverted; `None` if some are
/// missing.
fn calls(mut traces: Vec<Trace>) -> Option<Vec<NativeMove>> {
    traces.sort_by(|a, b| a.address.cmp(&b.address));
    traces.dedup_by(|a, b| a.address == b.address);
    let outermost = traces.first().filter(|trace| trace.address.is_empty())?;
    let listed = traces.iter().map(|trace| trace.below).sum::<Option<usize>>();
    if listed.is_some_and(|listed| listed + 1 != traces.len()) || outermost.failed {
        return None;
    }
    let mut undone: Option<&[u32]> = None;
    let mut moves = Vec::new();
    for trace in &traces {
        if undone.is_some_and(|above| trace.address.starts_with(above)) {
            continue;
        }
        undone = trace.failed.then_some(trace.address.as_slice());
        if !trace.address.is_empty() {
            moves.extend(trace.moved);
        }
    }
    Some(moves)
}

/// What the answers to a window show about traces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TraceSights {
    /// The lowest block with a trace.
    pub(super) shown: Option<Height>,
    /// The lowest block with a transaction that ran a contract and was requested with its traces,
    /// of which it has none.
    pub(super) lacking: Option<Height>,
    /// The lowest block with a transaction that only brought something: such ones come without
    /// traces.
    pub(super) unseen: Option<Height>,
}

impl TraceSights {
    pub(super) fn note(&mut self, block: &Block, wallet: &Account) {
        let traced: HashSet<u32> = block.traces.iter().map(|trace| trace.tx).collect();
        let gave =
            |log: &PlacedLog| transfer_ends(&log.log).is_some_and(|(from, _)| from == *wallet);
        let brought = |log: &PlacedLog| transfer(&log.log).is_some_and(|(_, to)| to == *wallet);
        for tx in &block.txs {
            let mut logs = block.logs.iter().filter(|log| log.tx == tx.index).peekable();
            let ran_contract = !tx.failed && logs.peek().is_some();
            let (gives, brings) = logs.fold((false, false), |(gives, brings), log| {
                (gives || gave(log), brings || brought(log))
            });
            let is_requested = tx.from == *wallet || gives;
            let lowest = match (traced.contains(&tx.index), is_requested) {
                (true, _) => &mut self.shown,
                (false, true) if ran_contract => &mut self.lacking,
                (false, false) if brings => &mut self.unseen,
                (false, _) => continue,
            };
            *lowest = lower(*lowest, Some(block.number));
        }
    }

    /// Combines two answers to one window: a block lacks traces only if both lack them.
    pub(super) fn joined(self, other: Self) -> Self {
        Self {
            shown: lower(self.shown, other.shown),
            lacking: self.lacking.and(other.lacking),
            unseen: lower(self.unseen, other.unseen),
        }
    }
}

fn lower(one: Option<Height>, other: Option<Height>) -> Option<Height> {
    one.into_iter().chain(other).min()
}
