//! Ways to find a wallet's transactions, as one: windows of heights, going down.

use super::receipts::TokenTransfer;
use crate::decode::evm::{Account, NativeMove, Transaction, Word};
use crate::domain::{Doubts, Height, UnixSeconds, Way};
use crate::rpc::pool::CallOptions;

/// A way to find a wallet's transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Discovery {
    /// An open data gateway.
    Portal,
    /// An index's account lists.
    Explorer,
    /// `alchemy_getAssetTransfers` of the nodes.
    Alchemy,
    /// `eth_getLogs` of the nodes.
    Logs,
}

impl Discovery {
    /// What this way cannot see.
    pub(super) fn blind_spots(self) -> Doubts {
        match self {
            Self::Portal | Self::Explorer => Doubts::NONE,
            Self::Alchemy | Self::Logs => Doubts::INNER_CALLS,
        }
    }

    pub(super) fn way(self) -> Way {
        match self {
            Self::Portal => Way::Portal,
            Self::Explorer => Way::Explorer,
            Self::Alchemy => Way::Transfers,
            Self::Logs => Way::Logs,
        }
    }
}

impl std::fmt::Display for Discovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Portal => "portal",
            Self::Explorer => "explorer",
            Self::Alchemy => "alchemy",
            Self::Logs => "logs",
        })
    }
}

/// A transaction that may be a trade of the wallet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Candidate {
    pub(super) hash: Word,
    pub(super) block: Height,
    pub(super) index: Option<u32>,
    pub(super) time: Option<UnixSeconds>,
    /// The transaction with its receipt, where the list gives it whole.
    pub(super) whole: Option<Box<Transaction>>,
    /// Native coin moved by its inner calls, where the list contains all that touch the wallet.
    pub(super) calls: Option<Vec<NativeMove>>,
    /// Whether the wallet gave anything in it or sent it, or it came through a contract that fills
    /// orders; `None` where the list does not show it.
    pub(super) sent: Option<bool>,
    /// A token transfer that the list shows, which its receipt must show too.
    pub(super) transfer: Option<TokenTransfer>,
}

impl Candidate {
    /// Of which nothing else is known.
    pub(super) fn bare(hash: Word, block: Height) -> Self {
        Self { hash, block, ..Self::default() }
    }
}

/// Heights for which the list contains every candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) low: Height,
    pub(super) high: Height,
    /// Newest first.
    pub(super) found: Vec<Candidate>,
    /// Transactions that only brought unsolicited tokens.
    pub(super) skipped: usize,
    /// What the list did not establish of these heights.
    pub(super) doubts: Doubts,
}

/// Which heights of which wallet are listed, for whom.
#[derive(Debug, Clone)]
pub(super) struct ListRequest {
    pub(super) wallet: Account,
    pub(super) low: Height,
    pub(super) high: Height,
    pub(super) options: CallOptions,
}
