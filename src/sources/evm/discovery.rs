//! The ways to find a wallet's transactions, behind one interface: windows of heights, going down.

use super::receipts::TokenTransfer;
use crate::decode::evm::{Account, NativeMove, Transaction, Word};
use crate::domain::{Doubts, Height, UnixSeconds, Way, named};
use crate::rpc::CallOptions;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Discovery {
        /// An open data gateway.
        Portal = "portal",
        /// An index's account lists.
        Explorer = "explorer",
        /// `alchemy_getAssetTransfers` of the nodes.
        Alchemy = "alchemy",
        /// `eth_getLogs` of the nodes.
        Logs = "logs",
    }
}

impl Discovery {
    /// Doubts of every read by this way.
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
        f.write_str(self.name())
    }
}

/// A transaction that may be a trade of the wallet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Candidate {
    pub(super) hash: Word,
    pub(super) block: Height,
    pub(super) index: Option<u32>,
    pub(super) time: Option<UnixSeconds>,
    /// The transaction with its receipt, if the list contains both.
    pub(super) whole: Option<Box<Transaction>>,
    /// Native coin moved by inner calls, if the list contains all calls that touch the wallet.
    pub(super) calls: Option<Vec<NativeMove>>,
    /// Whether the wallet gave anything or sent the transaction, or it came through a contract that
    /// fills orders; `None` if the list does not show it.
    pub(super) sent: Option<bool>,
    /// A token transfer in the list, which the receipt must contain too.
    pub(super) transfer: Option<TokenTransfer>,
    /// Whether the lists of an account contain its outermost call, and a token of it.
    pub(super) listed: (bool, bool),
}

impl Candidate {
    pub(super) fn bare(hash: Word, block: Height) -> Self {
        Self { hash, block, ..Self::default() }
    }
}

/// A range of heights whose candidates are all listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) low: Height,
    pub(super) high: Height,
    /// Newest first.
    pub(super) found: Vec<Candidate>,
    /// Number of transactions that only brought unsolicited tokens.
    pub(super) skipped: usize,
    pub(super) doubts: Doubts,
}

#[derive(Debug, Clone)]
pub(super) struct ListRequest {
    pub(super) wallet: Account,
    pub(super) low: Height,
    pub(super) high: Height,
    pub(super) options: CallOptions,
}
