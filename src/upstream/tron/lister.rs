//! How a wallet's transactions are found: by the index's two lists, or by events.

use super::TronSource;
use super::list::{Absorbed, Cursor, List, PAGE_MAX};
use super::logs::Windows;
use super::wire::{self, Page};
use crate::domain::{Address, Height};
use crate::upstream::ask::Ask;
use crate::upstream::endpoint::EndpointId;
use crate::upstream::error::UpstreamError;
use crate::upstream::pool::CallOptions;

/// The index's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListKind {
    /// What the wallet sent, got as TRX or was called by.
    Transactions,
    /// Movements of its TRC-20 tokens.
    Transfers,
}

/// A list with what is needed to ask for its next page.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) kind: ListKind,
    pub(super) list: List,
    pub(super) is_asked: bool,
    pub(super) last_by: Option<EndpointId>,
}

#[derive(Debug)]
pub(super) enum Lister {
    Index {
        listings: [Listing; 2],
        /// Milliseconds: what lies below is not wanted.
        low_at: u64,
    },
    Events {
        windows: Windows,
        /// Requests under way.
        asked: usize,
    },
}

impl Lister {
    pub(super) fn index(top: u64, low_at: u64) -> Self {
        let listing = |kind| Listing { kind, list: List::new(top), is_asked: false, last_by: None };
        let listings = [listing(ListKind::Transactions), listing(ListKind::Transfers)];
        Self::Index { listings, low_at }
    }

    pub(super) fn events(source: &TronSource, low: Height, high: Height) -> Self {
        let limits = &source.inner.limits;
        let windows = Windows::new(low, high, limits.logs_range_max, limits.logs_batch_max);
        Self::Events { windows, asked: 0 }
    }

    /// The place at and below which something may be unknown, given a place below which nothing is
    /// wanted; `None`: all that is wanted is known.
    pub(super) fn frontier(&self, floor: u64) -> Option<u64> {
        match self {
            Self::Index { listings, .. } => {
                listings.iter().filter_map(|listing| listing.list.frontier(floor)).max()
            }
            Self::Events { windows, .. } => windows.frontier(),
        }
    }
}

impl Listing {
    pub(super) fn absorb(&mut self, page: &Page, by: EndpointId) -> Absorbed {
        self.is_asked = false;
        self.last_by = Some(by);
        self.list.absorb(page)
    }
}

impl TronSource {
    /// Asks for a page of a list.
    pub(super) async fn page(
        &self,
        wallet: Address,
        kind: ListKind,
        cursor: Cursor,
        low_at: u64,
        options: &CallOptions,
    ) -> Result<(Page, EndpointId), UpstreamError> {
        let (name, tail) = match kind {
            ListKind::Transactions => ("v1/accounts/transactions", "transactions"),
            ListKind::Transfers => ("v1/accounts/transactions/trc20", "transactions/trc20"),
        };
        // One more, so that it does not matter whether the end itself is meant.
        let mut query = vec![
            ("only_confirmed", "true".to_owned()),
            ("order_by", "block_timestamp,desc".to_owned()),
            ("limit", PAGE_MAX.to_string()),
            ("max_timestamp", cursor.max.saturating_add(1).to_string()),
        ];
        if low_at > 0 {
            query.push(("min_timestamp", low_at.saturating_sub(1).to_string()));
        }
        query.extend(cursor.fingerprint.map(|fingerprint| ("fingerprint", fingerprint)));
        let path = format!("/v1/accounts/{wallet}/{tail}");
        let ask = Ask { name, path, query, body: None };
        let reply = self.inner.pool.ask(&ask, wire::reading, options).await?;
        let account = account(wallet);
        let page = match kind {
            ListKind::Transactions => wire::transactions(&reply.body, &account),
            ListKind::Transfers => wire::transfers(&reply.body, &account),
        };
        let page = page.ok_or_else(|| self.malformed(reply.endpoint, "a list gave no entries"))?;
        Ok((page, reply.endpoint))
    }
}

/// The registry gives a Tron source to Tron chains only.
pub(super) fn account(wallet: Address) -> [u8; 20] {
    match wallet {
        Address::Tron(account) | Address::Evm(account) => account,
        Address::Solana(_) => [0; 20],
    }
}
