//! The ways to find a wallet's transactions behind one form.

use std::sync::Arc;

use super::EvmSource;
use super::alchemy::AlchemyLister;
use super::discovery::{Discovery, ListRequest, Window};
use super::explorer::ExplorerLister;
use super::logs::LogLister;
use super::portal::PortalLister;
use crate::domain::Height;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::Pool;

/// A list of one wallet's transactions, going down.
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
        listing: ListRequest,
    ) -> Result<Self, UpstreamError> {
        let subject = source.subject(listing.wallet);
        let (lane, range) = (listing.options.lane.clone(), (listing.low, listing.high));
        let abilities = Arc::clone(&source.inner.abilities);
        let counting = subject.chain.counts_sent.then(|| source.inner.pool.clone());
        let pool = |pool: &Option<Pool>| {
            let absent = || UpstreamError::NotSupported { method: kind.to_string() };
            pool.clone().ok_or_else(absent)
        };
        Ok(match kind {
            Discovery::Portal => {
                let pool = pool(&source.inner.portal)?;
                let windows = source.inner.limits.portal_windows_max;
                let lister = PortalLister::new(pool, subject, (lane, range), abilities, windows);
                Self::Portal(Box::new(lister.counted_by(counting)))
            }
            Discovery::Explorer => {
                let pool = pool(&source.inner.explorer)?;
                let lister = ExplorerLister::new(pool, subject, lane, range, abilities);
                Self::Explorer(Box::new(lister.counted_by(counting, listing.low)))
            }
            Discovery::Alchemy => {
                let pool = source.inner.pool.clone();
                Self::Alchemy(Box::new(AlchemyLister::new(pool, subject, lane, range, abilities)))
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

    /// The next window down before it is proved; `None` where none is known before that.
    pub(super) async fn likely(&mut self) -> Result<Option<Window>, UpstreamError> {
        match self {
            Self::Explorer(lister) => lister.likely().await,
            Self::Portal(_) | Self::Alchemy(_) | Self::Logs(_) => Ok(None),
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
