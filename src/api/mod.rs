//! The HTTP interface: routes, responses, keys and the server. Only this layer uses warp and
//! hyper's server.
//!
//! Invariants:
//! - A stream always ends with a final line, unless the connection itself fails.
//! - The memory of a response does not depend on its length.
//! - A key's text is never kept, logged or shown.
//! - Errors of the store never reach a client.

mod access;
mod arrival;
mod auth;
mod call;
mod clients;
mod coding;
mod cors;
mod coverage;
mod current;
mod dto;
mod error;
mod estimate;
mod explain;
mod framing;
mod gains;
mod guarded;
mod handlers;
mod limits;
mod metrics;
mod nodes;
mod overload_reply;
mod packing;
mod page;
mod parameters;
mod query;
mod rate_limit;
mod reference;
mod reply;
mod request;
mod routes;
mod server;
mod site;
mod slow_reader;
mod stream;
mod stream_permit;

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use tokio::net::TcpListener;
use warp::filters::BoxedFilter;
use warp::reply::Response;

pub use access::{Access, AccessLog};
pub use arrival::Hosts;
pub use auth::{KeyInfo, KeyRing, Keys};
pub use clients::Proxies;
pub use coverage::{CoverageBody, SpanBody, coverage_body};
pub use explain::explanation_json;
pub use limits::{ApiLimits, MetricsAccess};
pub use query::{read_time, read_year};
pub use server::Drained;

use crate::history::History;
use clients::ClientRates;
use current::Current;
use metrics::Metrics;
use packing::Packing;
use rate_limit::{Bucket, Permits};

#[derive(Debug)]
pub struct ApiParts {
    pub history: History,
    /// The owner keeps a clone, through which it replaces the ring.
    pub keys: Keys,
    pub limits: ApiLimits,
    /// Random, to distinguish the request ids of different runs.
    pub seed: u64,
}

/// The HTTP interface of a history. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Api {
    current: Current,
}

/// The state that requests share. A reload of the limits replaces it by a copy with the same parts.
#[derive(Debug, Clone)]
struct App {
    history: History,
    keys: Keys,
    limits: ApiLimits,
    packing: Packing,
    metrics: Arc<Metrics>,
    streams: Permits,
    gains: Permits,
    explained: Permits,
    client_rates: Arc<ClientRates>,
    /// The rate of calls to nodes by estimates.
    estimates: Arc<Bucket>,
    reference: Arc<str>,
    seed: u64,
    requests: Arc<AtomicU64>,
    draining: Arc<AtomicBool>,
    site: Arc<site::Site>,
    access: Arc<OnceLock<Arc<dyn AccessLog>>>,
}

impl Api {
    pub fn new(parts: ApiParts) -> Self {
        let ApiParts { history, keys, limits, seed } = parts;
        let metrics = Arc::new(Metrics::new(history.clone()));
        let app = App {
            history,
            keys,
            packing: Packing::new(&limits),
            limits,
            metrics,
            streams: Permits::default(),
            gains: Permits::default(),
            explained: Permits::default(),
            client_rates: Arc::default(),
            estimates: Arc::default(),
            reference: Arc::from(reference::page()),
            seed,
            requests: Arc::new(AtomicU64::new(1)),
            draining: Arc::default(),
            site: Arc::new(site::Site::new()),
            access: Arc::default(),
        };
        Self { current: Current::new(app) }
    }

    /// Reports each request to a log from now on. Later calls do not replace the log.
    pub fn log_access(&self, log: Arc<dyn AccessLog>) {
        if self.current.get().access.set(log).is_err() {
            tracing::debug!("an access log was set before");
        }
    }

    /// Applies limits to requests that begin from now on. The total number of connections stays as
    /// it was at the start.
    pub fn set_limits(&self, limits: ApiLimits) {
        self.current.replace(limits);
    }

    pub fn routes(&self) -> BoxedFilter<(Response,)> {
        routes::routes(&self.current)
    }

    /// Serves until `stop` completes, then ends the history's walks and drains. The caller shuts
    /// down the tasks and closes the history.
    pub async fn serve(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send,
    ) -> Drained {
        server::serve(self.current.clone(), self.routes(), listener, stop).await
    }

    /// Serves only the metrics and the probes, until `stop` completes.
    pub async fn serve_metrics(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send,
    ) -> Drained {
        let routes = routes::metrics_routes(&self.current);
        server::serve(self.current.clone(), routes, listener, stop).await
    }
}
