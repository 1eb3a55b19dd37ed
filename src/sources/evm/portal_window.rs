//! One window of a gateway, read upwards. Transactions in which the wallet gave or sent something
//! come whole; those that came in through a known contract are completed by a second query over the
//! same blocks.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{OptionFuture, join};
use serde_json::Value;

use super::discovery::Candidate;
use super::list_client::ListClient;
use super::portal_candidates::{Arrival, TraceSights, arrivals, balance_changes, candidates};
use super::portal_wire::{self as wire, Block, NativeBy};
use super::subject::Subject;
use crate::decode::evm::{Account, CoinTo, NativeFlows, Terms, Transaction, Word, may_trade};
use crate::domain::{Doubts, Height};
use crate::rpc::{Ask, CallOptions, Reply, ReplyClass, Result, UpstreamError};
use crate::sources::gateway::classify_stream;

/// Blocks of the first window: few, for early first rows.
pub(super) const SPAN_FIRST: u64 = 50_000;
/// Transactions at which a window is cut.
const FOUND_MAX: usize = 4_000;
/// The most senders and tokens in a query for details; nodes are queried for the rest.
const NAMED_MAX: usize = 400;
/// The most answers for the details of a window.
const DETAIL_ANSWERS_MAX: usize = 8;
/// Blocks with content from which on an answer is held against one that begins in its middle.
const HALVED_MIN: usize = 8;
/// Blocks without content below which an answer that ends early is short, and the most short ones
/// of a window: a gateway that gives a few blocks an answer would take requests without end.
const SHORT: u64 = 1_000;
const SHORT_MAX: usize = 32;
/// Archive chunks that the gateway queries concurrently, for long windows.
const BUFFER: &str = "50";

#[derive(Debug, Clone, Copy)]
pub(super) struct GatewayMode {
    pub(super) native: NativeBy,
    /// Whether to request finalized blocks, which not all gateways support.
    pub(super) finalized_only: bool,
}

/// A window that was read, oldest candidate first.
#[derive(Debug)]
pub(super) struct PortalWindow {
    pub(super) low: Height,
    pub(super) high: Height,
    pub(super) found: Vec<Candidate>,
    pub(super) skipped: usize,
    /// Number of blocks with content in its answers, with candidates or not: an answer that ended
    /// early contained fewer, even if no candidate is missing.
    pub(super) blocks: usize,
    /// Height and nonce of everything that the wallet sent; `None` if an answer lacks nonces.
    pub(super) sent: Option<Vec<(Height, u64)>>,
    pub(super) doubts: Doubts,
    pub(super) traces: TraceSights,
    /// Whether an answer of it was held against one that begins in its middle, and lacks nothing of
    /// it: what a gateway leaves out by the place in its answers is missing of two that begin at
    /// the same block.
    pub(super) halved: bool,
}

impl PortalWindow {
    /// Holds what is above a height against an answer that begins there, and adds what only that
    /// one has.
    fn hold_against(&mut self, upper: Self) {
        let above = self.found.iter().filter(|one| one.block >= upper.low);
        let known: BTreeSet<Word> = above.map(|one| one.hash).collect();
        let is_known = |one: &Candidate| known.contains(&one.hash);
        self.halved = known.len() == upper.found.len() && upper.found.iter().all(is_known);
        self.found.extend(upper.found.into_iter().filter(|one| !is_known(one)));
    }

    /// Joins this window with the one right above.
    pub(super) fn below(mut self, above: Self) -> Self {
        self.high = above.high;
        self.found.extend(above.found);
        self.skipped += above.skipped;
        self.blocks += above.blocks;
        self.doubts = self.doubts.union(above.doubts);
        self.traces.lacking = self.traces.lacking.or(above.traces.lacking);
        self.sent = self.sent.zip(above.sent).map(|(below, above)| [below, above].concat());
        self
    }

    /// Splits the window into the part from a height up and the part below.
    pub(super) fn split(mut self, low: Height) -> (Self, Option<Self>) {
        let Some(high) = low.checked_sub(1).filter(|high| *high >= self.low) else {
            return (self, None);
        };
        let at = self.found.partition_point(|one| one.block < low);
        let found = self.found.split_off(at);
        let halves = self.sent.map(|sent| sent.into_iter().partition(|(at, _)| *at < low));
        let (below, above): (Option<Vec<_>>, Option<Vec<_>>) = halves.unzip();
        let given = Self { low, found, sent: above, ..self };
        (given, Some(Self { high, sent: below, skipped: 0, blocks: 0, ..self }))
    }
}

#[derive(Debug)]
pub(super) enum WindowError {
    /// It has too many transactions: use windows of this many blocks.
    Dense(u64),
    Error(UpstreamError),
}

impl From<UpstreamError> for WindowError {
    fn from(error: UpstreamError) -> Self {
        Self::Error(error)
    }
}

impl ListClient {
    pub(super) async fn ask(
        &self,
        path: &'static str,
        body: Option<Bytes>,
        read: fn(u16, &[u8]) -> ReplyClass,
    ) -> Result<Reply> {
        let ask = Ask { name: path, path: path.to_owned(), query: Vec::new(), body };
        self.pool.ask(&ask, read, &self.options()).await
    }

    /// Blocks of a range from its lowest one, as far as one answer reaches.
    pub(super) async fn blocks(
        &self,
        mode: GatewayMode,
        query: &Value,
        (from, to): (Height, Height),
    ) -> Result<Vec<Block>> {
        let name = if mode.finalized_only { "/finalized-stream" } else { "/stream" };
        let is_long = to - from >= SPAN_FIRST;
        let query_text =
            if is_long { vec![("buffer_size", BUFFER.to_owned())] } else { Vec::new() };
        let body = Some(query.to_string().into());
        let ask = Ask { name, path: name.to_owned(), query: query_text, body };
        // The newest window is delivered first.
        let options = CallOptions::new(self.lane.ranked(u64::MAX - to));
        let reply = self.pool.ask(&ask, classify_stream, &options).await?;
        let malformed = |what: &str| self.pool.malformed(reply.endpoint, what);
        let blocks =
            wire::blocks(&reply.body).ok_or_else(|| malformed("a block cannot be read"))?;
        let in_range = blocks.iter().all(|block| (from..=to).contains(&block.number));
        if !in_range || !blocks.is_sorted_by(|one, next| one.number < next.number) {
            return Err(malformed("blocks are not those asked for"));
        }
        Ok(blocks)
    }

    fn incomplete(&self, what: &str) -> UpstreamError {
        let endpoint = self.pool.endpoints().into_iter().next().map(|status| status.label);
        UpstreamError::Malformed { endpoint: endpoint.unwrap_or_default(), what: what.to_owned() }
    }
}

/// The blocks of a window, before their details.
struct Reading {
    window: PortalWindow,
    came: KnownArrivals,
    changes: HashMap<Word, NativeFlows>,
    /// The middle of an answer that reached the top: what is above it is requested again.
    middle: Option<Height>,
}

/// Reads a window. `halved`: not by answers that all begin where those of another reading begin.
pub(super) async fn read_window(
    gateway: Arc<ListClient>,
    mode: GatewayMode,
    (low, high): (Height, Height),
    halved: bool,
) -> Result<PortalWindow, WindowError> {
    let Reading { mut window, came, mut changes, middle } =
        read_blocks(&gateway, mode, (low, high), halved).await?;
    let upper = middle.map(|middle| read_blocks(&gateway, mode, (middle + 1, high), false));
    let details = add_details(&gateway, mode, &mut window.found, &came);
    let (upper, ()) = join(OptionFuture::from(upper), details).await;
    if let Some(upper) = upper.transpose()? {
        window.hold_against(upper.window);
        changes.extend(upper.changes);
    }
    add_changes(&mut window.found, &mut changes);
    add_inputs(&gateway, mode, &mut window.found).await;
    Ok(window)
}

async fn read_blocks(
    gateway: &ListClient,
    mode: GatewayMode,
    (low, high): (Height, Height),
    halved: bool,
) -> Result<Reading, WindowError> {
    let wallet = gateway.subject.wallet;
    let (mut found, mut skipped, mut full, mut next) = (Vec::new(), 0, 0, low);
    let (mut sent, mut traces) = (Some(Vec::new()), TraceSights::default());
    let (mut came, mut changes) = (KnownArrivals::default(), HashMap::new());
    let (mut is_open, mut middle, mut short) = (halved, None, 0);
    let lacks_tx = || gateway.incomplete("a log comes without its transaction");
    while next <= high {
        let query = wire::query(&wallet, (next, high), mode.native);
        let mut blocks = gateway.blocks(mode, &query, (next, high)).await?;
        if next > low && !blocks.iter().any(Block::has_content) {
            // Each further answer may be empty by mistake, which would end the window.
            blocks = gateway.blocks(mode, &query, (next, high)).await?;
        }
        let Some(mut last) = blocks.last().map(|block| block.number) else { break };
        if let Some(at) = middle_of(&blocks).filter(|_| is_open) {
            is_open = false;
            if last < high {
                // All further answers begin elsewhere than those of another reading.
                blocks.retain(|block| block.number <= at);
                last = at;
            } else {
                middle = Some(at);
            }
        }
        let content = blocks.iter().filter(|block| block.has_content()).count();
        full += content;
        short += usize::from(content == 0 && last < high && last - next < SHORT);
        if short > SHORT_MAX {
            return Err(gateway.incomplete("answers end after a few blocks").into());
        }
        for block in blocks {
            if mode.native == NativeBy::Traces {
                traces.note(&block, &wallet);
            }
            let seen = arrivals(&block, &wallet);
            changes.extend(changes_by_hash(&block, &gateway.subject));
            sent = sent.and_then(|sent| with_nonces(sent, &block, &wallet));
            let (more, spam) = candidates(block, &gateway.subject, false).ok_or_else(lacks_tx)?;
            came.note(&more, &seen);
            found.extend(more);
            skipped += spam;
        }
        next = last.saturating_add(1);
        if found.len() > FOUND_MAX && last < high {
            // The blocks above are probably as dense: half of the read length suffices.
            return Err(WindowError::Dense((last - low) / 2));
        }
    }
    let (blocks, doubts) = (full, Doubts::NONE);
    let window = PortalWindow { low, high, found, skipped, blocks, sent, doubts, traces, halved };
    Ok(Reading { window, came, changes, middle })
}

/// The block in the middle of those with content, if these are enough to show a cut.
fn middle_of(blocks: &[Block]) -> Option<Height> {
    let full: Vec<&Block> = blocks.iter().filter(|block| block.has_content()).collect();
    let middle = full.get(full.len() / 2).filter(|_| full.len() >= HALVED_MIN);
    middle.map(|block| block.number)
}

/// Adds height and nonce of the wallet's transactions in a block; `None` if a nonce is missing.
fn with_nonces(
    mut sent: Vec<(Height, u64)>,
    block: &Block,
    wallet: &Account,
) -> Option<Vec<(Height, u64)>> {
    for tx in block.txs.iter().filter(|tx| tx.from == *wallet) {
        sent.push((block.number, tx.nonce?));
    }
    Some(sent)
}

fn changes_by_hash(block: &Block, subject: &Subject) -> Vec<(Word, NativeFlows)> {
    let changes = balance_changes(block, subject).into_iter();
    let hash = |at: u32| block.txs.iter().find(|tx| tx.index == at).map(|tx| tx.hash);
    changes.filter_map(|(at, change)| Some((hash(at)?, change))).collect()
}

/// Sets flows by balance changes for candidates without calls.
fn add_changes(found: &mut [Candidate], changes: &mut HashMap<Word, NativeFlows>) {
    for candidate in found.iter_mut().filter(|candidate| candidate.calls.is_none()) {
        if let (Some(whole), Some(change)) = (&mut candidate.whole, changes.remove(&candidate.hash))
        {
            whole.native = change;
        }
    }
}

#[derive(Debug, Default)]
struct KnownArrivals {
    tokens: BTreeSet<Account>,
    senders: BTreeSet<Account>,
}

impl KnownArrivals {
    fn note(&mut self, found: &[Candidate], seen: &[Arrival]) {
        for open in found.iter().filter(|candidate| candidate.whole.is_none()) {
            for (_, token, sender) in seen.iter().filter(|(hash, ..)| *hash == open.hash) {
                self.tokens.insert(*token);
                self.senders.insert(*sender);
            }
        }
    }
}

/// Completes candidates that were received. Parts that the gateway does not return are left to the
/// nodes.
async fn add_details(
    gateway: &ListClient,
    mode: GatewayMode,
    found: &mut [Candidate],
    came: &KnownArrivals,
) {
    let open = |found: &[Candidate]| {
        let blocks = found.iter().filter(|one| one.whole.is_none()).map(|one| one.block);
        blocks.clone().min().zip(blocks.max())
    };
    let named = came.tokens.len() + came.senders.len();
    let Some((mut next, high)) = open(found).filter(|_| (1..=NAMED_MAX).contains(&named)) else {
        return;
    };
    for _ in 0..DETAIL_ANSWERS_MAX {
        if next > high {
            return;
        }
        let names = (&came.tokens, &came.senders);
        let wallet = &gateway.subject.wallet;
        let query = wire::details_query(wallet, (next, high), names, mode.native);
        let Ok(blocks) = gateway.blocks(mode, &query, (next, high)).await else { return };
        let Some(last) = blocks.last().map(|block| block.number) else { return };
        for block in blocks {
            let Some((detailed, _)) = candidates(block, &gateway.subject, true) else { return };
            for candidate in detailed {
                let is_it = |one: &&mut Candidate| one.hash == candidate.hash;
                let known = found.iter_mut().filter(|one| one.whole.is_none()).find(is_it);
                if let Some(known) = known {
                    *known = candidate;
                }
            }
        }
        next = last.saturating_add(1);
    }
}

/// Sets the terms (receiver, kept fee) from a transaction's input if neither calls nor balances
/// show the wallet's payment. Inputs that the gateway does not return are left to the nodes; after
/// a refusal the amount stays unknown.
async fn add_inputs(gateway: &ListClient, mode: GatewayMode, found: &mut [Candidate]) {
    let wallet = gateway.subject.wallet;
    let Subject { chain, registry, .. } = &gateway.subject;
    let is_unknown = |tx: &Transaction| tx.from == wallet && tx.native == NativeFlows::Unknown;
    let is_open = |one: &Candidate| {
        let unknown = one.whole.as_ref().filter(|tx| is_unknown(tx));
        one.calls.is_none() && unknown.is_some_and(|tx| may_trade(registry.evm(), chain, tx))
    };
    let mut open: Vec<&mut Candidate> = found.iter_mut().filter(|one| is_open(one)).collect();
    let (Some(first), Some(last)) = (open.first(), open.last()) else { return };
    let range = (first.block, last.block);
    let inputs = inputs(gateway, mode, range).await;
    let unread = Terms { coin: CoinTo::Shared, ..Terms::default() };
    for one in &mut open {
        let terms = match &inputs {
            Ok(inputs) => inputs.get(&one.hash).copied(),
            Err(_) => Some(unread),
        };
        one.whole = one.whole.take().zip(terms).map(|(mut tx, terms)| {
            tx.terms = terms;
            tx
        });
    }
}

/// Terms in the inputs of the wallet's transactions, as far as the gateway returns them.
async fn inputs(
    gateway: &ListClient,
    mode: GatewayMode,
    (mut next, high): (Height, Height),
) -> Result<HashMap<Word, Terms>> {
    let mut inputs = HashMap::new();
    for _ in 0..DETAIL_ANSWERS_MAX {
        if next > high {
            break;
        }
        let query = wire::inputs_query(&gateway.subject.wallet, (next, high));
        let blocks = gateway.blocks(mode, &query, (next, high)).await?;
        let Some(last) = blocks.last().map(|block| block.number) else { break };
        let txs = blocks.iter().flat_map(|block| &block.txs);
        inputs.extend(txs.filter_map(|tx| Some((tx.hash, tx.terms?))));
        next = last.saturating_add(1);
    }
    Ok(inputs)
}
