//! One interface to all ways of finding a wallet's transactions.

use std::sync::Arc;

use super::EvmSource;
use super::alchemy::AlchemyLister;
use super::discovery::{Discovery, ListRequest, Window};
use super::explorer::ExplorerLister;
use super::list_client::ListClient;
use super::logs::LogLister;
use super::portal::PortalLister;
use super::subject::Subject;
use crate::domain::Height;
use crate::rpc::{Result, UpstreamError};

/// A list of one wallet's transactions, going down.
pub(super) enum Lister {
    Portal(Box<PortalLister>),
    Explorer(Box<ExplorerLister>),
    Alchemy(Box<AlchemyLister>),
    Logs(Box<LogLister>),
}

impl Lister {
    pub(super) fn new(kind: Discovery, source: &EvmSource, listing: ListRequest) -> Result<Self> {
        let (inner, range) = (&source.inner, (listing.low, listing.high));
        let pool = match kind {
            Discovery::Portal => inner.portal.as_ref(),
            Discovery::Explorer => inner.explorer.as_ref(),
            Discovery::Alchemy | Discovery::Logs => Some(&inner.pool),
        };
        let absent = || UpstreamError::NotSupported { method: kind.to_string() };
        let (chain, registry) = (Arc::clone(&inner.chain), Arc::clone(&inner.registry));
        let subject = Subject { wallet: listing.wallet, chain, registry };
        let client = ListClient {
            pool: pool.ok_or_else(absent)?.clone(),
            lane: listing.options.lane.clone(),
            abilities: Arc::clone(&inner.abilities),
            nodes: Some(inner.pool.clone()),
            counting: subject.chain.counts_sent.then(|| inner.pool.clone()),
            subject,
        };
        let windows = inner.limits.portal_windows_max;
        Ok(match kind {
            Discovery::Portal => Self::Portal(Box::new(PortalLister::new(client, range, windows))),
            Discovery::Explorer => Self::Explorer(Box::new(ExplorerLister::new(client, range))),
            Discovery::Alchemy => Self::Alchemy(Box::new(AlchemyLister::new(client, range))),
            Discovery::Logs => Self::Logs(Box::new(LogLister::new(source.clone(), listing))),
        })
    }

    /// The head of the list's own index; `None` if it reports none.
    pub(super) async fn head(&mut self) -> Result<Option<Height>> {
        match self {
            Self::Portal(lister) => lister.head().await,
            Self::Explorer(lister) => lister.head().await,
            Self::Alchemy(_) | Self::Logs(_) => Ok(None),
        }
    }

    /// Lowers the top of the list before anything is listed.
    pub(super) fn set_high(&mut self, high: Height) {
        match self {
            Self::Portal(lister) => lister.set_high(high),
            Self::Explorer(lister) => lister.set_high(high),
            Self::Alchemy(lister) => lister.set_high(high),
            Self::Logs(lister) => lister.set_high(high),
        }
    }

    /// The next window before it is proved; `None` if this list has none.
    pub(super) async fn likely(&mut self) -> Result<Option<Window>> {
        match self {
            Self::Explorer(lister) => lister.likely().await,
            Self::Portal(_) | Self::Alchemy(_) | Self::Logs(_) => Ok(None),
        }
    }

    /// The next window down; `None` below the lowest height.
    pub(super) async fn next(&mut self) -> Result<Option<Window>> {
        match self {
            Self::Portal(lister) => lister.next().await,
            Self::Explorer(lister) => lister.next().await,
            Self::Alchemy(lister) => lister.next().await,
            Self::Logs(lister) => lister.next().await,
        }
    }
}
