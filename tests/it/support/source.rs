//! Nodes without answers: for tests of what is served during loading.

use std::future;
use std::sync::Arc;
use std::time::Duration;

use blotter::domain::Clock;
use blotter::registry::Registry;
use blotter::rpc::{
    EndpointConfig, Pool, PoolLimits, Request, Response, Transport, TransportError,
};
use blotter::sources::{SolanaLimits, SolanaSource, Source};
use futures_util::future::BoxFuture;

use super::served::SOL;

/// How a node fails to answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Node {
    Silent,
    Refuses,
}

impl Transport for Node {
    fn send(&self, _: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        match self {
            Self::Silent => Box::pin(future::pending()),
            Self::Refuses => {
                let refused = Err(TransportError::Connect("refused".to_owned()));
                Box::pin(future::ready(refused))
            }
        }
    }
}

pub(crate) fn solana(node: Node, registry: &Registry, clock: Arc<dyn Clock>) -> Source {
    let limits = PoolLimits {
        request_wait_max: Duration::from_secs(3600),
        retry_time_max: Duration::from_secs(3600),
        attempts_max: 2,
        ..PoolLimits::default()
    };
    let endpoints = vec![EndpointConfig::new("http://node.test/planted-secret")];
    let pool = Pool::new(endpoints, Arc::new(node), limits, clock, 1);
    let chain = registry.chain(SOL).unwrap();
    let source = SolanaSource::new(pool, chain.genesis_hash.clone(), SolanaLimits::default());
    Source::Solana(source.with_busy_account(chain))
}
