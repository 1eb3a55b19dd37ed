//! What a read asks for, and the chunks that it gives.

use std::collections::HashSet;

pub use crate::decode::RawTx;
use crate::domain::{Address, Height, Proof, Resume, SourceAccount, TxId, Units, Way};
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
    /// One of them asked for all that are open; else this read does, or is in doubt.
    pub knows_accounts: bool,
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
    /// Listed transactions of these heights, or of late ones, that no endpoint gives.
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

impl RawChunk {
    pub fn ids(&self) -> HashSet<TxId> {
        self.txs.iter().filter_map(RawTx::id).collect()
    }
}

/// One transaction, with its network fee where that is known separately.
#[derive(Debug)]
pub struct FoundTx {
    pub raw: RawTx,
    pub fee: Option<Units>,
}
