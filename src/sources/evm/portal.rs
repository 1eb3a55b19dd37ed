//! A wallet's transactions by an open data gateway, which filters the logs of a whole chain.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::abilities::Abilities;
use super::discovery::{Candidate, Discovery, Window};
use super::portal_wire::{self as wire, Block, PlacedLog, Trace, Tx};
use super::subject::Subject;
use crate::decode::evm::{Account, Log, NativeFlows, NativeMove, Terms, Transaction};
use crate::domain::{Doubts, Height, UnixSeconds};
use crate::rpc::ask::{Ask, Reading, Reply};
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::{CallOptions, Pool};
use crate::rpc::scheduler::Lane;

/// Blocks of the first window: small, so that the first rows come early.
const SPAN_FIRST: u64 = 50_000;
const SPAN_MAX: u64 = 1 << 40;
/// Transactions in a window below which the next one is longer, and above which shorter.
const FOUND_FEW: usize = 200;
const FOUND_MANY: usize = 1_000;
/// Transactions at which a window is cut.
const FOUND_MAX: usize = 4_000;
const GROWTH: u64 = 4;

#[derive(Debug)]
pub(super) struct PortalLister {
    pool: Pool,
    subject: Subject,
    lane: Lane,
    low: Height,
    /// The next window's top; `None` below the lowest.
    top: Option<Height>,
    span: u64,
    open: Option<Open>,
    with_traces: bool,
    /// Not all gateways distinguish finalized blocks.
    finalized_only: bool,
    /// The first block that the gateway has, once it was asked for.
    first: Option<Height>,
    abilities: Arc<Abilities>,
}

/// A window that is being read, upwards.
#[derive(Debug)]
struct Open {
    low: Height,
    high: Height,
    next: Height,
    found: Vec<Candidate>,
    skipped: usize,
}

impl PortalLister {
    pub(super) fn new(
        pool: Pool,
        subject: Subject,
        lane: Lane,
        (low, high): (Height, Height),
        abilities: Arc<Abilities>,
    ) -> Self {
        Self {
            pool,
            subject,
            lane,
            low,
            top: (low <= high).then_some(high),
            span: SPAN_FIRST,
            open: None,
            with_traces: true,
            finalized_only: true,
            first: None,
            abilities,
        }
    }

    /// Begins further down, before anything is listed.
    pub(super) fn set_high(&mut self, high: Height) {
        self.top = (self.low <= high).then_some(high);
    }

    /// The gateway's newest final block.
    pub(super) async fn head(&self) -> Result<Option<Height>, UpstreamError> {
        match self.ask("/finalized-head", None, wire::read_value).await {
            Ok(reply) => Ok(wire::head(&reply.body)),
            Err(error) if error.is_final() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The next window down. Cancel safe: an answer that is under way is asked for again.
    pub(super) async fn next(&mut self) -> Result<Option<Window>, UpstreamError> {
        let Some(top) = self.top else { return Ok(None) };
        // The first rows do not wait for it.
        if self.open.is_none() && self.span != SPAN_FIRST {
            self.check_first(top).await?;
        }
        loop {
            let low =
                top.saturating_sub(self.span - 1).max(self.low).max(self.first_used()).min(top);
            let open = self.open.get_or_insert_with(|| Open::new(low, top));
            if open.next > open.high {
                break;
            }
            let (from, to) = (open.next, open.high);
            match self.stream(from, to).await {
                Ok(reply) => self.absorb(&reply)?,
                Err(error) => self.amend(error, top).await?,
            }
        }
        // Below its first block the gateway is silent without saying why.
        self.check_first(top).await?;
        Ok(self.open.take().map(|open| self.close(open)))
    }

    async fn stream(&self, from: Height, to: Height) -> Result<Reply, UpstreamError> {
        let path = if self.finalized_only { "/finalized-stream" } else { "/stream" };
        let query = wire::query(&self.subject.wallet, from, to, self.with_traces);
        self.ask(path, Some(query.to_string().into()), wire::read_stream).await
    }

    async fn ask(
        &self,
        path: &'static str,
        body: Option<Bytes>,
        read: fn(u16, &[u8]) -> Reading,
    ) -> Result<Reply, UpstreamError> {
        let ask = Ask { name: path, path: path.to_owned(), query: Vec::new(), body };
        self.pool.ask(&ask, read, &CallOptions::new(self.lane.clone())).await
    }

    fn absorb(&mut self, reply: &Reply) -> Result<(), UpstreamError> {
        let malformed = |what: &str| UpstreamError::Malformed {
            endpoint: self.pool.label(reply.endpoint),
            what: what.to_owned(),
        };
        if self.with_traces {
            self.abilities.note_calls(Discovery::Portal);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let blocks =
            wire::blocks(&reply.body).ok_or_else(|| malformed("a block cannot be read"))?;
        let in_range = blocks.iter().all(|b| (open.next..=open.high).contains(&b.number));
        if !in_range || !blocks.is_sorted_by(|one, next| one.number < next.number) {
            return Err(malformed("blocks are not those asked for"));
        }
        let Some(last) = blocks.last().map(|block| block.number) else { return Ok(()) };
        for block in blocks {
            let (found, skipped) = candidates(block, &self.subject)
                .ok_or_else(|| malformed("a log comes without its transaction"))?;
            open.found.extend(found);
            open.skipped += skipped;
        }
        open.next = last.saturating_add(1);
        if open.found.len() > FOUND_MAX && last < open.high {
            // About as dense above: half of what was read here will do.
            self.span = ((last - open.low) / 2).max(1);
            self.open = None;
        }
        Ok(())
    }

    /// What follows from an answer that is an error.
    async fn amend(&mut self, error: UpstreamError, top: Height) -> Result<(), UpstreamError> {
        let code = match &error {
            UpstreamError::Rpc { code, .. } => *code,
            UpstreamError::NotSupported { .. } if self.finalized_only => {
                self.finalized_only = false;
                return Ok(());
            }
            UpstreamError::NotSupported { .. }
            | UpstreamError::NoEndpoint
            | UpstreamError::Unavailable { .. }
            | UpstreamError::Refused { .. }
            | UpstreamError::Malformed { .. }
            | UpstreamError::HistoryCut { .. }
            | UpstreamError::WrongChain { .. }
            | UpstreamError::NotAWallet { .. } => return Err(error),
        };
        let length = self.open.as_ref().map_or(1, |open| open.high - open.low + 1);
        // The answer is longer than is taken.
        if code == 413 && length > 1 {
            self.span = (length / GROWTH).max(1);
            self.open = None;
            return Ok(());
        }
        if code != 400 {
            return Err(error);
        }
        // It may be about blocks before the first one, or about traces that it does not have.
        let was_known = self.first.is_some();
        self.check_first(top).await?;
        if !was_known && self.first.is_some_and(|first| first > self.low) {
            self.open = None;
            return Ok(());
        }
        if std::mem::take(&mut self.with_traces) {
            self.abilities.note_no_calls(Discovery::Portal);
            return Ok(());
        }
        Err(error)
    }

    /// Learns from where on the gateway has blocks; `top` must be one of them.
    async fn check_first(&mut self, top: Height) -> Result<(), UpstreamError> {
        let first = match self.first {
            Some(first) => first,
            None => match self.ask("/metadata", None, wire::read_value).await {
                Ok(reply) => wire::first_block(&reply.body).unwrap_or(0),
                Err(error) if error.is_final() => 0,
                Err(error) => return Err(error),
            },
        };
        self.first = Some(first);
        let first = self.first_used();
        if first > top {
            return Err(UpstreamError::HistoryCut { first });
        }
        if let Some(open) = self.open.as_mut() {
            open.low = open.low.max(first);
        }
        Ok(())
    }

    /// Nothing happens in the first block of a chain.
    fn first_used(&self) -> Height {
        self.first.filter(|first| *first > 1).unwrap_or(0)
    }

    fn close(&mut self, mut open: Open) -> Window {
        self.top = open.low.checked_sub(1).filter(|below| *below >= self.low);
        let length = open.high - open.low + 1;
        match open.found.len() + open.skipped {
            few if few < FOUND_FEW => self.span = length.max(self.span).saturating_mul(GROWTH),
            many if many > FOUND_MANY => self.span = length / 2,
            _ => {}
        }
        self.span = self.span.clamp(1, SPAN_MAX);
        open.found.reverse();
        Window {
            low: open.low,
            high: open.high,
            found: open.found,
            resume: None,
            skipped: open.skipped,
            doubts: if self.with_traces { Doubts::NONE } else { Doubts::INNER_CALLS },
        }
    }
}

impl Open {
    fn new(low: Height, high: Height) -> Self {
        Self { low, high, next: low, found: Vec::new(), skipped: 0 }
    }
}

/// What a block holds of one transaction.
#[derive(Default)]
struct Sight {
    tx: Option<Tx>,
    logs: Vec<PlacedLog>,
    traces: Vec<Trace>,
}

/// The candidates of a block in its order, and how much spam it holds; `None` where a transaction
/// is missing.
fn candidates(block: Block, subject: &Subject) -> Option<(Vec<Candidate>, usize)> {
    let mut sights: BTreeMap<u32, Sight> = BTreeMap::new();
    for tx in block.txs {
        let at = tx.index;
        sights.entry(at).or_default().tx = Some(tx);
    }
    for log in block.logs {
        sights.entry(log.tx).or_default().logs.push(log);
    }
    for trace in block.traces {
        // Rewards belong to no transaction that was asked for.
        if let Some(sight) = sights.get_mut(&trace.tx) {
            sight.traces.push(trace);
        }
    }
    let (mut found, mut skipped) = (Vec::new(), 0);
    for mut sight in sights.into_values() {
        sight.logs.sort_by_key(|log| log.index);
        sight.logs.dedup_by_key(|log| log.index);
        let tx = sight.tx.take()?;
        match candidate(&tx, sight, (block.number, block.time), subject) {
            Some(Ok(candidate)) => found.push(candidate),
            Some(Err(Spam)) => skipped += 1,
            None => {}
        }
    }
    Some((found, skipped))
}

/// It only came in, from an unknown sender.
struct Spam;

fn candidate(
    tx: &Tx,
    sight: Sight,
    (block, time): (Height, Option<UnixSeconds>),
    subject: &Subject,
) -> Option<Result<Candidate, Spam>> {
    let wallet = &subject.wallet;
    let mine = |ends: &(Account, Account)| ends.0 == *wallet || ends.1 == *wallet;
    let moved: Vec<(Account, Account)> =
        sight.logs.iter().filter_map(|log| transfer(&log.log)).filter(mine).collect();
    if tx.failed || moved.is_empty() {
        return None;
    }
    let sent = tx.from == *wallet;
    // Asked for with all its logs: what was sent, and what holds any transfer or call from the wallet.
    let from_wallet =
        |log: &PlacedLog| transfer_ends(&log.log).is_some_and(|(from, _)| from == *wallet);
    let paid = |trace: &Trace| trace.moved.is_some_and(|call| call.from == *wallet);
    let paid = sight.traces.iter().any(paid);
    let is_full = sent || paid || sight.logs.iter().any(from_wallet);
    let gave = paid || moved.iter().any(|(from, _)| from == wallet);
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
    // Not its own doing: it came through a known contract.
    Some(Ok(Candidate { hash, block, index: Some(index), time, whole, calls, sent: Some(true) }))
}

fn whole(tx: &Tx, logs: Vec<PlacedLog>, block: Height) -> Transaction {
    Transaction {
        hash: tx.hash,
        block,
        index: tx.index,
        from: tx.from,
        to: tx.to,
        value: tx.value,
        selector: tx.selector,
        terms: Terms::default(),
        succeeded: !tx.failed,
        logs: logs.into_iter().map(|log| log.log).collect(),
        native: NativeFlows::Unknown,
    }
}

/// A transaction's logs have numbers without gaps: where there are some, not all came.
fn is_unbroken(logs: &[PlacedLog]) -> bool {
    logs.windows(2).all(|two| match two {
        [one, next] => one.index.checked_add(1) == Some(next.index),
        _ => true,
    })
}

/// The ends of a token transfer of more than nothing.
fn transfer(log: &Log) -> Option<(Account, Account)> {
    let moves = log.topics.len() == 3 && log.data.iter().any(|byte| *byte != 0);
    transfer_ends(log).filter(|_| moves)
}

fn transfer_ends(log: &Log) -> Option<(Account, Account)> {
    let [topic, from, to, ..] = log.topics.as_slice() else { return None };
    let end = |word: &[u8; 32]| word.last_chunk::<20>().copied();
    (*topic == wire::TRANSFER).then_some(())?;
    Some((end(from)?, end(to)?))
}

/// What the calls below the outermost moved and was not taken back; `None` where not all came.
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
