//! The HTTP side: routes, answers, keys and the server. The only code that names warp and hyper's
//! server.
//!
//! Invariants:
//! - A stream that has begun always ends in a final line, unless the connection itself fails.
//! - Memory of an answer does not depend on its length.
//! - A key's text is never kept, logged or shown.
//! - What the store says about itself never reaches a client.

mod arrival;
mod auth;
mod coding;
mod cors;
mod coverage;
mod dto;
mod error;
mod estimate;
mod explain;
mod framing;
mod gains;
mod gate;
mod guarded;
mod handlers;
mod limits;
mod metrics;
mod nodes;
mod page;
mod parameters;
mod query;
mod reference;
mod reply;
mod routes;
mod server;
mod site;
mod stall;
mod stream;
mod visitors;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use tokio::net::TcpListener;
use warp::filters::BoxedFilter;
use warp::reply::Response;

pub use arrival::Hosts;
pub use auth::{KeyInfo, KeyRing, Keys};
pub use coverage::coverage_json;
pub use explain::explanation_json;
pub use limits::{ApiLimits, MetricsAccess};
pub use query::{read_time, read_year};
pub use server::Drained;
pub use visitors::Proxies;

use crate::history::History;
use gate::{Bucket, Places};
use metrics::Metrics;
use visitors::Visitors;

/// What an API is made of.
#[derive(Debug)]
pub struct ApiParts {
    pub history: History,
    /// The owner keeps a clone and replaces the ring in it.
    pub keys: Keys,
    pub limits: ApiLimits,
    /// Random: tells the request ids of one run from those of another.
    pub seed: u64,
}

/// The HTTP interface of a history. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Api {
    app: Arc<App>,
}

#[derive(Debug)]
struct App {
    history: History,
    keys: Keys,
    limits: ApiLimits,
    metrics: Metrics,
    streams: Places,
    /// Gains that are being worked out.
    gains: Places,
    visitors: Visitors,
    /// The calls to nodes that estimates may make.
    estimates: Bucket,
    /// The reference page.
    reference: String,
    seed: u64,
    requests: AtomicU64,
    draining: AtomicBool,
    site: site::Site,
}

impl Api {
    pub fn new(parts: ApiParts) -> Self {
        let ApiParts { history, keys, limits, seed } = parts;
        let metrics = Metrics::new(history.clone());
        let app = App {
            history,
            keys,
            limits,
            metrics,
            streams: Places::default(),
            gains: Places::default(),
            visitors: Visitors::default(),
            estimates: Bucket::default(),
            reference: reference::page(),
            seed,
            requests: AtomicU64::new(1),
            draining: AtomicBool::new(false),
            site: site::Site::new(),
        };
        Self { app: Arc::new(app) }
    }

    /// The routes as a filter that answers every request.
    pub fn routes(&self) -> BoxedFilter<(Response,)> {
        routes::routes(&self.app)
    }

    /// Serves until `stop` is ready, then ends the history's walks and drains. Shutting down the
    /// tasks and closing the history is left to the caller.
    pub async fn serve(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send,
    ) -> Drained {
        let routes = routes::routes(&self.app);
        server::serve(Arc::clone(&self.app), routes, listener, stop).await
    }

    /// Serves the metrics and the probes alone, until `stop` is ready.
    pub async fn serve_metrics(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send,
    ) -> Drained {
        let routes = routes::metrics_routes(&self.app);
        server::serve(Arc::clone(&self.app), routes, listener, stop).await
    }
}
