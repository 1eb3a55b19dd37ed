//! A wallet's transactions from a chain's nodes, as chunks: the same form for every family.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

use super::ability::Ability;
use super::evm::{EvmReader, EvmSource};
use super::solana::{SolanaReader, SolanaSource};
use super::tron::{TronReader, TronSource};
use crate::decode::evm;
use crate::decode::solana;
use crate::decode::tron;
use crate::domain::{
    Address, Doubts, Height, Moment, Price, Proof, Resume, SourceAccount, TxId, Units, UnixSeconds,
    Way,
};
use crate::rpc::chain_check::ChainChecks;
use crate::rpc::endpoint::EndpointStatus;
use crate::rpc::error::UpstreamError;
use crate::rpc::scheduler::Lane;

/// The heights of a wallet that are to be read.
#[derive(Debug, Clone)]
pub struct GapRequest {
    pub wallet: Address,
    pub low: Height,
    /// `None`: up to the final head, which the reader asks for itself.
    pub high: Option<Height>,
    /// A hint of the span right above.
    pub resume: Option<Resume>,
    /// What earlier reads found of the wallet's accounts.
    pub accounts: Vec<SourceAccount>,
    pub lane: Lane,
    /// Nothing is known of the address yet: it is looked at before it is read.
    pub first: bool,
    /// Not by this way, where there is another one: for a second opinion.
    pub another: Option<Way>,
}

/// Some of the asked heights with all the wallet's successful transactions in them.
#[derive(Debug)]
pub struct RawChunk {
    pub low: Height,
    pub high: Height,
    /// Newest first by height; no order inside one height.
    pub txs: Vec<RawTx>,
    /// Transactions above these heights that the reads of those could not find; their heights may be
    /// covered or not.
    pub late: Vec<RawTx>,
    /// How to go on below `low`.
    pub resume: Option<Resume>,
    /// What the read of these heights rests on.
    pub proof: Proof,
    /// Listed transactions of these heights that no endpoint gives.
    pub missing: Vec<(Height, TxId)>,
    /// What is newly known of the wallet's accounts.
    pub accounts: Vec<SourceAccount>,
    /// With the first chunk of a read from the head, where the nodes report it.
    pub tip: Option<Tip>,
}

/// The newest final block as it was before anything else was read: should the chain lose anything
/// that was read below it, this hash differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tip {
    pub height: Height,
    pub hash: [u8; 32],
}

/// A transaction in its family's shape, with its block time.
#[derive(Debug)]
pub enum RawTx {
    Solana(Box<solana::Transaction>, UnixSeconds),
    Evm(Box<evm::Transaction>, UnixSeconds),
    Tron(Box<tron::Transaction>, UnixSeconds),
}

impl RawChunk {
    pub fn ids(&self) -> HashSet<TxId> {
        self.txs.iter().filter_map(RawTx::id).collect()
    }
}

impl RawTx {
    /// `None` for bytes that hold no id.
    pub fn id(&self) -> Option<TxId> {
        match self {
            Self::Solana(tx, _) => tx.id(),
            Self::Evm(tx, _) => Some(TxId::Evm(tx.hash)),
            Self::Tron(tx, _) => Some(TxId::Tron(tx.call.hash)),
        }
    }

    /// Whether native coin that moved inside is not known only because an endpoint failed.
    pub fn awaits_native(&self) -> bool {
        matches!(self, Self::Evm(tx, _) if tx.native == evm::NativeFlows::Refused)
    }

    /// Of its block.
    pub fn time(&self) -> UnixSeconds {
        match self {
            Self::Solana(_, time) | Self::Evm(_, time) | Self::Tron(_, time) => *time,
        }
    }

    pub fn height(&self) -> Height {
        match self {
            Self::Solana(tx, _) => tx.slot(),
            Self::Evm(tx, _) => tx.block,
            Self::Tron(tx, _) => tx.call.block,
        }
    }
}

/// One transaction, with its network fee where that is known separately.
#[derive(Debug)]
pub struct FoundTx {
    pub raw: RawTx,
    pub fee: Option<Units>,
}

/// A token's symbol, as far as the chain has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMeta {
    pub mint: Address,
    pub symbol: Option<Arc<str>>,
    pub decimals: Option<u8>,
}

/// Whether a block still has the hash that it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashCheck {
    Same,
    /// Two answers agree that it differs.
    Differs,
    /// No endpoint reports it, or only one does.
    Unknown,
}

/// State of a chain's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStatus {
    pub endpoints: Vec<EndpointStatus>,
}

/// A chain's nodes. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Source {
    Solana(SolanaSource),
    Evm(EvmSource),
    Tron(TronSource),
}

/// Chunks of one gap, newest first, one below the other. Dropping it stops all fetching.
#[derive(Debug)]
pub struct GapReader(Reader);

#[derive(Debug)]
enum Reader {
    Solana(Box<SolanaReader>),
    Evm(Box<EvmReader>),
    Tron(Box<TronReader>),
}

impl Source {
    /// Begins nothing by itself: the reader works while it is polled.
    pub fn read(&self, request: GapRequest) -> GapReader {
        GapReader(match self {
            Self::Solana(source) => Reader::Solana(Box::new(source.read(request))),
            Self::Evm(source) => Reader::Evm(Box::new(source.read(request))),
            Self::Tron(source) => Reader::Tron(Box::new(source.read(request))),
        })
    }

    /// One transaction as a wallet sees it; `None` where no node has it.
    pub async fn transaction(
        &self,
        id: TxId,
        wallet: Address,
        lane: &Lane,
    ) -> Result<Option<FoundTx>, UpstreamError> {
        match (self, id, wallet) {
            (Self::Solana(source), TxId::Solana(_), _) => source.single(id, lane).await,
            (Self::Evm(source), TxId::Evm(hash), Address::Evm(wallet)) => {
                source.single(hash, &wallet, lane).await
            }
            (Self::Tron(source), TxId::Tron(id), Address::Tron(wallet)) => {
                source.single(id, &wallet, lane).await
            }
            (Self::Solana(_) | Self::Evm(_) | Self::Tron(_), ..) => Ok(None),
        }
    }

    /// Hash of the block at a height; `None` where there is no block.
    pub async fn block_hash(
        &self,
        height: Height,
        lane: &Lane,
    ) -> Result<Option<[u8; 32]>, UpstreamError> {
        match self {
            Self::Solana(source) => source.block_hash(height, lane).await,
            Self::Evm(source) => source.block_hash(height, lane).await,
            Self::Tron(source) => source.block_hash(height, lane).await,
        }
    }

    /// Holds a kept hash against the chain.
    pub async fn check_hash(
        &self,
        height: Height,
        expected: [u8; 32],
        lane: &Lane,
    ) -> Result<HashCheck, UpstreamError> {
        match self {
            Self::Solana(source) => source.check_hash(height, expected, lane).await,
            Self::Evm(source) => source.check_hash(height, expected, lane).await,
            Self::Tron(source) => source.check_hash(height, expected, lane).await,
        }
    }

    /// The transactions of a block in their order.
    pub async fn block_order(
        &self,
        height: Height,
        lane: &Lane,
    ) -> Result<Vec<TxId>, UpstreamError> {
        match self {
            Self::Solana(source) => source.block_order(height, lane).await,
            Self::Evm(source) => source.block_order(height, lane).await,
            Self::Tron(source) => source.block_order(height, lane).await,
        }
    }

    /// Symbols and decimals; tokens unknown to every endpoint have neither.
    pub async fn tokens(
        &self,
        mints: &[Address],
        lane: &Lane,
    ) -> Result<Vec<TokenMeta>, UpstreamError> {
        match self {
            Self::Solana(source) => source.tokens(mints, lane).await,
            Self::Evm(source) => source.tokens(mints, lane).await,
            Self::Tron(source) => source.tokens(mints, lane).await,
        }
    }

    /// The names that contracts of pools have themselves; those without one are left out.
    pub async fn pool_names(
        &self,
        pools: &[Address],
        lane: &Lane,
    ) -> Result<HashMap<Address, Arc<str>>, UpstreamError> {
        match self {
            Self::Evm(source) => source.pool_names(pools, lane).await,
            Self::Solana(_) | Self::Tron(_) => Ok(HashMap::new()),
        }
    }

    /// The wallet's current balances of tokens, in their order; `None` where one is unknown.
    pub async fn balances(
        &self,
        wallet: Address,
        mints: &[Address],
        lane: &Lane,
    ) -> Result<Vec<Option<Units>>, UpstreamError> {
        match self {
            Self::Solana(source) => source.balances(wallet, mints, lane).await,
            Self::Evm(source) => source.balances(wallet, mints, lane).await,
            Self::Tron(source) => source.balances(wallet, mints, lane).await,
        }
    }

    /// Price of the native coin at each moment, in their order, from the chain's reference pools.
    /// `None`: there is no price, now or later. An error: nothing was learned, retry.
    pub async fn native_prices(
        &self,
        at: &[Moment],
        lane: &Lane,
    ) -> Result<Vec<Option<Price>>, UpstreamError> {
        match self {
            Self::Solana(source) => source.native_prices(at, lane).await,
            Self::Evm(source) => source.native_prices(at, lane).await,
            Self::Tron(source) => source.native_prices(at, lane).await,
        }
    }

    /// Whether a span that was read so counts towards a complete history, by what is configured
    /// and by what the endpoints are known to offer.
    pub fn accepts(&self, proof: Proof) -> bool {
        match self {
            // Its lists were held against a second answer from the first version on.
            Self::Solana(_) => proof.doubts.without(Doubts::UNRECORDED).is_empty(),
            Self::Evm(source) => source.accepts(proof),
            Self::Tron(source) => source.accepts(proof),
        }
    }

    /// What the strongest configured way cannot see: no read of this chain has it.
    pub fn blind_spots(&self) -> Doubts {
        match self {
            Self::Solana(_) => Doubts::NONE,
            Self::Evm(source) => source.blind_spots(),
            Self::Tron(source) => source.blind_spots(),
        }
    }

    /// The final head.
    pub async fn head(&self, lane: &Lane) -> Result<Height, UpstreamError> {
        match self {
            Self::Solana(source) => source.head(lane).await,
            Self::Evm(source) => source.head(lane).await,
            Self::Tron(source) => source.head(lane).await,
        }
    }

    /// Drives the checks of nodes about themselves, for which no read waits; never ready. Nothing
    /// else drives them: without it such a check stays open, with its permit.
    pub async fn tend(&self) -> Infallible {
        self.chain_checks().go_on().await
    }

    fn chain_checks(&self) -> &ChainChecks {
        match self {
            Self::Solana(source) => source.chain_checks(),
            Self::Evm(source) => source.chain_checks(),
            Self::Tron(source) => source.chain_checks(),
        }
    }

    /// What was found out about each endpoint, in the order of the status.
    pub fn abilities(&self) -> Vec<Vec<Ability>> {
        match self {
            Self::Solana(source) => source.abilities(),
            Self::Evm(source) => source.abilities(),
            Self::Tron(source) => source.abilities(),
        }
    }

    pub fn status(&self) -> SourceStatus {
        match self {
            Self::Solana(source) => source.status(),
            Self::Evm(source) => source.status(),
            Self::Tron(source) => source.status(),
        }
    }
}

impl GapReader {
    /// The next chunk; `None` after the one that reaches the lower end. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<RawChunk>, UpstreamError> {
        match &mut self.0 {
            Reader::Solana(reader) => reader.next().await,
            Reader::Evm(reader) => reader.next().await,
            Reader::Tron(reader) => reader.next().await,
        }
    }

    /// Drives the requests in flight without delivering; never ready. For the time in which no
    /// reader takes chunks.
    pub async fn drive(&mut self) -> Infallible {
        match &mut self.0 {
            Reader::Solana(reader) => reader.drive().await,
            Reader::Evm(reader) => reader.drive().await,
            Reader::Tron(reader) => reader.drive().await,
        }
    }

    /// Eager: fetches as far ahead as the limits allow; else the run-ahead grows with each chunk.
    pub fn set_eager(&mut self, eager: bool) {
        match &mut self.0 {
            Reader::Solana(reader) => reader.set_eager(eager),
            Reader::Evm(reader) => reader.set_eager(eager),
            Reader::Tron(reader) => reader.set_eager(eager),
        }
    }
}
