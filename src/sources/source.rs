//! A wallet's transactions from a chain's nodes, as chunks: the same form for every family.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Either, ready, select};
use tokio::time::Instant;

use super::ability::Ability;
use super::activity::Activity;
use super::chunk::{FoundTx, GapRequest, RawChunk};
use super::evm::EvmSource;
use super::hash_check::{HashCheck, HashQuestion};
use super::prefetch::{ChunkReader, RunAhead};
use super::scan::{ScanTarget, Scanned};
use super::solana::{DROPPED, NOT_AVAILABLE, SolanaSource};
use super::symbol::TokenMeta;
use super::tron::TronSource;
use crate::domain::{Address, Doubts, Height, Moment, Price, Proof, TxId, Units, Way, opaque};
use crate::rpc::{CallOptions, EndpointStatus, Lane, Result, UpstreamError};

/// Runs the same expression for every family.
macro_rules! each {
    ($source:expr, $one:ident => $done:expr) => {
        match $source {
            Source::Solana($one) => $done,
            Source::Evm($one) => $done,
            Source::Tron($one) => $done,
        }
    };
}

/// Access to the nodes of one chain. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Source {
    Solana(SolanaSource),
    Evm(EvmSource),
    Tron(TronSource),
}

/// Reads one gap as adjacent chunks, newest first. Dropping it cancels all requests.
pub struct GapReader {
    reader: Box<dyn ChunkReader>,
    source: Source,
    lane: Lane,
    low: Height,
    begun: Instant,
    /// A chunk that was read, and what it waits for: that the chain of its endpoints is confirmed.
    /// It outlives a call of `next` that is dropped.
    held: Option<(RawChunk, BoxFuture<'static, Result<()>>)>,
    has_failed: bool,
}

opaque!(GapReader);

fn options(lane: &Lane) -> CallOptions {
    CallOptions::new(lane.clone())
}

impl Source {
    /// Creates a reader; it sends requests only while it is polled.
    pub fn read(&self, request: GapRequest) -> GapReader {
        let (lane, low) = (request.lane.clone(), request.low);
        let reader = each!(self, source => source.read(request));
        let (source, begun) = (self.clone(), Instant::now());
        GapReader { reader, source, lane, low, begun, held: None, has_failed: false }
    }

    /// Whether a chunk relies on the absence of entries by endpoints whose chain was not checked
    /// since. For logs and events it is checked while their transactions are fetched; the pages of
    /// other lists overlap, so that only their end could be another chain's.
    fn rests_on_absence(&self, chunk: &RawChunk, low: Height) -> bool {
        match self {
            Self::Evm(_) => false,
            Self::Solana(_) | Self::Tron(_) => chunk.low <= low && chunk.proof.way != Way::Events,
        }
    }

    /// One transaction as the wallet sees it; `None` if no node has it.
    pub async fn transaction(
        &self,
        id: TxId,
        wallet: Address,
        lane: &Lane,
    ) -> Result<Option<FoundTx>> {
        match (self, id, wallet) {
            (Self::Solana(source), TxId::Solana(_), _) => source.single(id, &options(lane)).await,
            (Self::Evm(source), TxId::Evm(hash), Address::Evm(wallet)) => {
                source.single(hash, &wallet, &options(lane)).await
            }
            (Self::Tron(source), TxId::Tron(id), Address::Tron(wallet)) => {
                source.single(id, &wallet, &options(lane)).await
            }
            (Self::Solana(_) | Self::Evm(_) | Self::Tron(_), ..) => Ok(None),
        }
    }

    /// Whether at least one of several endpoints works, so that a failed read may succeed there.
    pub fn works_in_part(&self) -> bool {
        each!(self, source => source.nodes()).0.works_in_part()
    }

    /// Hash of the block at a height; `None` where there is no block.
    pub async fn block_hash(&self, height: Height, lane: &Lane) -> Result<Option<[u8; 32]>> {
        Ok(each!(self, source => source.block_hash(height, &options(lane)).await)?.0)
    }

    /// Compares a stored block hash with the chain.
    pub async fn check_hash(&self, at: Height, hash: [u8; 32], lane: &Lane) -> Result<HashCheck> {
        let (options, mut question) = (options(lane), HashQuestion::new(hash));
        let (pool, _, cooldown) = each!(self, source => source.nodes());
        loop {
            let options = question.options(&options);
            let asked = each!(self, source => source.block_hash(at, &options).await);
            let answer = match (self, asked) {
                // The wallet was idle for longer than nodes keep blocks.
                (
                    Self::Solana(_),
                    Err(UpstreamError::Rpc { code: DROPPED | NOT_AVAILABLE, .. }),
                ) => (None, None),
                (_, Err(UpstreamError::NotSupported { .. } | UpstreamError::Refused { .. }))
                    if question.is_new() =>
                {
                    return Ok(HashCheck::NotOffered);
                }
                (_, asked) => asked?,
            };
            if let Some(check) = question.add(answer, pool, cooldown) {
                return Ok(check);
            }
        }
    }

    /// Ids of a block's transactions, in order.
    pub async fn block_order(&self, height: Height, lane: &Lane) -> Result<Vec<TxId>> {
        each!(self, source => source.block_order(height, &options(lane)).await)
    }

    /// Symbols and decimals; tokens unknown to every endpoint have neither.
    pub async fn tokens(&self, mints: &[Address], lane: &Lane) -> Result<Vec<TokenMeta>> {
        each!(self, source => source.tokens(mints, &options(lane)).await)
    }

    /// Names that pool contracts report themselves; pools without a name are left out.
    pub async fn pool_names(
        &self,
        pools: &[Address],
        lane: &Lane,
    ) -> Result<HashMap<Address, Arc<str>>> {
        match self {
            Self::Evm(source) => source.pool_names(pools, &options(lane)).await,
            Self::Solana(_) | Self::Tron(_) => Ok(HashMap::new()),
        }
    }

    /// The wallet's current balances of tokens, in their order; `None` where one is unknown.
    pub async fn balances(
        &self,
        wallet: Address,
        mints: &[Address],
        lane: &Lane,
    ) -> Result<Vec<Option<Units>>> {
        each!(self, source => source.balances(wallet, mints, &options(lane)).await)
    }

    /// Price of the native coin at each moment, in the same order, from the chain's reference
    /// pools. `None`: there is no price, and will be none. After an error nothing is known: the
    /// caller retries.
    pub async fn native_prices(&self, at: &[Moment], lane: &Lane) -> Result<Vec<Option<Price>>> {
        each!(self, source => source.native_prices(at, &options(lane)).await)
    }

    /// Whether a span with this proof counts towards a complete history, given the configuration
    /// and what the endpoints are known to offer.
    pub fn accepts(&self, proof: Proof) -> bool {
        match self {
            // Its lists were confirmed by a second answer since the first version.
            Self::Solana(_) => proof.doubts.without(Doubts::UNRECORDED).is_empty(),
            Self::Evm(source) => source.accepts(proof),
            Self::Tron(source) => source.accepts(proof),
        }
    }

    /// Doubts that even the strongest configured way has, so that no read of this chain can be
    /// without them.
    pub fn blind_spots(&self) -> Doubts {
        match self {
            Self::Solana(_) => Doubts::NONE,
            Self::Evm(source) => source.blind_spots(),
            Self::Tron(source) => source.blind_spots(),
        }
    }

    pub async fn head(&self, lane: &Lane) -> Result<Height> {
        each!(self, source => source.head(&options(lane)).await)
    }

    /// Drives the chain-identity checks that no read waits for; never ready. Nothing else polls
    /// them: without it a pending check would keep its permit.
    pub async fn tend(&self) -> Infallible {
        each!(self, source => source.nodes()).1.drive_queries().await
    }

    /// What is known of each endpoint's abilities, in the order of the endpoints.
    pub fn abilities(&self) -> Vec<Vec<Ability>> {
        each!(self, source => source.abilities())
    }

    pub async fn activity(&self, wallet: Address, lane: &Lane) -> Result<Activity> {
        each!(self, source => source.activity(wallet, &options(lane)).await)
    }

    /// Finds wallets with new transactions. No family's scan sees all: Solana's misses trades that
    /// name only token accounts, the others miss TRC-10 and transfers of native coin alone.
    pub async fn scan(&self, targets: &[ScanTarget], lane: &Lane) -> Result<Scanned> {
        each!(self, source => source.scan(targets, &options(lane)).await)
    }

    pub fn endpoints(&self) -> Vec<EndpointStatus> {
        each!(self, source => source.endpoints())
    }
}

impl GapReader {
    /// The next chunk; `None` after the one that reaches the lower end. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<RawChunk>> {
        if self.has_failed {
            return Ok(None);
        }
        if self.held.is_none()
            && let Some(chunk) = self.reader.next().await?
        {
            let confirmed = self.confirmed(&chunk);
            self.held = Some((chunk, confirmed));
        }
        let Some((_, confirmed)) = &mut self.held else { return Ok(None) };
        let confirmed = match select(confirmed, self.reader.drive()).await {
            Either::Left((confirmed, _)) => confirmed,
            Either::Right((never, _)) => match never {},
        };
        let held = self.held.take();
        if let Err(error) = confirmed {
            self.has_failed = true;
            return Err(error);
        }
        Ok(held.map(|(chunk, _)| chunk))
    }

    /// Confirms the chain of the endpoints that returned a chunk, if it relies on absent entries.
    fn confirmed(&self, chunk: &RawChunk) -> BoxFuture<'static, Result<()>> {
        if !self.source.rests_on_absence(chunk, self.low) {
            return ready(Ok(())).boxed();
        }
        let (source, options) = (self.source.clone(), options(&self.lane));
        let read = (self.begun, Instant::now());
        async move { each!(&source, source => source.confirm_chain(read, &options).await) }.boxed()
    }

    /// Drives the requests in flight without delivering; never ready. For the time in which no
    /// caller takes chunks.
    pub async fn drive(&mut self) -> Infallible {
        self.reader.drive().await
    }

    /// Sets how far the reader prefetches; beyond what is known to be wanted the amount grows with
    /// each chunk.
    pub fn set_run_ahead(&mut self, run_ahead: RunAhead) {
        self.reader.set_run_ahead(run_ahead);
    }
}
