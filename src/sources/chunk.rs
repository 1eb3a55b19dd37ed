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
    pub late_accounts: LateAccounts,
    /// With the first chunk of a read from the head, where the nodes report it.
    pub tip: Option<Tip>,
}

/// Whether a chunk reports accounts whose transactions above it came late. Later reads know them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LateAccounts {
    #[default]
    Unreported,
    /// Others are reported once all above the place where they were found is here.
    Partly,
    /// All of which anything came late so far.
    All,
}

/// The newest final block as it was before anything else was read: should the chain lose anything
/// that was read below it, this hash differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tip {
    pub height: Height,
    pub hash: [u8; 32],
}

impl RawChunk {
    /// Whether another chunk stands right below, and was read in the same way. One with late transactions,
    /// or with missing ones above it, is stored by itself: the heights above it must be stored before.
    pub fn is_above(&self, lower: &Self) -> bool {
        lower.high.checked_add(1) == Some(self.low)
            && lower.proof == self.proof
            && lower.late.is_empty()
            && lower.missing.iter().all(|(height, _)| *height <= lower.high)
    }

    /// Adds one that stands right below.
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

/// One transaction, with its network fee where that is known separately.
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
        let (txs, late, missing) = (Vec::new(), Vec::new(), vec![(high, TxId::Evm([1; 32]))]);
        let (proof, resume) = (Proof::of(Way::Logs), Some(Resume(vec![9])));
        RawChunk {
            low,
            high,
            txs,
            late,
            resume,
            proof,
            missing,
            accounts: Vec::new(),
            late_accounts: LateAccounts::Unreported,
            tip: None,
        }
    }

    #[test]
    fn a_chunk_is_joined_with_what_stands_right_below_and_was_read_alike() {
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
