//! Ways to find a wallet's transactions, as one: windows of heights, going down.

use std::sync::Arc;

use super::EvmSource;
use super::alchemy::AlchemyLister;
use super::explorer::ExplorerLister;
use super::logs::LogLister;
use super::portal::PortalLister;
use super::receipts::TokenTransfer;
use crate::decode::evm::{Account, NativeMove, Transaction, Word};
use crate::domain::{Doubts, Height, Resume, UnixSeconds, Way};
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::{CallOptions, Pool};

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
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Heights for which the list contains every candidate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) low: Height,
    pub(super) high: Height,
    /// Newest first.
    pub(super) found: Vec<Candidate>,
    pub(super) resume: Option<Resume>,
    /// Transactions that only brought unsolicited tokens.
    pub(super) skipped: usize,
    /// What the list did not establish of these heights.
    pub(super) doubts: Doubts,
}

/// Which heights of which wallet are listed, for whom.
#[derive(Debug, Clone)]
pub(super) struct Listing {
    pub(super) wallet: Account,
    pub(super) low: Height,
    pub(super) high: Height,
    pub(super) options: CallOptions,
}

/// A list of one wallet's transactions, going down.
#[derive(Debug)]
pub(super) enum Lister {
    Portal(Box<PortalLister>),
    Explorer(Box<ExplorerLister>),
    Alchemy(Box<AlchemyLister>),
    Logs(Box<LogLister>),
}

impl Lister {
    pub(super) fn new(
        kind: Discovery,
        source: &EvmSource,
        listing: Listing,
    ) -> Result<Self, UpstreamError> {
        let subject = source.subject(listing.wallet);
        let (lane, range) = (listing.options.lane.clone(), (listing.low, listing.high));
        let abilities = Arc::clone(&source.inner.abilities);
        let pool = |pool: &Option<Pool>| {
            let absent = || UpstreamError::NotSupported { method: kind.to_string() };
            pool.clone().ok_or_else(absent)
        };
        Ok(match kind {
            Discovery::Portal => {
                let pool = pool(&source.inner.portal)?;
                let windows = source.inner.limits.portal_windows_max;
                let counts = subject.chain.counts_sent;
                let lister = PortalLister::new(pool, subject, (lane, range), abilities, windows);
                Self::Portal(Box::new(if counts {
                    lister.counted_by(source.inner.pool.clone())
                } else {
                    lister
                }))
            }
            Discovery::Explorer => {
                let pool = pool(&source.inner.explorer)?;
                let counts = subject.chain.counts_sent;
                let lister = ExplorerLister::new(pool, subject, lane, range, abilities);
                Self::Explorer(Box::new(if counts {
                    lister.counted_by(source.inner.pool.clone(), listing.low)
                } else {
                    lister
                }))
            }
            Discovery::Alchemy => {
                let pool = source.inner.pool.clone();
                Self::Alchemy(Box::new(AlchemyLister::new(pool, subject, lane, range)))
            }
            Discovery::Logs => Self::Logs(Box::new(LogLister::new(source.clone(), listing))),
        })
    }

    /// The head that the list's own index has reached; `None` where it does not report one.
    pub(super) async fn head(&mut self) -> Result<Option<Height>, UpstreamError> {
        match self {
            Self::Portal(lister) => lister.head().await,
            Self::Explorer(lister) => lister.head().await,
            Self::Alchemy(_) | Self::Logs(_) => Ok(None),
        }
    }

    /// Begins further down, before anything is listed.
    pub(super) fn set_high(&mut self, high: Height) {
        match self {
            Self::Portal(lister) => lister.set_high(high),
            Self::Explorer(lister) => lister.set_high(high),
            Self::Alchemy(lister) => lister.set_high(high),
            Self::Logs(lister) => lister.set_high(high),
        }
    }

    /// The next window down; `None` below the lowest.
    pub(super) async fn next(&mut self) -> Result<Option<Window>, UpstreamError> {
        match self {
            Self::Portal(lister) => lister.next().await,
            Self::Explorer(lister) => lister.next().await,
            Self::Alchemy(lister) => lister.next().await,
            Self::Logs(lister) => lister.next().await,
        }
    }
}
