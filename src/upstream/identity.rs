//! Which chain the nodes of a pool are of: each endpoint is asked once, and one of another chain is
//! left alone for a while before it is asked again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;

use super::endpoint::EndpointId;
use super::error::UpstreamError;
use super::pool::{CallOptions, Pool};

/// A node of another chain is left alone this long.
const WRONG_CHAIN_REST: Duration = Duration::from_secs(3600);

/// What a look at the nodes' chain came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nodes {
    AsBefore,
    SomeLeftOut,
}

#[derive(Debug)]
pub(super) struct Identity {
    /// What nodes of the chain call it; `None`: all of them are believed.
    expected: Option<String>,
    /// Endpoints that were asked for it, and whether they answered right.
    known: Mutex<HashMap<EndpointId, bool>>,
}

impl Identity {
    pub(super) fn new(expected: Option<String>) -> Self {
        Self { expected, known: Mutex::default() }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, HashMap<EndpointId, bool>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks each endpoint that is not known yet; those that do not tell are believed. `patience`:
    /// how long none may answer before the rest is left for the next read.
    pub(super) async fn check<F>(
        &self,
        pool: &Pool,
        options: &CallOptions,
        patience: Duration,
        ask: impl Fn(CallOptions) -> F,
    ) -> Result<Nodes, UpstreamError>
    where
        F: Future<Output = Result<Option<String>, UpstreamError>>,
    {
        let Some(expected) = &self.expected else { return Ok(Nodes::AsBefore) };
        let endpoints = pool.endpoints();
        let unchecked: Vec<EndpointId> = {
            let known = self.known();
            let open = endpoints.iter().filter(|endpoint| match known.get(&endpoint.id) {
                None => true,
                Some(right) => !right && !endpoint.resting,
            });
            open.map(|endpoint| endpoint.id).collect()
        };
        let asked = unchecked.into_iter().map(|id| {
            let told = ask(CallOptions { on: Some(id), ..options.clone() });
            async move { (id, told.await) }
        });
        let mut asked: FuturesUnordered<_> = asked.collect();
        let mut nodes = Nodes::AsBefore;
        while let Ok(Some((id, told))) = timeout(patience, asked.next()).await {
            match told {
                Ok(Some(told)) if told != *expected => {
                    let endpoint = pool.label(id);
                    tracing::error!(%endpoint, told, expected, "a node of another chain is left alone");
                    pool.bench(id, WRONG_CHAIN_REST);
                    self.known().insert(id, false);
                    nodes = Nodes::SomeLeftOut;
                }
                Ok(_) | Err(UpstreamError::NotSupported { .. } | UpstreamError::Rpc { .. }) => {
                    self.known().insert(id, true);
                }
                // Not reached now: asked again at the next read.
                Err(_) => {}
            }
        }
        let known = self.known();
        let is_wrong = |id: &EndpointId| known.get(id) == Some(&false);
        match endpoints.first() {
            Some(one) if endpoints.iter().all(|endpoint| is_wrong(&endpoint.id)) => {
                Err(UpstreamError::WrongChain { endpoint: one.label.clone() })
            }
            Some(_) | None => Ok(nodes),
        }
    }
}

/// What is opened while the nodes are checked; once more where some were left out, for it may be
/// they who told what was just heard.
pub(super) async fn opened_beside<T, F>(
    check: impl Future<Output = Result<Nodes, UpstreamError>>,
    open: impl Fn() -> F,
) -> Result<T, UpstreamError>
where
    F: Future<Output = Result<T, UpstreamError>>,
{
    let (checked, opened) = join(check, open()).await;
    match checked? {
        Nodes::AsBefore => opened,
        Nodes::SomeLeftOut => open().await,
    }
}
