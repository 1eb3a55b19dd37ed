//! Ways to find a wallet's transactions, as one: windows of heights, going down.

use super::EvmSource;
use super::logs::LogLister;
use crate::decode::evm::{Account, NativeMove, Transaction, Word};
use crate::domain::{Height, Resume, UnixSeconds};
use crate::upstream::error::UpstreamError;
use crate::upstream::pool::CallOptions;

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
    /// Native coin moved by its inner calls, where the list tells all that touch the wallet.
    pub(super) calls: Option<Vec<NativeMove>>,
    /// Whether the wallet gave anything in it or sent it, or it came through a contract that fills
    /// orders; `None` where the list does not tell.
    pub(super) sent: Option<bool>,
}

/// Heights of which the list tells every candidate.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) low: Height,
    pub(super) high: Height,
    /// Newest first.
    pub(super) found: Vec<Candidate>,
    pub(super) resume: Option<Resume>,
    /// Transactions that only brought something nobody asked for.
    pub(super) skipped: usize,
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
    Logs(Box<LogLister>),
}

impl Lister {
    pub(super) fn new(kind: Discovery, source: &EvmSource, listing: Listing) -> Self {
        match kind {
            Discovery::Portal | Discovery::Explorer | Discovery::Alchemy | Discovery::Logs => {
                Self::Logs(Box::new(LogLister::new(source.clone(), listing)))
            }
        }
    }

    /// The head that the list's own index has reached and that is final; `None` where it does not
    /// tell.
    pub(super) async fn head(
        kind: Discovery,
        source: &EvmSource,
        options: &CallOptions,
    ) -> Result<Option<Height>, UpstreamError> {
        let _ = (source, options);
        match kind {
            Discovery::Logs => Ok(None),
            Discovery::Portal | Discovery::Explorer | Discovery::Alchemy => {
                Err(UpstreamError::NotSupported { method: kind.to_string() })
            }
        }
    }

    /// The next window down; `None` below the lowest.
    pub(super) async fn next(&mut self) -> Result<Option<Window>, UpstreamError> {
        match self {
            Self::Logs(lister) => lister.next().await,
        }
    }
}
