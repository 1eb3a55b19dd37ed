//! The beginning of a read: which chain the nodes are of, how far it can be read, by which list.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::discovery::{Discovery, Lister, Listing};
use super::{EvmSource, Resting, wire};
use crate::decode::evm::Account;
use crate::domain::Height;
use crate::upstream::endpoint::EndpointId;
use crate::upstream::error::UpstreamError;
use crate::upstream::pool::CallOptions;

/// A node of another chain is left alone this long.
const WRONG_CHAIN_REST: Duration = Duration::from_secs(3600);

/// What is read, before it is known how far up.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) wallet: Account,
    pub(super) low: Height,
    /// `None`: up to the final head.
    pub(super) high: Option<Height>,
    /// Ways to find transactions that failed in this read.
    pub(super) failed: Vec<Discovery>,
    pub(super) options: CallOptions,
}

/// A list to read by.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) kind: Discovery,
    pub(super) lister: Lister,
    pub(super) high: Height,
}

impl EvmSource {
    /// The first list that works; the last error where none does.
    pub(super) async fn open(self, mut wanted: Wanted) -> Result<Opened, UpstreamError> {
        self.check_chain(&wanted.options).await?;
        let mut last = UpstreamError::NoEndpoint;
        // Those that failed of late come last, not never.
        let fresh = |kind: &&Discovery| !self.rests(Resting::List(**kind));
        let (first, later): (Vec<&Discovery>, Vec<&Discovery>) =
            self.inner.discovery.iter().partition(fresh);
        for kind in first.into_iter().chain(later) {
            if wanted.failed.contains(kind) {
                continue;
            }
            match self.open_list(*kind, &wanted).await {
                Ok(opened) => return Ok(opened),
                Err(error) => {
                    self.list_failed(*kind, &error);
                    wanted.failed.push(*kind);
                    last = error;
                }
            }
        }
        Err(last)
    }

    pub(super) fn list_failed(&self, kind: Discovery, error: &UpstreamError) {
        let chain = &self.inner.chain.slug;
        tracing::warn!(chain, list = %kind, %error, "transactions are found another way, if there is one");
        self.rest(Resting::List(kind), self.inner.limits.list_rest);
    }

    async fn open_list(&self, kind: Discovery, wanted: &Wanted) -> Result<Opened, UpstreamError> {
        let Wanted { wallet, low, high, options, .. } = wanted;
        let (head, by) = match high {
            Some(high) => (*high, None),
            None => {
                let (head, by) = self.final_head(options).await?;
                (head, Some(by))
            }
        };
        // A node's logs reach as far as the node itself.
        let on = by.filter(|_| kind == Discovery::Logs);
        let options = CallOptions { on, ..options.clone() };
        let listing = Listing { wallet: *wallet, low: *low, high: head, options };
        let mut lister = Lister::new(kind, self, listing)?;
        if high.is_some() {
            return Ok(Opened { kind, lister, high: head });
        }
        let high = match lister.head().await? {
            Some(told) => head.min(told),
            None if kind == Discovery::Logs => head,
            None => head.saturating_sub(self.inner.chain.index_lag),
        };
        lister.set_high(high);
        Ok(Opened { kind, lister, high })
    }

    /// Asks each endpoint once whether it is a node of this chain; others are left alone.
    async fn check_chain(&self, options: &CallOptions) -> Result<(), UpstreamError> {
        let Some(expected) = self.inner.chain.chain_id else { return Ok(()) };
        let endpoints = self.inner.pool.endpoints();
        let unchecked: Vec<EndpointId> = {
            let known = self.checked();
            let open = endpoints.iter().filter(|endpoint| match known.get(&endpoint.id) {
                None => true,
                Some(right) => !right && !endpoint.resting,
            });
            open.map(|endpoint| endpoint.id).collect()
        };
        let asked = unchecked.into_iter().map(|id| async move {
            let options = CallOptions { on: Some(id), ..options.clone() };
            (id, self.inner.pool.call("eth_chainId", json!([]), &options).await)
        });
        for (id, answer) in join_all(asked).await {
            match answer.map(|answer| wire::number(&answer.result)) {
                Ok(Some(told)) if told != expected => {
                    let endpoint = self.inner.pool.label(id);
                    tracing::error!(%endpoint, told, expected, "a node of another chain is left alone");
                    self.inner.pool.bench(id, WRONG_CHAIN_REST);
                    self.checked().insert(id, false);
                }
                Ok(_) | Err(UpstreamError::NotSupported { .. } | UpstreamError::Rpc { .. }) => {
                    self.checked().insert(id, true);
                }
                // Asked again with the next read.
                Err(_) => {}
            }
        }
        let known = self.checked();
        let wrong = endpoints.iter().find(|endpoint| known.get(&endpoint.id) == Some(&false));
        let any_left = endpoints.iter().any(|endpoint| known.get(&endpoint.id) != Some(&false));
        match wrong {
            Some(wrong) if !any_left => {
                Err(UpstreamError::WrongChain { endpoint: wrong.label.clone() })
            }
            _ => Ok(()),
        }
    }

    fn checked(&self) -> std::sync::MutexGuard<'_, std::collections::HashMap<EndpointId, bool>> {
        self.inner.checked.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
