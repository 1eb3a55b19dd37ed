//! The request of a gap reader, and the chunks that it delivers.

use std::collections::HashSet;

pub use crate::decode::RawTx;
use crate::domain::{Address, Height, Proof, Resume, SourceAccount, TxId, Units, Way};
use crate::rpc::Lane;

#[derive(Debug, Clone)]
pub struct GapRequest {
    pub wallet: Address,
    pub low: Height,
    /// `None`: up to the final head, which the reader queries itself.
    pub high: Option<Height>,
    /// Where the read of the span right above ended; a hint.
    pub resume: Option<Resume>,
    /// The wallet's accounts that earlier reads found.
    pub accounts: Vec<SourceAccount>,
    /// An earlier read queried all open accounts; else this read does, or its proof has a doubt.
    pub knows_accounts: bool,
    pub lane: Lane,
    /// The address has never been read: it is checked to be a wallet first.
    pub first: bool,
    /// A way to avoid where there is another one, so that this read is a second opinion.
    pub another: Option<Way>,
}

/// A part of the requested heights with all the wallet's successful transactions in it.
#[derive(Debug, Default)]
pub struct RawChunk {
    pub low: Height,
    pub high: Height,
    /// Newest first by height; no order inside one height.
    pub txs: Vec<RawTx>,
    /// Transactions above `high` that the reads of those heights could not find; their heights may
    /// be covered already or not.
    pub late: Vec<RawTx>,
    /// Where to continue below `low`.
    pub resume: Option<Resume>,
    pub proof: Proof,
    /// Listed transactions of these heights, or of `late`, that no endpoint returns.
    pub missing: Vec<(Height, TxId)>,
    pub accounts: Vec<SourceAccount>,
    pub late_accounts: LateAccounts,
    /// Set on the first chunk of a read from the head, where the nodes report the block.
    pub tip: Option<Tip>,
}

/// Whether a chunk reports accounts that were found too late for the heights above it. Later reads
/// know these accounts from the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LateAccounts {
    #[default]
    Unreported,
    /// Some accounts are reported later, once the transactions above the height where they were
    /// found are delivered.
    Partly,
    /// All accounts that had late transactions so far are reported.
    All,
}

/// The newest final block, read before anything else: if a reorg replaces anything that was read
/// below it, its hash differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tip {
    pub height: Height,
    pub hash: [u8; 32],
}

impl RawChunk {
    /// Whether `lower` covers the heights right below with the same proof, so that both can be
    /// stored as one. A chunk with late transactions, or with missing ones above it, is stored by
    /// itself, after the heights above it.
    pub fn is_above(&self, lower: &Self) -> bool {
        lower.high.checked_add(1) == Some(self.low)
            && lower.proof == self.proof
            && lower.late.is_empty()
            && lower.missing.iter().all(|(height, _)| *height <= lower.high)
    }

    pub fn join(&mut self, lower: Self) {
        self.low = lower.low;
        self.resume = lower.resume;
        self.txs.extend(lower.txs);
        self.missing.extend(lower.missing);
        self.accounts.extend(lower.accounts);
        self.late_accounts = match lower.late_accounts {
            LateAccounts::Unreported => self.late_accounts,
            LateAccounts::Partly | LateAccounts::All => lower.late_accounts,
        };
    }

    pub fn ids(&self) -> HashSet<TxId> {
        self.txs.iter().filter_map(RawTx::id).collect()
    }
}

/// One transaction, and its network fee where the transaction does not contain it.
#[derive(Debug)]
pub struct FoundTx {
    pub raw: RawTx,
    pub fee: Option<Units>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Doubts;

    fn chunk(low: Height, high: Height) -> RawChunk {
        let missing = vec![(high, TxId::Evm([1; 32]))];
        let (proof, resume) = (Proof::of(Way::Logs), Some(Resume(vec![9])));
        RawChunk { low, high, resume, proof, missing, ..RawChunk::default() }
    }

    #[test]
    fn a_chunk_is_joined_with_the_adjacent_one_that_was_read_alike() {
        let mut upper = chunk(50, 90);
        assert!(!upper.is_above(&chunk(10, 48)), "a height lies between");
        assert!(!upper.is_above(&chunk(10, 50)), "one height is in both");
        let doubtful = RawChunk { proof: upper.proof.with(Doubts::DEPTH), ..chunk(10, 49) };
        assert!(!upper.is_above(&doubtful), "read in another way");
        let late = RawChunk { missing: chunk(50, 90).missing, ..chunk(10, 49) };
        assert!(!upper.is_above(&late), "what it lacks is above it");
        let lower = RawChunk { resume: None, ..chunk(10, 49) };
        assert!(upper.is_above(&lower));
        upper.join(lower);
        assert_eq!((upper.low, upper.high, upper.resume), (10, 90, None));
        assert_eq!(upper.missing.iter().map(|(height, _)| *height).collect::<Vec<_>>(), [90, 49]);
    }

    #[test]
    fn a_joined_chunk_reports_the_late_accounts_of_both() {
        use LateAccounts::{All, Partly, Unreported};
        for (above, below, both) in [
            (Unreported, Unreported, Unreported),
            (Partly, Unreported, Partly),
            (All, Unreported, All),
            (Unreported, All, All),
            (Partly, All, All),
            (All, Partly, Partly),
        ] {
            let mut upper = RawChunk { late_accounts: above, ..chunk(50, 90) };
            upper.join(RawChunk { late_accounts: below, ..chunk(10, 49) });
            assert_eq!(upper.late_accounts, both, "{above:?} {below:?}");
        }
    }
}
