//! Which path leads to what: routing only.

use std::convert::Infallible;

use warp::filters::BoxedFilter;
use warp::path::FullPath;
use warp::reply::Response;
use warp::{Filter, Rejection};

use super::current::Current;
use super::estimate::Received;
use super::handlers::{Endpoint, answer};

/// Every request is answered; nothing is rejected.
pub(super) fn routes(current: &Current) -> BoxedFilter<(Response,)> {
    answered(current, endpoint())
}

/// The metrics at an address of their own, and the probes.
pub(super) fn metrics_routes(current: &Current) -> BoxedFilter<(Response,)> {
    let only = |name: &'static str| warp::path(name).and(warp::path::end());
    let endpoint = only("metrics")
        .map(|| Endpoint::MetricsApart)
        .or(only("healthz").map(|| Endpoint::Health))
        .unify()
        .or(only("readyz").map(|| Endpoint::Ready))
        .unify()
        .or(warp::any().map(|| Endpoint::Unknown))
        .unify();
    answered(current, endpoint)
}

fn answered(
    current: &Current,
    endpoint: impl Filter<Extract = (Endpoint,), Error = Infallible> + Clone + Send + Sync + 'static,
) -> BoxedFilter<(Response,)> {
    let current = current.clone();
    endpoint
        .and(warp::method())
        .and(warp::path::full().map(|path: FullPath| path.as_str().to_owned()))
        .and(warp::header::headers_cloned())
        .and(warp::query::raw().or(warp::any().map(String::new)).unify())
        .and(received())
        .and(warp::any().map(move || current.get()))
        .then(answer)
        .boxed()
}

/// The rest of a request, read only where it is wanted.
fn received() -> impl Filter<Extract = (Received,), Error = Rejection> + Clone {
    warp::ext::optional().and(warp::ext::optional()).and(warp::body::stream()).map(Received::new)
}

fn endpoint() -> impl Filter<Extract = (Endpoint,), Error = Infallible> + Clone {
    let history = versioned().and(warp::path!("wallets" / String / "history"));
    let chains = versioned().and(warp::path!("chains")).map(|| Endpoint::Chains);
    let explain = versioned().and(warp::path!("wallets" / String / "explain" / String));
    let coverage = versioned().and(warp::path!("wallets" / String / "coverage"));
    let pnl = versioned().and(warp::path!("wallets" / String / "pnl"));
    let usage = versioned().and(warp::path!("usage")).map(|| Endpoint::Usage);
    let estimate = versioned().and(warp::path!("billing" / "estimate")).map(|| Endpoint::Estimate);
    history
        .map(Endpoint::History)
        .or(explain.map(Endpoint::Explain))
        .unify()
        .or(coverage.map(Endpoint::Coverage))
        .unify()
        .or(pnl.map(Endpoint::Pnl))
        .unify()
        .or(chains)
        .unify()
        .or(usage)
        .unify()
        .or(estimate)
        .unify()
        .or(warp::path!("openapi.json").map(|| Endpoint::OpenApi))
        .unify()
        .or(warp::path!("docs").map(|| Endpoint::Docs))
        .unify()
        .or(warp::path!("llms.txt").map(|| Endpoint::Llms))
        .unify()
        .or(warp::path!("healthz").map(|| Endpoint::Health))
        .unify()
        .or(warp::path!("readyz").map(|| Endpoint::Ready))
        .unify()
        .or(warp::path!("metrics").map(|| Endpoint::Metrics))
        .unify()
        .or(warp::path::end().map(|| Endpoint::Page))
        .unify()
        .or(warp::path!("page" / String / String)
            .map(|version, name| Endpoint::PageFile { version, name }))
        .unify()
        .or(warp::any().map(|| Endpoint::Unknown))
        .unify()
}

/// `/v1` and its equal, `/api/v1`.
fn versioned() -> impl Filter<Extract = (), Error = Rejection> + Clone {
    warp::path("v1").or(warp::path("api").and(warp::path("v1"))).unify()
}
